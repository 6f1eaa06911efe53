"""kernels/sweeps/sweep.py and operators/timed/sweep.py: groups gone through in order of a time.

law_*    what is accumulated for a key, at each of its times, is what the function gives of its rows then
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import accumulated, as_words, rows_of

from differential.kernels.sweeps.sweep import nearest_answers, put_session, session_answers
from differential.operators.timed.sweep import SweepFunction, swept

GUARDS = 1 << 62
NONE = np.empty(0, np.int64)


def test_rows_that_overlap_are_one_session() -> None:
    #                 time until count
    rows = as_words([(1, 4, 1), (3, 6, 2), (5, 8, -1), (6, 9, 1), (2, 9, 1), (9, 10, 0)], 3)
    bounds = np.array([[0, 4], [4, 6]], np.int64)
    made = rows_of(session_answers(rows, bounds, NONE))
    #                time until start end count group
    assert made == [(1, 4, 1, 6, 1, 0), (3, 6, 1, 6, 2, 0), (6, 9, 6, 9, 1, 0), (2, 9, 2, 9, 1, 1)]


def test_there_is_room_for_any_session() -> None:
    rows = as_words([(1, 4, 1), (2, 5, 1)], 3)
    out, made = put_session(np.empty((6, 1), np.int64), np.int64(0), rows, (0, 2), (1, 5), 7)
    assert made == 2 and rows_of(out[:, :2]) == [(1, 4, 1, 5, 1, 7), (2, 5, 1, 5, 1, 7)]


def test_the_nearest_right_row_within_a_tolerance() -> None:
    #               side time left right count
    rows = as_words(
        [(0, 2, 7, 0, 1), (0, 5, 8, 0, 2), (1, 1, 0, 50, 1), (1, 5, 0, 55, -1), (1, 6, 0, 60, 1)], 5
    )
    bounds = np.array([[0], [5]], np.int64)
    before = nearest_answers(rows, bounds, np.array([1, 0, 2, 0, 2, 1, 2, 3], np.int64))
    assert rows_of(before) == [(2, 7, 50, 1, 0), (5, 8, 0, 2, 0)]
    after = nearest_answers(rows, bounds, np.array([1, 1, -1, 1, 2, 1, 2, 3], np.int64))
    assert rows_of(after) == [(5, 8, 60, 2, 0), (2, 7, 60, 1, 0)]


def test_a_right_row_at_the_same_time_is_near_only_where_it_may_be() -> None:
    rows = as_words([(0, 5, 7, 0, 1), (1, 4, 0, 40, 1), (1, 5, 0, 50, 1), (1, 6, 0, 60, 1)], 5)
    bounds = np.array([[0], [4]], np.int64)
    found = {}
    for exact in (0, 1):
        for forward in (0, 1):
            options = np.array([exact, forward, -1, 0, 2, 1, 2, 3], np.int64)
            found[exact, forward] = nearest_answers(rows, bounds, options)[2, 0]
    assert found == {(0, 0): 40, (0, 1): 60, (1, 0): 50, (1, 1): 50}


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sets(st.integers(1, 4), min_size=1)),
        max_size=3,
        unique_by=lambda k: k[0],
    ),
    st.data(),
)
def test_law_corrections_lead_from_what_was_put_out_to_what_is_right(
    keys: list[tuple[int, set[int]]], data: st.DataObject
) -> None:
    """One value word and how long it lasts; the answers of before are anything at times 0 … 3."""
    groups, rows, history, wanted = [], [], [], {}
    for key, times in sorted(keys):
        answers = len(history)
        drawn = st.tuples(
            st.integers(0, 3),
            st.just(9),
            st.integers(0, 3),
            st.just(9),
            st.integers(0, 3),
            st.sampled_from([1, -1]),
        )
        history += data.draw(st.lists(drawn, max_size=3))
        for time in sorted(times):
            first = len(rows)
            rows += [(at, at + 2, 1) for at in sorted(data.draw(st.sets(st.integers(0, 6), max_size=3)))]
            groups.append((key, time, first, len(rows), answers, len(history)))
            made = session_answers(
                as_words(rows[first:], 3), np.array([[0], [len(rows) - first]], np.int64), NONE
            )
            wanted[key, time] = {tuple(row[:4]): row[4] for row in rows_of(made)}
    found = swept(
        as_words(groups, 6),
        as_words(rows, 3),
        as_words(history, 6),
        SweepFunction("sessions", (), 4),
        (1, GUARDS),
    )
    assert rows_of(found) == sorted(rows_of(found))
    for key, _, _, _, start, stop in groups:
        for (one, time), answers in wanted.items():
            if one == key:
                put_out = [(key, *row) for row in history[start:stop]] + [
                    r for r in rows_of(found) if r[0] == key
                ]
                assert accumulated(put_out, time, GUARDS) == {
                    (key, *row): count for row, count in answers.items()
                }
