"""The traces of a compiled loop as kernels see them: lent before a call, taken back after it."""

from __future__ import annotations

from typing import Self

import numpy as np

from differential.compiled_loops.copying import copied
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
from differential.thresholds import SPAN_SUMMED_ROWS_MIN
from differential.trace.readers import Readable, Reader
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s

__all__ = ["Traces"]


class Traces:
    """Traces that the loop writes, and its views of traces that others write, by number."""

    def __init__(self) -> None:
        self._read: list[Trace | Reader] = []
        self._traces: list[Trace | Readable] = []
        """The trace behind each entry of `_read`, also where that is a reader."""
        self._ours: list[Trace | None] = []
        """The traces that the loop writes; None for all others."""
        self._lines: list[Int64s] = []
        """The run table of each trace as last described."""
        self._marks: list[tuple[Trace, int]] = []
        self.table: Int64s = np.zeros((0, TRACE), np.int64)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return a table of copied traces, which `lend` describes before anybody looks."""
        traces = copied(self, memo)
        traces._lines = [np.empty((0, 0), np.int64) for _ in self._lines]
        return traces

    def number(self, trace: Trace | Reader, *, is_ours: bool) -> int:
        """Return the number of a trace that the loop writes, or of its reader of one that others write."""
        ours = None
        if is_ours:
            assert isinstance(trace, Trace)
            ours = trace
        for number, read in enumerate(self._read):
            if read is trace:
                self._ours[number] = self._ours[number] or ours
                return number
        self._read.append(trace)
        self._traces.append(trace.trace if isinstance(trace, Reader) else trace)
        self._ours.append(ours)
        self._lines.append(np.empty((0, 0), np.int64))
        self.table = np.concatenate([self.table, np.zeros((1, TRACE), np.int64)])
        return len(self._read) - 1

    def of(self, number: int) -> Trace | Reader:
        """Return the trace with a number."""
        return self._read[number]

    def lend(self) -> bool:
        """Describe traces as they are now, before a call; return True if any has moved to other memory.

        That happens when rows were inserted or merged outside of the kernel.
        """
        has_moved = False
        lines = self._lines
        for number, trace in enumerate(self._traces):
            # Fast path: once it was lent, the head of a trace stays where it is.
            if trace.table is not lines[number] or trace.tail:
                has_moved = self._describe(number) or has_moved
        return has_moved

    def _describe(self, number: int) -> bool:
        """Describe one trace; return False if it is where it was."""
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
        """Tell traces how many rows the kernel has inserted."""
        table = self.table
        for number, (rows, inserts) in enumerate(table[:, T_INSERTED : T_INSERTS + 1].tolist()):
            if rows:
                trace = self._ours[number]
                assert trace is not None
                table[number, T_INSERTED] = table[number, T_INSERTS] = 0
                trace.take_back(rows, inserts)

    def mark(self) -> None:
        """Note where `sum_up` starts: it compacts what is inserted from now on.

        Shared traces are left out: their readers may look at them as they were.
        """
        ours = [trace for trace in self._ours if trace is not None and not isinstance(trace, SharedTrace)]
        self._marks = [(trace, trace.inserted) for trace in ours]

    def sum_up(self) -> None:
        """Compact rows inserted since `mark`, if they are many.

        They become as if at times that somebody may still ask about. Not to be called between `lend` and
        `take_back`.
        """
        for trace, before in self._marks:
            if trace.inserted - before >= SPAN_SUMMED_ROWS_MIN:
                trace.sum_up(trace.inserted - before)
        self._marks = []

    def inserted_since_mark(self) -> list[int]:
        """Return for each trace that was marked how many rows were inserted since."""
        return [trace.inserted - before for trace, before in self._marks]

    def make_room(self, number: int, rows: int) -> bool:
        """Make the head of a trace a run of its own; return True if `rows` rows fit into a new head."""
        trace = self._read[number]
        assert isinstance(trace, Trace)
        trace.freeze_head()
        return rows <= int(self.table[number, T_ROOM])

    def exact_from(self, number: int) -> int:
        """See `SharedTrace.exact_from`."""
        trace = self._read[number]
        assert isinstance(trace, SharedTrace)
        return trace.exact_from
