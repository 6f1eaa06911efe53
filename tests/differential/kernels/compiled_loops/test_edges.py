"""What a connector does, row by row, beside a plain twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.routes import KeyRoute, UnitRoute
from differential.columns.update_batch import UpdateBatch, words_of
from differential.compiled_loops.carrying import Carrying
from differential.compiled_loops.tables import EdgeRoute, Parts
from differential.kernels.compiled_loops.edges import EQUAL, LESS, pass_on
from differential.kernels.compiled_loops.layout import (
    BY_KEY,
    BY_UNIT,
    CONSTANT_WORD,
    COUNTS_ROOM,
    FAR,
    NO_ROOM,
    S_NEXT,
    STATE,
    SUM_WORD,
    TOO_MUCH,
    X_BOUND,
    X_COUNTED,
    X_COUNTERS,
    X_ROWS,
    X_SLOT,
)
from differential.kernels.compiled_loops.run import remember, undo
from timely.wire.routing import Routing

NO_TESTS = np.zeros((0, 4), np.int64)
SMALL = st.integers(-5, 5)
ROWS = st.lists(st.tuples(SMALL, SMALL, st.integers(0, 7), st.sampled_from([-2, -1, 1, 3])), max_size=40)


def _parts(carrying: Carrying, columns: int = 3) -> Parts:
    parts = Parts(np.zeros((2, 1), np.int64), 0)
    slot = parts.slots.add(columns)
    parts.add_edge(slot, columns - 2, carrying, None)
    parts.close()
    return parts


def _pass(parts: Parts, words: np.ndarray, state: np.ndarray, told: np.ndarray) -> int:
    return int(pass_on(words, 0, 1, parts.edges, parts.slots.table, state, told))


def _room() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(STATE, np.int64), np.zeros((3, COUNTS_ROOM), np.int64)


@given(ROWS, st.sampled_from([1, -1]))
def test_rows_pass_tests_and_come_out_moved_summed_and_later(rows: list[tuple[int, ...]], sign: int) -> None:
    words = np.array([[0, CONSTANT_WORD, SUM_WORD - 1], [0, 9, 4]], np.int64)
    tests = np.array([[LESS, 0, 1, 0], [EQUAL + 3, 1, -1, 2]], np.int64)
    parts = _parts(Carrying(6, 1, words, sign, tests, (0, 7, FAR), True), 5)
    state, told = _room()
    assert _pass(parts, np.array(rows, np.int64).reshape(-1, 4).T.copy(), state, told) == 0
    wanted = [(a, 9, b + 4, (t & 6) + 1, sign * d) for a, b, t, d in rows if a < b and b != 2]
    assert [tuple(row) for row in parts.slots.look(0).T.tolist()] == wanted
    assert parts.slots.least(0) == min([row[3] for row in wanted], default=FAR)
    said = told[:, : state[X_COUNTED]].T.tolist()
    assert said == ([[0, min(row[3] for row in wanted), len(wanted)]] if wanted else [])


def test_a_slot_without_room_is_named_and_left_alone() -> None:
    parts = _parts(Carrying(-1, 0, None, 1, NO_TESTS, (0, 0, FAR), False))
    state, told = _room()
    assert _pass(parts, np.ones((3, 65), np.int64), state, told) == NO_ROOM
    assert (state[X_SLOT], state[X_ROWS], parts.slots.rows(0)) == (0, 65, 0)


def test_iterations_behind_the_last_are_for_python() -> None:
    parts = _parts(Carrying(-1, 1, None, 1, NO_TESTS, (0, 7, 5), False))
    state, told = _room()
    words = np.array([[1], [4], [1]], np.int64)
    assert _pass(parts, words, state, told) == 0
    words[1] = 5
    assert _pass(parts, words, state, told) == TOO_MUCH


def _divided(workers: int, kind: int, by: int, kept: int = 0) -> Parts:
    """An edge whose rows are divided between the slots of so many workers."""
    parts = Parts(np.zeros((2, 1), np.int64), 0)
    slots = [parts.slots.add(4) for _ in range(workers)]
    routed = EdgeRoute(kind, by, Routing.default(workers).owners, slots)
    parts.add_edge(slots[kept], 2, Carrying(-1, 1, None, 1, NO_TESTS, (0, 0, FAR), True), None, routed)
    parts.close()
    return parts


@given(ROWS, st.integers(2, 4), st.sampled_from([(BY_KEY, 0), (BY_KEY, 1), (BY_KEY, 2), (BY_UNIT, 1)]))
def test_rows_are_divided_as_routes_divide_them_and_count_from_when_their_epoch_is_closed(
    rows: list[tuple[int, ...]], workers: int, how: tuple[int, int]
) -> None:
    kind, by = how
    parts = _divided(workers, kind, by)
    state, told = _room()
    state[X_BOUND], state[X_COUNTERS] = 4, 3
    words = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    assert _pass(parts, words, state, told) == 0
    words[2] += 1
    route = KeyRoute(by) if kind == BY_KEY else UnitRoute(at=by)
    split = route.split(UpdateBatch(words), 0, Routing.default(workers))
    for slot, part in enumerate(split):
        found = [tuple(row) for row in parts.slots.look(slot).T.tolist()]
        wanted = [] if part is None else [tuple(row) for row in words_of(part).T.tolist()]
        assert sorted(found) == sorted(wanted), slot
        times = [time for *_, time, _ in wanted]
        assert parts.slots.least(slot) == min(times, default=FAR)
        closed = [time & 3 for time in times if time < 4]
        assert parts.slots.table[slot, S_NEXT] == min(closed, default=FAR)
    least = min((int(time) for time in words[2]), default=FAR)
    assert told[:, : state[X_COUNTED]].T.tolist() == ([[0, least, len(rows)]] if rows else [])


def test_the_slot_of_another_worker_without_room_is_named() -> None:
    parts = _divided(2, BY_UNIT, 0)
    words = np.ones((4, 65), np.int64)  # all of unit 1
    state, told = _room()
    assert _pass(parts, words, state, told) == NO_ROOM
    assert (state[X_SLOT], state[X_ROWS], parts.slots.rows(1)) == (1, 65, 0)
    parts.slots.make_room(1, 65)
    assert _pass(parts, words, state, told) == 0 and parts.slots.rows(1) == 65
    assert _pass(parts, np.ones((4, 64), np.int64) * 2, state, told) == 0, "just as many as there is room for"


def test_rows_of_the_first_epoch_that_is_open_do_not_count_yet() -> None:
    parts = _parts(Carrying(-1, 0, None, 1, NO_TESTS, (0, 0, FAR), False))
    state, told = _room()
    state[X_BOUND], state[X_COUNTERS] = 8, 7
    for time, following in ((8, FAR), (7, 7), (3, 3), (6, 3)):
        assert _pass(parts, np.array([[1], [time], [1]], np.int64), state, told) == 0
        assert parts.slots.table[0, S_NEXT] == following


def test_what_a_step_has_put_in_is_forgotten_if_it_is_not_done() -> None:
    parts = _divided(2, BY_UNIT, 0)
    state, told = _room()
    state[X_BOUND], state[X_COUNTERS] = 8, 7
    rows = np.array([[0, 1], [0, 0], [5, 6], [1, 1]], np.int64)
    assert _pass(parts, rows, state, told) == 0
    before = np.empty((4, 2), np.int64)
    was = [each.copy() for each in (parts.slots.table, parts.edges, state)]
    remember(parts.slots.table, parts.edges, state, before)
    rows[2] = 1, 2
    assert _pass(parts, rows, state, told) == 0
    assert parts.slots.table[:, S_NEXT].tolist() == [2, 3]
    undo(parts.slots.table, parts.edges, state, before)
    for now, then in zip((parts.slots.table, parts.edges, state), was, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    ("words", "sign"), [([[(1 << 63) - 1], [0], [1]], 1), ([[0], [0], [-(1 << 63)]], -1)]
)
def test_numbers_that_leave_64_bits_are_refused(words: list[list[int]], sign: int) -> None:
    added = np.array([[SUM_WORD], [1]], np.int64)
    parts = _parts(Carrying(-1, 0, added, sign, NO_TESTS, (0, 0, FAR), False))
    with pytest.raises(OverflowError):
        _pass(parts, np.array(words, np.int64), *_room())
