"""The traces of a compiled loop, as kernels see them: lent to a call, and taken back after it."""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.compiled_loops.layout import (
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
from differential.trace.readers import Readable, Reader
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s

__all__ = ["SUMMED_ROWS_MIN", "Traces"]

SUMMED_ROWS_MIN: Final = 512
"""Fewer rows than these a key can have without anybody minding."""


class Traces:
    """Traces that the loop writes, and what it reads of those that others write, by number."""

    def __init__(self) -> None:
        self._read: list[Trace | Reader] = []
        self._traces: list[Trace | Readable] = []
        """Of these the traces themselves, also where a reader is between."""
        self._ours: list[Trace | None] = []
        """The traces that the loop writes; None for all others."""
        self._lines: list[Int64s] = []
        """The run table of each as it was described last."""
        self._marks: list[tuple[Trace, int]] = []
        self.table: Int64s = np.zeros((0, TRACE), np.int64)

    def number(self, trace: Trace | Reader, *, is_ours: bool) -> int:
        """Return the number of a trace, or of what a reader sees of one that others write."""
        ours = None
        if is_ours:
            assert isinstance(trace, Trace)
            ours = trace
        for number, known in enumerate(self._read):
            if known is trace:
                self._ours[number] = self._ours[number] or ours
                return number
        self._read.append(trace)
        self._traces.append(trace.trace if isinstance(trace, Reader) else trace)
        self._ours.append(ours)
        self._lines.append(np.empty((0, 0), np.int64))
        self.table = np.concatenate([self.table, np.zeros((1, TRACE), np.int64)])
        return len(self._read) - 1

    def of(self, number: int) -> Trace | Reader:
        """Return the trace of a number."""
        return self._read[number]

    def lend(self) -> bool:
        """Describe all as they are: before a call, if anything was inserted or merged by others. Return
        whether any is in other memory now.
        """
        has_moved = False
        known = self._lines
        for number, trace in enumerate(self._traces):
            # Fast path: once it was lent, the head of a trace stays where it is.
            if trace.table is not known[number] or trace.tail:
                has_moved = self._describe(number) or has_moved
        return has_moved

    def _describe(self, number: int) -> bool:
        """Describe one, unless it is where it was; return whether it was not."""
        read, ours, line = self._read[number], self._ours[number], self.table[number]
        if ours is not None:
            head, lines = ours.lend()
            line[T_HEAD], line[T_ROOM] = head.ctypes.data, head.shape[1]
        else:
            lines = read.table if isinstance(read, Reader) else read.lines
        if lines is self._lines[number]:
            return False
        self._lines[number] = lines
        line[T_TABLE], line[T_LINES], line[T_WIDTH] = lines.ctypes.data, lines.shape[0], lines.shape[1]
        if isinstance(read, Trace):
            line[T_COLUMNS], line[T_GUARDS] = read.columns, read.guards
        return True

    def take_back(self) -> None:
        """Let traces know what was inserted."""
        table = self.table
        for number, (rows, inserts) in enumerate(table[:, T_INSERTED : T_INSERTS + 1].tolist()):
            if rows:
                trace = self._ours[number]
                assert trace is not None
                table[number, T_INSERTED] = table[number, T_INSERTS] = 0
                trace.take_back(rows, inserts)

    def mark(self) -> None:
        """What is inserted from now on is what `sum_up` is about. Not into traces whose readers may look at
        them as they were.
        """
        ours = [trace for trace in self._ours if trace is not None and not isinstance(trace, SharedTrace)]
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
