"""The least of a group, found without reading all of it. That it is right at every time is in
`test_reduce.py`; here is what it leaves out: keys whose answer stays are skipped, and leave nothing
pending."""

from __future__ import annotations

import numpy as np
import pytest
from reference.words import Row, as_words, rows_of
from strategies_words import CODES

from differential.kernels.least.least import reduce_least
from differential.trace.trace import Trace

CODE = CODES[2]
LEAST, GREATEST = 0, -1


def _reduce(
    held: list[Row], answers: list[Row], new: list[Row], flip: int = LEAST
) -> tuple[list[Row], list[Row]]:
    table, answers_table = Trace(1, 1, CODE.guards), Trace(1, 1, CODE.guards)
    table.insert(as_words(sorted(held), 4))
    answers_table.insert(as_words(sorted(answers), 4))
    frontier = np.array([CODE.pack((1, 1)), CODE.pack((2, 0))])
    shape = np.array([1, CODE.guards, flip, -1])
    pending = np.empty((2, 0), np.int64)
    out, pended = reduce_least(
        as_words(sorted(new), 4), pending, table.table, answers_table.table, frontier, shape
    )
    return rows_of(out), rows_of(pended)


T00, T10, T03, T13, T02, T12 = (CODE.pack(time) for time in [(0, 0), (1, 0), (0, 3), (1, 3), (0, 2), (1, 2)])


@pytest.mark.parametrize(("flip", "sign"), [(LEAST, 1), (GREATEST, -1)])
def test_a_value_behind_the_answer_changes_nothing_and_leaves_nothing_pending(flip: int, sign: int) -> None:
    held = [(1, sign * 4, T00, 1), (1, sign * 9, T03, 1)]
    assert _reduce(held, [(1, sign * 4, T00, 1)], [(1, sign * 7, T10, 1)], flip) == ([], [])


def test_one_more_of_the_answer_changes_nothing_and_one_less_is_looked_at() -> None:
    held, answers = [(1, 4, T00, 2), (1, 9, T03, 1)], [(1, 4, T00, 1)]
    assert _reduce(held, answers, [(1, 4, T10, 1)]) == ([], [])
    assert _reduce(held, answers, [(1, 4, T10, -2)]) == ([(1, 4, T10, -1)], [(1, T13)])


def test_a_smaller_value_ends_the_walk_before_later_times_of_larger_ones() -> None:
    held, answers = [(1, 4, T00, 1), (1, 9, T03, 1)], [(1, 4, T00, 1)]
    out, pended = _reduce(held, answers, [(1, 2, T10, 1)])
    assert out == [(1, 2, T10, 1), (1, 4, T10, -1)]
    assert pended == [], "the times of 9 cannot matter any more"


def test_times_at_which_the_answer_was_another_stay_pending() -> None:
    held = [(1, 4, T00, 1), (1, 3, T02, 1)]
    answers = [(1, 4, T00, 1), (1, 4, T02, -1), (1, 3, T02, 1)]
    out, pended = _reduce(held, answers, [(1, 2, T10, 1)])
    assert out == [(1, 2, T10, 1), (1, 4, T10, -1)]
    assert pended == [(1, T12)], "there 3 has to go, for the answer is 2 already"


def test_a_value_behind_the_answer_is_looked_at_where_the_answer_will_be_larger() -> None:
    """4 goes in iteration 2: there 5 is before 9, although it is behind 4 when it comes."""
    held = [(1, 4, T00, 1), (1, 4, T02, -1), (1, 9, T00, 1)]
    answers = [(1, 4, T00, 1), (1, 4, T02, -1), (1, 9, T02, 1)]
    assert _reduce(held, answers, [(1, 5, T10, 1)]) == ([], [(1, T12)])
