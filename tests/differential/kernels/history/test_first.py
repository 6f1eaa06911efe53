"""The first rows of a group, found without reading all of it. That they are right at every time is in
`test_reduce.py`; here is what is left out: keys whose answers stay are skipped, and walks end."""

from __future__ import annotations

import numpy as np
from reference.words import Row, as_words, rows_of
from strategies_words import CODES

from differential.kernels.history.first import NO_RANK, RANK, ROW_NUMBER, reduce_first
from differential.trace.trace import Trace

CODE = CODES[2]
T00, T10, T03, T13, T02, T12 = (CODE.pack(time) for time in [(0, 0), (1, 0), (0, 3), (1, 3), (0, 2), (1, 2)])
ANSWERS = [(1, 4, T00, 1), (1, 6, T00, 1)]
HELD = [*ANSWERS, (1, 9, T03, 1)]


def _reduce(
    held: list[Row],
    answers: list[Row],
    new: list[Row],
    limit: int = 2,
    offset: int = 0,
    rank: int = NO_RANK,
    *,
    ties: bool = False,
) -> tuple[list[Row], list[Row], int]:
    table, answers_table = Trace(1, 1, CODE.guards), Trace(1, 1 + (rank != NO_RANK), CODE.guards)
    table.insert(as_words(sorted(held), 4))
    answers_table.insert(as_words(sorted(answers), 4 + (rank != NO_RANK)))
    frontier = np.array([CODE.pack((1, 1)), CODE.pack((2, 0))])
    shape = np.array([1, 1, CODE.guards, offset, limit, rank, 1, ties])
    levels, ranks = np.array([[1], [0]]), np.empty((2, 0), np.int64)
    pending = np.empty((2, 0), np.int64)
    tables = table.lines, answers_table.lines
    out, pended, unknown, walked = reduce_first(
        as_words(sorted(new), 4), pending, *tables, frontier, shape, levels, ranks
    )
    assert unknown.shape == (0,)
    return rows_of(out), rows_of(pended), walked


def test_a_value_behind_the_answers_is_not_looked_at_and_leaves_nothing_pending() -> None:
    assert _reduce(HELD, ANSWERS, [(1, 7, T10, 1)]) == ([], [], 0)
    assert _reduce(HELD, ANSWERS, [(1, 7, T10, -1)]) == ([], [], 0)


def test_one_more_of_the_last_answer_changes_nothing_and_one_less_is_looked_at() -> None:
    assert _reduce(HELD, ANSWERS, [(1, 6, T10, 1)]) == ([], [], 0)
    out, pended, walked = _reduce(HELD, ANSWERS, [(1, 6, T10, -1)])
    assert (out, pended, walked) == ([(1, 6, T10, -1)], [(1, T13)], 4)


def test_answers_that_are_too_few_are_looked_at() -> None:
    assert _reduce(HELD, ANSWERS, [(1, 7, T10, 1)], limit=3)[0] == [(1, 7, T10, 1)]


def test_a_walk_ends_before_times_of_values_that_cannot_matter() -> None:
    out, pended, walked = _reduce(HELD, ANSWERS, [(1, 2, T10, 1)])
    assert out == [(1, 2, T10, 1), (1, 6, T10, -1)] and walked == 2
    assert pended == [], "the times of 9 cannot matter any more"


def test_times_at_which_the_answers_were_others_stay_pending() -> None:
    held = [*HELD, (1, 3, T02, 1)]
    answers = [*ANSWERS, (1, 6, T02, -1), (1, 3, T02, 1)]
    out, pended, _ = _reduce(held, answers, [(1, 2, T10, 1)])
    assert out == [(1, 2, T10, 1), (1, 6, T10, -1)] and pended == [(1, T12)]


def test_rows_count_as_often_as_they_are_there_and_not_where_they_are_owed() -> None:
    held = [(1, 3, T00, -5), (1, 4, T00, 3)]
    assert _reduce(held, [], [(1, 5, T10, 9)], limit=5, offset=1)[0] == [(1, 4, T10, 2), (1, 5, T10, 3)]


def test_ranks_stand_behind_the_words() -> None:
    new = [(1, 4, T10, 2), (1, 5, T10, 1)]
    assert _reduce([], [], new, rank=RANK, limit=3)[0] == [(1, 4, 1, T10, 2), (1, 5, 3, T10, 1)]
    numbered = [(1, 4, 2, T10, 1), (1, 5, 3, T10, 1)]
    assert _reduce([], [], new, rank=ROW_NUMBER, limit=3, offset=1)[0] == numbered


def test_ties_of_the_last_row_are_answers_however_often_they_are_there() -> None:
    held = [(1, 4, T00, 1), (1, 6, T00, 3), (1, 9, T00, 1)]
    answers = [(1, 4, T00, 1), (1, 6, T00, 3)]
    assert _reduce(held, answers, [(1, 9, T10, 1)], ties=True) == ([], [], 0), "it is behind all answers"
    assert _reduce(held, answers, [(1, 6, T10, 2)], ties=True)[0] == [(1, 6, T10, 2)]
    assert _reduce(held, answers, [(1, 6, T10, -3)], ties=True)[0] == [(1, 6, T10, -3), (1, 9, T10, 1)]
    out, _, walked = _reduce(held, answers, [(1, 4, T10, 1)], ties=True)
    assert out == [(1, 4, T10, 1), (1, 6, T10, -3)] and walked == 2, "6 is no tie of 4"


def test_one_of_several_new_rows_that_takes_the_last_answer_away_is_enough_to_look() -> None:
    for diffs in ((-1, 1), (1, -1)):
        new = [(1, 6, time, diff) for time, diff in zip((T02, T10), diffs, strict=True)]
        assert _reduce(HELD, ANSWERS, new)[2] > 0, diffs


def test_answers_that_are_too_few_at_a_later_time_are_looked_at() -> None:
    rows = [*ANSWERS, (1, 6, T02, -1)]
    assert _reduce(rows, rows, [(1, 7, T10, 1)])[:2] == ([], [(1, T12)])


def test_a_walk_does_not_go_on_for_times_that_are_not_ready() -> None:
    rows = [(1, 3, T00, 1), (1, 4, T00, 1), (1, 3, T02, -1), (1, 6, T02, 1)]
    out, pended, walked = _reduce([*rows[:3], (1, 6, T00, 1), (1, 8, T00, 1)], rows, [(1, 2, T10, 1)])
    assert out == [(1, 2, T10, 1), (1, 4, T10, -1)] and pended == [(1, T12)]
    assert walked == 3, "2, and 3 at two times"


def test_a_sum_beyond_64_bits_is_as_many_rows_as_are_needed() -> None:
    most = 2**63 - 1
    held = [(1, 4, T00, most), (1, 4, T02, most)]
    new = [(1, 4, T03, most)]
    assert _reduce(held, [(1, 4, T00, 2)], new, limit=2)[0] == []
    assert _reduce(held, [(1, 4, T00, 2)], [(1, 3, T03, 1)])[0] == [(1, 3, T03, 1), (1, 4, T03, -1)]
