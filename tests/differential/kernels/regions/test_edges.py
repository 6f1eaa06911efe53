"""What a connector does, row by row, beside a plain twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.kernels.regions.edges import EQUAL, LESS, pass_on
from differential.kernels.regions.layout import (
    CONSTANT_WORD,
    FAR,
    NO_ROOM,
    STATE,
    SUM_WORD,
    TOLD_MAX,
    TOO_MUCH,
    X_ROWS,
    X_SLOT,
    X_TOLD,
)
from differential.regions.carrying import Carrying
from differential.regions.tables import Parts

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
    return np.zeros(STATE, np.int64), np.zeros((3, TOLD_MAX), np.int64)


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
    said = told[:, : state[X_TOLD]].T.tolist()
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


@pytest.mark.parametrize(
    ("words", "sign"), [([[(1 << 63) - 1], [0], [1]], 1), ([[0], [0], [-(1 << 63)]], -1)]
)
def test_numbers_that_leave_64_bits_are_refused(words: list[list[int]], sign: int) -> None:
    added = np.array([[SUM_WORD], [1]], np.int64)
    parts = _parts(Carrying(-1, 0, added, sign, NO_TESTS, (0, 0, FAR), False))
    with pytest.raises(OverflowError):
        _pass(parts, np.array(words, np.int64), *_room())
