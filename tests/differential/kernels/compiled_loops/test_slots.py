"""Rows that wait in slots: as Python puts them in and kernels take them out."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.packed import parts as parts_module
from differential.columns.packed.block import Block
from differential.columns.packed.parts import words_in
from differential.compiled_loops import slots as slots_module
from differential.compiled_loops.slots import Slots
from differential.kernels.compiled_loops.layout import (
    FAR,
    S_AT,
    S_COMPONENTS,
    S_LEAST,
    S_NEXT,
    S_ROOM,
    STATE,
    X_BOUND,
    X_COUNTERS,
    X_NOW,
)
from differential.kernels.compiled_loops.slots import drop_rows_at, least_of, next_of, rows_at, rows_of
from progress.times.anchor import Rebase

COUNTERS = 3
"""The bits of a time below its epoch."""

Row = tuple[int, int, int]
"""A word, a time, a difference."""

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 15), st.integers(-2, 2)), max_size=200)


def _words(rows: list[Row]) -> np.ndarray:
    return np.array(rows, np.int64).reshape(-1, 3).T.copy()


def _rows(words: np.ndarray) -> list[Row]:
    return [(int(a), int(b), int(c)) for a, b, c in words.T.tolist()]


def _next(rows: list[Row], bound: int) -> int:
    return min([time & COUNTERS for _, time, _ in rows if time < bound], default=FAR)


@given(ROWS, ROWS, st.integers(0, 3), st.integers(0, 4))
def test_rows_of_one_iteration_and_all_closed_epochs_are_taken_out_and_the_others_stay_in_order(
    first: list[Row], second: list[Row], counters: int, closed: int
) -> None:
    bound = closed * (COUNTERS + 1)
    state = np.zeros(STATE, np.int64)
    state[[X_BOUND, X_COUNTERS, X_NOW]] = bound, COUNTERS, counters
    slots = Slots(COUNTERS)
    slots.bound = bound
    slots.add(3)
    slot = slots.add(3)
    slots.put(slot, _words(first))
    slots.put(slot, _words(second))
    every = first + second
    assert _rows(rows_of(slots.table, slot)) == every
    assert slots.least(slot) == min([row[1] for row in every], default=FAR)
    assert slots.table[slot, S_NEXT] == next_of(slots.table, slot, 1, state) == _next(every, bound)
    turn = [row for row in every if row[1] < bound and row[1] % (COUNTERS + 1) == counters]
    assert _rows(rows_at(slots.table, slot, 1, state)) == turn
    drop_rows_at(slots.table, slot, 1, state)
    left = [row for row in every if row not in turn]
    assert slots.table[slot, S_NEXT] == _next(left, bound)
    assert slots.rows(slot) == len(left)
    assert slots.least(slot) == min([row[1] for row in left], default=FAR)
    assert _rows(slots.take(slot)) == left
    assert (
        slots.table[slot, S_NEXT] == slots.least(slot) == FAR and slots.rows(slot) == 0 and slots.rows(0) == 0
    )


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_least_of_all_is_that_of_what_waits_in_any_slot(order: tuple[int, ...]) -> None:
    slots = Slots(COUNTERS)
    for slot in range(3):
        assert slots.add(3) == slot
    for number, slot in enumerate(order):
        assert least_of(slots.table) == (FAR if number == 0 else 20 - number + 1)
        slots.put(slot, _words([(1, 30, 1), (2, 20 - number, 1)]))
    for number, slot in enumerate(order[::-1]):
        assert least_of(slots.table) == 18 + number
        slots.take(slot)
    assert least_of(slots.table) == FAR


@pytest.mark.parametrize("held", [0, 1, 40])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_what_fills_the_room_of_a_slot_to_the_last_row_or_is_one_too_many_is_there(
    held: int, over: int
) -> None:
    slots = Slots(COUNTERS)
    slot = slots.add(3)
    room = int(slots.table[slot, S_ROOM])
    rows = [(number, 4 + number, 1) for number in range(room + over)]
    slots.put(slot, _words(rows[:held]))
    slots.put(slot, _words(rows[held:]))
    assert slots.table[slot, S_ROOM] > room if over > 0 else slots.table[slot, S_ROOM] == room
    assert _rows(rows_of(slots.table, slot)) == rows


@pytest.mark.parametrize("time", [-1, -2, 1])
def test_times_are_in_the_column_that_is_said(time: int) -> None:
    slots = Slots(COUNTERS)
    slots.bound = 16
    slot = slots.add(4)
    words = np.array([[1, 1], [31, 30], [41, 40], [51, 50]])
    words[time] = 9, 14
    slots.put(slot, words, time)
    assert slots.table[slot, S_LEAST] == 9 and slots.table[slot, S_NEXT] == 1


@given(ROWS, st.sampled_from([0b1100, 0b1000, 0b1111, 0]), st.sampled_from([0, 4, 3]))
def test_rows_that_leave_are_moved_and_summed_as_long_as_they_are_few(
    rows: list[Row], keep: int, add: int
) -> None:
    slots = Slots(COUNTERS)
    slot = slots.add(3)
    slots.put(slot, _words(rows))
    want: dict[tuple[int, int], int] = defaultdict(int)
    for word, time, diff in rows:
        want[word, (time & keep) + add] += diff
    moved = slots.take_moved(slot, keep, add)
    assert moved is not None
    found, least = moved
    assert _rows(found) == [(*row, diff) for row, diff in sorted(want.items()) if diff]
    assert least == min([row[1] for row in _rows(found)], default=FAR)
    assert slots.rows(slot) == 0 and slots.least(slot) == slots.table[slot, S_NEXT] == FAR


def test_rows_that_leave_and_are_too_often_there_are_refused() -> None:
    slots = Slots(COUNTERS)
    slot = slots.add(3)
    slots.put(slot, _words([(1, 4, 2**62), (1, 5, 2**62)]))
    with pytest.raises(OverflowError):
        slots.take_moved(slot, 0b1100, 0)


def test_memory_of_many_rows_is_given_back() -> None:
    slots = Slots(COUNTERS)
    slot = slots.add(2)
    many = np.zeros((2, 100_000), np.int64)
    slots.put(slot, many)
    assert slots.take(slot).shape == many.shape
    assert slots.table[slot, 2] < 1_000
    slots.put(slot, many[:, :3])
    assert rows_of(slots.table, slot).shape == (2, 3)


def test_kernels_are_told_of_the_memory_that_follows_what_was_handed_over() -> None:
    """Rows whose time is elsewhere than usual are not packed, however many."""
    slots = Slots(COUNTERS)
    slot = slots.add(2)
    many = np.arange(200_000).reshape(2, -1)
    slots.put(slot, many, -1)
    assert slots.take(slot).tolist() == many.tolist()
    assert slots.table[slot, S_AT] == slots._arrays[slot].ctypes.data
    assert slots.table[slot, S_ROOM] == slots._arrays[slot].shape[1] < 1_000


def test_rows_that_were_taken_stay_as_they_are_whatever_comes_next() -> None:
    slots = Slots(COUNTERS)
    slot = slots.add(3)
    rows = [(1, 4, 1), (2, 5, 1)]
    slots.put(slot, _words(rows))
    taken = slots.take(slot)
    slots.put(slot, _words([(8, 8, 8)] * 2))
    assert _rows(taken) == rows


def test_kernels_are_told_of_how_many_components_rows_are() -> None:
    slots = Slots(COUNTERS)
    made = [slots.add(4, components) for components in (0, 3)]
    assert slots.table[made, S_COMPONENTS].tolist() == [0, 3]


def test_room_for_many_rows_goes_when_a_span_is_over_unless_some_still_wait() -> None:
    slots = Slots(COUNTERS)
    few, many, waiting = (slots.add(3) for _ in range(3))
    rows = [(number, 2, 1) for number in range(5_000)]
    slots.put(few, _words(rows[:200]))
    for slot in (many, waiting):
        slots.put(slot, _words(rows))
    for slot in (few, many):
        slots.take(slot)
    assert slots.table[many, S_ROOM] >= 5_000, "what comes in the next iteration has room"
    slots.tidy()
    assert slots.table[many, S_ROOM] < 200 <= slots.table[few, S_ROOM]
    assert _rows(rows_of(slots.table, waiting)) == rows
    slots.put(many, _words(rows[:300]))
    assert _rows(slots.take(many)) == rows[:300]
    slots.take(waiting)
    slots.tidy()
    assert slots.table[waiting, S_ROOM] < 200


def test_words_count_from_a_later_epoch() -> None:
    slots = Slots(COUNTERS)
    slot = slots.add(3)
    slots.put(slot, _words([(7, 9, 1), (8, 8, 1)]))
    slots.rebase(Rebase(2, 2), slot)
    assert _rows(slots.look(slot)) == [(7, 1, 1), (8, 0, 1)]
    assert slots.least(slot) == 0


@given(st.lists(st.tuples(ROWS, st.sampled_from(["put", "put packed", "rebase"])), max_size=8), st.booleans())
def test_many_rows_are_packed_and_are_all_there(steps: list[tuple[list[Row], str]], in_parts: bool) -> None:
    """Behind what is packed there are always more rows than a kernel takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots_module, "SLOT_LOOSE_ROWS_MAX", 12)
        patch.setattr(slots_module, "STEP_ROWS_MAX", 4)
        patch.setattr(parts_module, "PACKED_ROWS", 7)
        slots, every = Slots(COUNTERS), list[Row]()
        slots.bound = 4
        slot = slots.add(3)
        for given_rows, how in steps:
            rows = given_rows
            if how == "rebase":
                if all(time >= 4 for _, time, _ in every):
                    slots.rebase(Rebase(1, 2), slot)
                    every = [(a, time - 4, c) for a, time, c in every]
            elif how == "put packed" and rows:
                rows = [(a, rows[0][1], c) for a, _, c in rows]
                blocks = [Block(_words(rows[at : at + 7])) for at in range(0, len(rows), 7)]
                slots.put_packed(slot, blocks)
                every += rows
            else:
                slots.put(slot, _words(rows))
                every += rows
            looked = [row for words in slots.looks(slot) for row in _rows(words)]
            assert sorted(looked) == sorted(every)
            assert slots.least(slot) == min([row[1] for row in every], default=FAR)
            assert not slots.packed or slots.rows(slot) > 4
            slots.table[slot, S_NEXT] = FAR  # as if a kernel had looked at none of them
            slots.find_packed()
            behind = [row for block in slots.packed.get(slot, []) for row in _rows(block.words())]
            assert slots.table[slot, S_NEXT] == _next(behind, slots.bound)
        taken = slots.take_parts(slot) if in_parts else [slots.take(slot)]
        assert sorted(row for words in words_in(taken) for row in _rows(words)) == sorted(every)
        assert slots.rows(slot) == 0 and slots.take(slot).shape == (3, 0)


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 12 rows are packed, by blocks of 7; a kernel takes 4."""
    monkeypatch.setattr(slots_module, "SLOT_LOOSE_ROWS_MAX", 12)
    monkeypatch.setattr(slots_module, "STEP_ROWS_MAX", 4)
    monkeypatch.setattr(parts_module, "PACKED_ROWS", 7)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("earliest", [0, 1])
def test_words_of_packed_rows_count_from_a_later_epoch(earliest: int) -> None:
    slots = Slots(COUNTERS)
    slot = slots.add(3)
    rows = [[(number, 12 + part, 1) for number in range(8 - part)] for part in range(2)]
    rows[earliest][3] = (9, 9, 1)
    for each in rows:
        slots.put(slot, _words(each))
    assert slots.packed[slot] and slots.rows(slot) == 5 and slots.least(slot) == 9
    slots.rebase(Rebase(2, 2), slot)
    assert slots.least(slot) == 1
    moved = [(a, time - 8, c) for a, time, c in rows[0] + rows[1]]
    assert sorted(_rows(slots.take(slot))) == sorted(moved)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("rows", range(5, 30))
def test_what_is_left_as_words_is_too_much_for_a_kernel_however_many_rows_come(rows: int) -> None:
    slots = Slots(COUNTERS)
    put, put_packed = slots.add(3), slots.add(3)
    many = np.zeros((3, rows), np.int64)
    slots.put(put, many[:, :1].repeat(10, axis=1))
    slots.put(put, many)
    slots.put_packed(put_packed, [Block(many[:, at : at + 7].copy()) for at in range(0, rows, 7)])
    for slot in (put, put_packed):
        assert slots.take_moved(slot, -1, 0) is None, "that is for few"
        assert slots.rows(slot) > 4 and (slot in slots.packed or slots.rows(slot) < 13 + 7)
    assert slots.take(put).shape[1] == rows + 10 and slots.take(put_packed).shape[1] == rows


@pytest.mark.usefixtures("few_are_many")
def test_few_rows_that_have_no_room_leave_no_slot_that_a_kernel_would_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots_module, "_ROOM_FIRST", 8)
    slots = Slots(COUNTERS)
    slot = slots.add(3)
    rows = [(number, 4, 1) for number in range(80)]
    for row in rows:
        slots.put(slot, _words([row]))
        assert not slots.packed or slots.rows(slot) > 4
    assert sorted(_rows(slots.take(slot))) == rows


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("held", range(8))
def test_behind_a_packed_block_of_many_rows_there_are_more_words_than_a_kernel_takes(held: int) -> None:
    slots = Slots(COUNTERS)
    slot = slots.add(3)
    rows = [(number, 4, 1) for number in range(held + 20)]
    slots.put(slot, _words(rows[:held]))
    slots.put_packed(slot, [Block(_words(rows[held:]))])
    assert slots.packed[slot] and slots.rows(slot) > 4
    assert sorted(_rows(slots.take(slot))) == rows


@pytest.mark.usefixtures("few_are_many")
def test_only_rows_beyond_the_limit_are_packed() -> None:
    slots = Slots(COUNTERS)
    slot = slots.add(3)
    slots.put(slot, _words([(1, 4, 1)] * 6))
    slots.put(slot, _words([(1, 4, 1)] * 6))
    assert slots.rows(slot) == 12 and not slots.packed_rows
    slots.put(slot, _words([(1, 4, 1)] * 5))
    assert slots.packed_rows + slots.rows(slot) == 17 and slots.packed_rows


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("rows", [5, 11, 30])
def test_which_counters_wait_first_is_known_of_many_rows_too(order: tuple[int, int], rows: int) -> None:
    slots = Slots(COUNTERS)
    slots.bound = 4
    slot = slots.add(3)
    for counters in order:
        slots.put(slot, _words([(number, counters, 1) for number in range(rows)]))
    slots.put(slot, _words([(number, 4, 1) for number in range(rows)]))
    assert slots.table[slot, S_NEXT] == 1
