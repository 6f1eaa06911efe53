"""operators/loops/rounds.py: what is said of the last rounds of a loop without end."""

from __future__ import annotations

import numpy as np

from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.operators.loops.rounds import last_rounds

SCHEMA = Schema.of("k: int, v: int")


def batch(*rows: tuple[int, int, int]) -> UpdateBatch:
    """Rows (k, v, diff)."""
    return UpdateBatch(np.array([[k, v, 0, diff] for k, v, diff in rows], np.int64).T.copy())


def test_rows_that_change_most_often_come_first() -> None:
    said = last_rounds(SCHEMA)(
        [(7, batch((1, 2, 1), (3, 3, 1))), (8, batch((1, 2, -1))), (9, batch((1, 2, 1)))]
    )
    assert said.startswith(
        "Rows that came and went: (k=1, v=2) +1 at 7, -1 at 8, +1 at 9; (k=3, v=3) +1 at 7"
    )


def test_no_more_than_three_rows_with_their_last_four_changes() -> None:
    rounds = [(at, batch(*((k, 0, 1) for k in range(9)))) for at in range(20)]
    said = last_rounds(SCHEMA)(list(rounds))
    assert said.count("(k=") == 3 and said.count(" at ") == 12 and "+1 at 19" in said and "at 15" not in said


def test_nothing_is_said_of_nothing() -> None:
    assert last_rounds(SCHEMA)([]) == ""
