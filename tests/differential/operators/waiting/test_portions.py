"""Rows of very many epochs in portions: the same rows, in order of epochs, and the same answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, rows_of
from strategies_words import CODES

from differential.operators.reduce import Aggregates, FirstRows, ReduceMachine
from differential.operators.waiting import portions as module
from differential.operators.waiting.portions import portions

EPOCHS, LOOP = CODES[1].guards, CODES[2].guards
END = np.empty(0, np.int64)


def history(keys: int, epochs: int, each: int = 1) -> np.typing.NDArray[np.int64]:
    """Every key has another value at each epoch, so many times."""
    rows = [(k, e * 7 % 5, e, each) for k in range(keys) for e in range(epochs)]
    return as_words(sorted(rows), 4)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 9)), min_size=1),
    st.integers(1, 4),
)
def test_portions_have_each_row_once_behind_the_frontiers_before_and_up_to_their_own(
    some: list[tuple[int, int, int]], at_once: int
) -> None:
    rows: list[Row] = sorted({(*row, 1) for row in some})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS_MIN", 1)
        patch.setattr(module, "TIMES_AT_ONCE", at_once)
        parts = list(portions(as_words(rows, 4), 1, EPOCHS, END))
    assert sorted(row for part, _ in parts for row in rows_of(part)) == rows
    assert parts[-1][1] is END
    begin = -1
    for index, (part, until) in enumerate(parts):
        stop = int(until[0]) if index + 1 < len(parts) else 10
        assert rows_of(part) == sorted(rows_of(part)) and part.flags.c_contiguous
        assert all(begin <= row[2] < stop for row in rows_of(part)) and part.shape[1]
        begin = stop


def test_each_row_meets_few_times_of_its_key() -> None:
    rows = history(3, 2000)
    parts = list(portions(rows, 1, EPOCHS, END))
    assert len(parts) == 2000 // module.TIMES_AT_ONCE + 1
    assert all(len(set(part[2].tolist())) <= module.TIMES_AT_ONCE for part, _ in parts)


@pytest.mark.parametrize(
    ("rows", "guards"),
    [
        (history(1, 200), EPOCHS),
        (history(2000, 2), EPOCHS),
        (as_words([(k, v, 3, 1) for k in range(2) for v in range(2000)], 4), EPOCHS),
        (history(1, 2000), LOOP),
    ],
    ids=["few rows", "few times of each key", "one epoch", "times of a loop"],
)
def test_all_is_one_portion_where_no_square_is_to_be_feared(
    rows: np.typing.NDArray[np.int64], guards: int
) -> None:
    ((part, until),) = portions(rows, 1, guards, END)
    assert part is rows and until is END


@pytest.mark.parametrize(
    "aggregate",
    [
        Aggregates((("count", 0), ("min", 0))),
        Aggregates((("max", 0),)),
        Aggregates(()),
        FirstRows(1, 2),
    ],
)
def test_a_machine_says_of_a_long_history_what_it_says_epoch_by_epoch(
    aggregate: Aggregates | FirstRows,
) -> None:
    rows = history(2, 900)
    rows[3, ::3] = -1  # what is owed comes and goes, too
    at_once, by_epoch = (ReduceMachine(1, 1, EPOCHS, aggregate) for _ in range(2))
    at_once.recv(rows)
    parts = list(at_once.advance_by_portions(END))
    assert len(parts) > 1
    by_epoch.recv(rows)
    wanted = [by_epoch.advance(np.array([epoch])) for epoch in range(1, 901)]
    assert sorted(map(tuple, np.concatenate(parts, axis=1).T.tolist())) == sorted(
        map(tuple, np.concatenate(wanted, axis=1).T.tolist())
    )
    at_once.check_invariants()
