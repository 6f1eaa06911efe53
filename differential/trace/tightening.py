"""Narrowing the columns of a merged run to the values that they contain.

A merge reserves memory for its result before the result is known: for the rows of both sources, for every
time between the earliest and the latest, for sums of differences. Mostly most of that stays unused: rows that
cancel disappear, times become one, and differences stay small. So when all is written, tightening finds the
bounds of times and differences, and if narrower columns are worth it, copies all columns; the memory of a
column goes back to the system when the column has been copied.

It works in pieces, as merging does, since it is part of the same debt.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.packed.block import reserve, reserved_bytes
from differential.kernels.rows.columns import column_bounds, copy_column
from differential.kernels.rows.memory import HEADER, LUB, ROWS
from differential.kernels.rows.room import give_back
from progress.compiled.arrays import Int64s

__all__ = ["SAVED_SHARE", "Tightening"]

SAVED_SHARE: Final = 8
"""Columns are copied if that saves at least one part in this many of the reserved memory."""

_SAVED_BYTES_MIN: Final = 1 << 12

_LOOKS_PER_ROW: Final = 16
_COPIES_PER_ROW: Final = 8
"""Numbers of values that are examined, or copied, in the time in which one row is merged."""

_NOTHING: Final[Int64s] = np.array([(1 << 63) - 1, -(1 << 63)], np.int64)
"""The bounds of no values."""


class Tightening:
    """Narrows the columns of `rows` rows, at least one, in `memory`, as `line` describes them.

    `ranges`: bounds of their columns. When it is done, these four make up the run. Call `work(budget)` until
    `is_done`.
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
        self._seen = _NOTHING.copy()
        self._copy: tuple[Int64s, Int64s] | None = None

    @property
    def is_done(self) -> bool:
        """True if nothing is left to examine or to copy."""
        return self._column == len(self.ranges)

    def work(self, budget: int) -> int:
        """Do as much work as merging `budget` rows takes; return how many rows that is."""
        left = budget
        while left > 0 and not self.is_done:
            left -= self._look(left) if self._copy is None else self._copy_some(left)
        return budget - left

    def _look(self, budget: int) -> int:
        """Find the bounds of the times or differences."""
        column, values = self._column, 0
        low, high = self.ranges[column].tolist()
        if low != high:
            values = min(_LOOKS_PER_ROW * budget, self.rows - self._at)
            column_bounds(self.line.reshape(1, -1), 0, column, self._at, values, self._seen)
            self._at += values
            if self._at < self.rows:
                return -(-values // _LOOKS_PER_ROW)
            self.ranges[column] = self._seen
            self._at, self._seen = 0, _NOTHING.copy()
        self._column = column + 1
        if self.is_done:
            self._begin_to_copy()
        return -(-values // _LOOKS_PER_ROW)

    def _begin_to_copy(self) -> None:
        """Reserve the memory that is needed, if that is less by enough."""
        size = self.memory.nbytes
        saved = size - reserved_bytes(self.rows, self.ranges)
        if saved < _SAVED_BYTES_MIN or SAVED_SHARE * saved < size:
            return
        line, memory = reserve(self.rows, self.ranges)
        line[[ROWS, LUB]] = self.line[[ROWS, LUB]]
        self._copy, self._column = (line, memory), 0

    def _copy_some(self, budget: int) -> int:
        """Copy some of a column, or skip a column with a single value."""
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
            else:  # nothing reads the memory before the next column any more
                end = int(self.line[HEADER + 3 * column + 3]) - self.memory.ctypes.data
                give_back(self.memory[: end // 8])
        return -(-values // _COPIES_PER_ROW)
