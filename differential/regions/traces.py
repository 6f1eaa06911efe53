"""The traces of a region, as kernels see them: lent to a call, and taken back after it."""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.regions.layout import (
    T_COLUMNS,
    T_GUARDS,
    T_HEAD,
    T_INSERTED,
    T_INSERTS,
    T_LINES,
    T_ROOM,
    T_TABLE,
    T_WIDTH,
    TRACE,
)
from differential.trace.readers import Reader
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s

__all__ = ["SUMMED_ROWS_MIN", "Traces"]

SUMMED_ROWS_MIN: Final = 512
"""Fewer rows than these a key can have without anybody minding."""


class Traces:
    """Traces that the region writes, and what it reads of those that others write, by number."""

    def __init__(self) -> None:
        self._read: list[Trace | Reader] = []
        self._is_ours: list[bool] = []
        self._lines: list[Int64s] = []
        self._heads: list[Int64s | None] = []
        self._marks: list[tuple[Trace, int]] = []
        self.table: Int64s = np.zeros((0, TRACE), np.int64)

    def number(self, trace: Trace | Reader, *, is_ours: bool) -> int:
        """The number of a trace, or of what a reader sees of one that others write."""
        for number, known in enumerate(self._read):
            if known is trace:
                self._is_ours[number] = self._is_ours[number] or is_ours
                return number
        self._read.append(trace)
        self._is_ours.append(is_ours)
        self._lines.append(np.empty((0, 0), np.int64))
        self._heads.append(None)
        self.table = np.concatenate([self.table, np.zeros((1, TRACE), np.int64)])
        return len(self._read) - 1

    def of(self, number: int) -> Trace | Reader:
        """The trace of a number."""
        return self._read[number]

    def lend(self) -> bool:
        """Describe all as they are: before a call, if anything was inserted or merged by others. Whether any
        is in other memory now.
        """
        has_moved = False
        known, heads, is_ours = self._lines, self._heads, self._is_ours
        for number, read in enumerate(self._read):
            if is_ours[number]:
                assert isinstance(read, Trace)
                head, lines = read.lend()
                if head is not heads[number]:
                    heads[number] = head
                    self.table[number, T_HEAD] = head.ctypes.data
                    self.table[number, T_ROOM] = head.shape[1]
            else:
                lines = read.table if isinstance(read, Reader) else read.lines
            if lines is not known[number]:
                has_moved = True
                self._describe(number, read, lines)
        return has_moved

    def _describe(self, number: int, read: Trace | Reader, lines: Int64s) -> None:
        self._lines[number] = lines
        line = self.table[number]
        line[T_TABLE], line[T_LINES], line[T_WIDTH] = lines.ctypes.data, lines.shape[0], lines.shape[1]
        if isinstance(read, Trace):
            line[T_COLUMNS], line[T_GUARDS] = read.columns, read.guards

    def take_back(self) -> None:
        """Let traces know what was inserted."""
        table = self.table
        for number, rows in enumerate(table[:, T_INSERTED].tolist()):
            if rows:
                assert self._is_ours[number]
                trace = self._read[number]
                assert isinstance(trace, Trace)
                inserts: int = table.item(number, T_INSERTS)
                table[number, T_INSERTED] = table[number, T_INSERTS] = 0
                trace.take_back(rows, inserts)

    def mark(self) -> None:
        """What is inserted from now on is what `sum_up` is about. Not into traces whose readers may look at
        them as they were.
        """
        ours = [
            trace
            for trace, is_ours in zip(self._read, self._is_ours, strict=True)
            if is_ours and isinstance(trace, Trace) and not isinstance(trace, SharedTrace)
        ]
        self._marks = [(trace, trace.inserted) for trace in ours]

    def sum_up(self) -> None:
        """Let what was inserted since `mark` be as if at times about which somebody may still ask, if it is
        much. Not between `lend` and `take_back`.
        """
        for trace, before in self._marks:
            if trace.inserted - before >= SUMMED_ROWS_MIN:
                trace.sum_up(trace.inserted - before)
        self._marks = []

    def make_room(self, number: int, rows: int) -> bool:
        """Let the head of one be a run of its own; whether so many rows fit into a new one."""
        trace = self._read[number]
        assert isinstance(trace, Trace)
        trace.freeze_head()
        return rows <= int(self.table[number, T_ROOM])

    def exact_from(self, number: int) -> int:
        """See `SharedTrace.exact_from`."""
        trace = self._read[number]
        assert isinstance(trace, SharedTrace)
        return trace.exact_from
