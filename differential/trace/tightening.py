"""A run that merging has made gets columns as narrow as what they have come to hold.

Memory for the result of a merge is reserved before anybody knows what it will be: for the rows of both
sources, for every time between the earliest and the latest, for sums of differences. Mostly most of that is
never there: what cancels leaves no row, times become one, and differences stay what they were. So when all is
written one looks what it was, and if it is worth it, copies the columns, each of which goes back to the
system when it has been.

It is done in pieces, as merging is, since it is part of the same debt.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.packed.block import reserve
from differential.kernels.rows.columns import column_bounds, copy_column
from differential.kernels.rows.memory import HEADER, LUB, ROWS
from differential.kernels.rows.room import give_back
from progress.compiled.arrays import Int64s

__all__ = ["SAVED_SHARE", "Tightening"]

SAVED_SHARE: Final = 8
"""Columns are copied if that saves at least one part of so many of what was reserved."""

_SAVED_BYTES_MIN: Final = 1 << 12

_LOOKS_PER_ROW: Final = 16
_COPIES_PER_ROW: Final = 8
"""So many values are looked at, or copied, in the time in which a row is merged."""


class Tightening:
    """Of the `rows` rows that stand in `memory`, as `line` says, at least one; `ranges`: bounds of their
    columns. When it is done, these four are what the run is made of.

    `work(budget)` until `is_done`.
    """

    __slots__ = ("_at", "_column", "_copy", "_seen", "line", "memory", "ranges", "rows")

    def __init__(self, line: Int64s, ranges: Int64s, memory: Int64s, rows: int) -> None:
        self.line = line
        self.ranges = ranges
        self.memory = memory
        self.rows = rows
        self.line[ROWS] = rows
        self._column: int = len(ranges) - 2  # time, then difference
        self._at = 0
        self._seen = _nothing_seen()
        self._copy: tuple[Int64s, Int64s] | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to look at, or to copy."""
        return self._column == len(self.ranges)

    def work(self, budget: int) -> int:
        """Do what takes about as long as merging `budget` rows; returns how many rows that is."""
        left = budget
        while left > 0 and not self.is_done:
            left -= self._look(left) if self._copy is None else self._copy_some(left)
        return budget - left

    def _look(self, budget: int) -> int:
        """See what time or difference is."""
        column = self._column
        low, high = self.ranges[column]
        if low == high:
            self._seen[:] = low
            values, self._at = 0, self.rows
        else:
            values = min(_LOOKS_PER_ROW * budget, self.rows - self._at)
            column_bounds(self.line.reshape(1, -1), 0, column, self._at, values, self._seen)
            self._at += values
        if self._at == self.rows:
            self.ranges[column] = self._seen
            self._column, self._at, self._seen = column + 1, 0, _nothing_seen()
            if self.is_done:
                self._begin_to_copy()
        return -(-values // _LOOKS_PER_ROW)

    def _begin_to_copy(self) -> None:
        """Reserve what is needed, if it is enough less."""
        line, memory = reserve(self.rows, self.ranges)
        saved = self.memory.nbytes - memory.nbytes
        if saved < _SAVED_BYTES_MIN or SAVED_SHARE * saved < self.memory.nbytes:
            return
        line[[ROWS, LUB]] = self.line[[ROWS, LUB]]
        self._copy, self._column = (line, memory), 0

    def _copy_some(self, budget: int) -> int:
        """Copy some of a column, or pass one by in which all are the same."""
        assert self._copy is not None
        line, memory = self._copy
        column = self._column
        if line[HEADER + 3 * column + 1] == 0:
            values, self._at = 0, self.rows
        else:
            values = min(_COPIES_PER_ROW * budget, self.rows - self._at)
            copy_column(np.stack([self.line, line]), column, self._at, values)
            self._at += values
        if self._at == self.rows:
            self._column, self._at = column + 1, 0
            if self.is_done:
                self.line, self.memory, self._copy = line, memory, None
            else:  # whatever lies before where the next column begins is not read any more
                end = int(self.line[HEADER + 3 * column + 3]) - self.memory.ctypes.data
                give_back(self.memory[: end // 8])
        return -(-values // _COPIES_PER_ROW)


def _nothing_seen() -> Int64s:
    """The bounds of no values."""
    return np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min])
