"""Rows that wait in slots: as Python puts them in and kernels take them out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.kernels.regions.layout import FAR
from differential.kernels.regions.slots import drop_rows_at, rows_at, rows_of
from differential.regions.slots import Slots
from progress.times.anchor import Rebase

Row = tuple[int, int, int]
"""A word, a time, a difference."""

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(-2, 2)), max_size=200)


def _words(rows: list[Row]) -> np.ndarray:
    return np.array(rows, np.int64).reshape(-1, 3).T.copy()


def _rows(words: np.ndarray) -> list[Row]:
    return [(int(a), int(b), int(c)) for a, b, c in words.T.tolist()]


@given(ROWS, ROWS, st.integers(0, 4))
def test_rows_of_one_time_are_taken_out_and_the_others_stay_in_order(
    first: list[Row], second: list[Row], time: int
) -> None:
    slots = Slots()
    slots.add(3)
    slot = slots.add(3)
    slots.put(slot, _words(first))
    slots.put(slot, _words(second))
    every = first + second
    assert _rows(rows_of(slots.table, slot)) == every
    assert slots.least(slot) == min([row[1] for row in every], default=FAR)
    assert _rows(rows_at(slots.table, slot, 1, time)) == [row for row in every if row[1] == time]
    drop_rows_at(slots.table, slot, 1, time)
    left = [row for row in every if row[1] != time]
    assert slots.rows(slot) == len(left)
    assert slots.least(slot) == min([row[1] for row in left], default=FAR)
    assert _rows(slots.take(slot)) == left
    assert slots.rows(slot) == 0 and slots.least(slot) == FAR and slots.rows(0) == 0


def test_memory_of_many_rows_is_given_back() -> None:
    slots = Slots()
    slot = slots.add(2)
    many = np.zeros((2, 100_000), np.int64)
    slots.put(slot, many)
    assert slots.take(slot).shape == many.shape
    assert slots.table[slot, 2] < 1_000
    slots.put(slot, many[:, :3])
    assert rows_of(slots.table, slot).shape == (2, 3)


def test_words_count_from_a_later_epoch() -> None:
    slots = Slots()
    slot = slots.add(3)
    slots.put(slot, _words([(7, 9, 1), (8, 8, 1)]))
    slots.rebase(Rebase(2, 2), slot)
    assert _rows(slots.look(slot)) == [(7, 1, 1), (8, 0, 1)]
    assert slots.least(slot) == 0
