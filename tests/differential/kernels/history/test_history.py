"""The history of a key: gathered from all runs, advanced, consolidated, corrected."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, accumulated, as_words, beyond, consolidated, less_equal, lub, rows_of
from strategies_words import CODES, frontiers, rows

from differential.kernels.history.history import (
    consolidate_rows,
    correct,
    gathered,
    gathered_complete,
    put_rows,
    with_new,
)
from differential.kernels.rows.search import cursors_of
from differential.trace.trace import Trace

GUARDS = CODES[2].guards
TIMES = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(CODES[2].pack)


@given(rows(1, rows_max=60))
def test_rows_are_consolidated_in_place(some: list[Row]) -> None:
    room = np.empty((3, len(some) + 2), np.int64)
    room[:, : len(some)] = as_words(some, 3)
    count = consolidate_rows(room, len(some))
    assert rows_of(room[:, :count]) == consolidated(some)


@given(st.lists(rows(2, rows_max=12), min_size=1, max_size=3), rows(2, rows_max=5), TIMES)
def test_gathered_is_the_history_advanced_to_the_floor(
    inserts: list[list[Row]], new: list[Row], floor: int
) -> None:
    trace, held = Trace(1, 1, GUARDS), []
    for insert in inserts:
        trace.insert(as_words(consolidated(insert), 4))
        trace.freeze_head()
        held += insert
    key = new[0][0] if new else 0
    mine = [row for row in consolidated(new) if row[0] == key]
    state = np.array([0, floor, 0, 0, 0])
    keys = np.array([[key]])
    room = gathered(
        trace.table, cursors_of(trace.table), keys, 0, 1, state, GUARDS, np.empty((3, 1), np.int64)
    )
    room = with_new(as_words(mine, 4), 0, len(mine), 1, state, GUARDS, room)
    count = consolidate_rows(room, int(state[2]))
    want = [(row[1], lub(row[2], floor, GUARDS), row[3]) for row in held + mine if row[0] == key]
    assert rows_of(room[:, :count]) == consolidated(want)


@given(st.lists(rows(2, rows_max=12), min_size=1, max_size=3), frontiers(2), TIMES, st.integers(-1, 3))
def test_gathered_complete_leaves_out_what_is_beyond_in_lines_of_exact_times(
    inserts: list[list[Row]], frontier: np.typing.NDArray[np.int64], floor: int, exact: int
) -> None:
    """By the time that a row came with: its lub with the floor may be beyond although it is not."""
    if beyond(floor, frontier, GUARDS):
        return
    trace, want = Trace(1, 1, GUARDS), []
    for insert in inserts:
        trace.insert(as_words(consolidated(insert), 4))
        trace.freeze_head()
    for line, run in enumerate(trace._runs):
        for key, value, time, diff in rows_of(run.words()):
            if key == 1 and not (0 <= exact <= line and beyond(time, frontier, GUARDS)):
                want.append((value, lub(time, floor, GUARDS), diff))
    state, keys = np.array([0, floor, 0, 0, 0]), np.array([[1]])
    cursors, room = cursors_of(trace.table), np.empty((3, 1), np.int64)
    room = gathered_complete(trace.table, cursors, keys, (0, 1, GUARDS), state, frontier, exact, room)
    assert rows_of(room[:, : consolidate_rows(room, int(state[2]))]) == consolidated(want)


@given(rows(1, rows_max=12), st.integers(-2, 3), TIMES, st.booleans())
def test_corrected_rows_accumulate_to_what_was_wanted(
    some: list[Row], value: int, time: int, present: bool
) -> None:
    held = consolidated(some)
    room, out = np.empty((3, 4 * len(held) + 8), np.int64), np.empty((3, len(held) + 4), np.int64)
    room[:, : len(held)] = as_words(held, 3)
    made = correct(room, len(held), np.array([value, time, 0]), present, GUARDS, out, 0)
    assert all(row[1] == time for row in rows_of(out[:, :made]))
    count = put_rows(room, len(held), out, 0, made)
    after = rows_of(room[:, :count])
    assert after == consolidated(held + rows_of(out[:, :made]))
    assert accumulated(after, time, GUARDS) == ({(value,): 1} if present else {})
    for other in {row[1] for row in held}:
        if not less_equal(time, other, GUARDS):
            assert accumulated(after, other, GUARDS) == accumulated(held, other, GUARDS)
