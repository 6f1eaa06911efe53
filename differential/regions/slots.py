"""Where rows of a region wait: arrays that Python owns and a kernel fills."""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.regions.layout import (
    FAR,
    S_AT,
    S_COLUMNS,
    S_LEAST,
    S_NEXT,
    S_ROOM,
    S_ROWS,
    SLOT,
)
from differential.kernels.rows.room import lengthened, shortened
from progress.arrays import Int64s
from progress.times.anchor import Rebase

__all__ = ["Slots"]

_ROOM_FIRST: Final = 64
_ROWS_FEW: Final = 16
_ROOM_KEPT: Final = 1 << 16


class Slots:
    """All slots of a region, by number. `table` is what kernels see of them.

    counters: the bits of a time word that are not its epoch's
    """

    def __init__(self, counters: int) -> None:
        self._counters = counters
        self._arrays: list[Int64s] = []
        self.table: Int64s = np.zeros((0, SLOT), np.int64)
        self.bound = 0
        """The epochs before that of this time word are closed."""

    def __len__(self) -> int:
        return len(self._arrays)

    def add(self, columns: int) -> int:
        """A new one for rows of so many columns; returns its number."""
        self._arrays.append(np.empty((columns, _ROOM_FIRST), np.int64))
        self.table = np.concatenate([self.table, np.zeros((1, SLOT), np.int64)])
        number = len(self._arrays) - 1
        self.table[number, S_COLUMNS] = columns
        self.table[number, S_LEAST] = self.table[number, S_NEXT] = FAR
        self._describe(number)
        return number

    def rows(self, slot: int) -> int:
        """How many rows wait there."""
        return int(self.table[slot, S_ROWS])

    def put(self, slot: int, words: Int64s, time: int = -2) -> None:
        """Let rows wait; `time`: the column in which their time is."""
        rows = words.shape[1]
        if rows == 0:
            return
        line = self.table[slot]
        held, known = int(line[S_ROWS]), int(line[S_LEAST])
        if self._arrays[slot].shape[1] < held + rows:
            self.make_room(slot, held + rows)
        self._arrays[slot][:, held : held + rows] = words
        line[S_ROWS] = held + rows
        # Of few rows Python's own numbers are found sooner than numpy begins.
        least = min(words[time].tolist()) if rows <= _ROWS_FEW else int(words[time].min())
        if least < known:
            line[S_LEAST] = least
        if least < self.bound:
            line[S_NEXT] = min(int(line[S_NEXT]), self.next_of(words[time]))

    def next_of(self, times: Int64s) -> int:
        """The least counters of times of closed epochs, FAR if none is of any."""
        if times.shape[0] <= _ROWS_FEW:
            return min((time & self._counters for time in times.tolist() if time < self.bound), default=FAR)
        counters = times[times < self.bound] & self._counters
        return int(counters.min()) if counters.shape[0] else FAR

    def take(self, slot: int) -> Int64s:
        """All rows, which wait no more."""
        rows, array = self.rows(slot), self._arrays[slot]
        self.table[slot, S_ROWS] = 0
        self.table[slot, S_LEAST] = self.table[slot, S_NEXT] = FAR
        if array.shape[1] <= _ROOM_KEPT:
            return array[:, :rows].copy()
        # The memory of a load is handed over, and given back behind its rows.
        self._arrays[slot] = np.empty((array.shape[0], _ROOM_FIRST), np.int64)
        self._describe(slot)
        return shortened(array, rows)

    def look(self, slot: int) -> Int64s:
        """The rows where they are: not to be kept, nor written to."""
        return self._arrays[slot][:, : self.rows(slot)]

    def make_room(self, slot: int, rows: int) -> None:
        """Let so many rows fit."""
        array = self._arrays[slot]
        if array.shape[1] >= rows:
            return
        held = self.rows(slot)
        self._arrays[slot] = lengthened(array, held, max(rows, 2 * array.shape[1]))
        self._describe(slot)

    def least(self, slot: int) -> int:
        """The least time of its rows, FAR without any."""
        return int(self.table[slot, S_LEAST])

    def least_of_all(self) -> int:
        """The least time of all rows, FAR without any."""
        return min(self.table[:, S_LEAST].tolist(), default=FAR)

    def rebase(self, by: Rebase, slot: int, time: int = -2) -> None:
        """Words of a slot count from a later epoch."""
        rows = self.rows(slot)
        if rows:
            array = self._arrays[slot]
            array[time, :rows] = by.words(array[time, :rows].copy())
            self.table[slot, S_LEAST] = int(array[time, :rows].min())

    def _describe(self, slot: int) -> None:
        array = self._arrays[slot]
        self.table[slot, S_AT], self.table[slot, S_ROOM] = array.ctypes.data, array.shape[1]
