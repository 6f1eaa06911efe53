"""Readers of a shared trace: what each may still look up, and how far it has come.

    hold       antichain of times: the reader will look up no time that is not ≥ one of them
    position   for readers by the sequence of inserts (joins): they have accepted, and see, all inserts up to
               this number, and no others. None for readers by time (reduces), which see every row: a row that
               is not complete counts at no time that they look up.

A reader inside loops that the trace is not in has longer times than the trace. Its hold is then that of the
outer time: a lookup at (e, i) needs the rows up to e. A reader of a collection that comes back one iteration
later (`delay`) looks up at (e, i) what the trace has at (e, i - 1).

The invariants are in `shared.py`, which holds the readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from differential.kernels.history.times import earlier_times, minimal_times
from differential.kernels.rows.memory import HEADER, LUB
from differential.trace.view import View
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase

KEEP_ALL: Final = (1 << 63) - 1
"""The mask of a reader in the scope of its trace."""


@dataclass(frozen=True)
class Path:
    """How times of a trace become times of its reader: t + delay; entering a loop changes no time word.

    keep    value bits of the levels that the trace has
    delay   0, or one iteration of the innermost loop; `counter` has the value bits of that loop
    """

    keep: int = KEEP_ALL
    delay: int = 0
    counter: int = 0


class Readable(Protocol):
    """The trace as a reader uses it; see `SharedTrace`."""

    guards: int
    sequence: int
    table: Int64s

    @property
    def tail(self) -> Sequence[object]:
        """Inserts that are not in `table` yet."""
        ...

    @property
    def exact_from(self) -> int:
        """First line of the table from which on no time was ever advanced."""
        ...

    def lines_up_to(self, position: int | None) -> Int64s:
        """Return the lines that are visible at a position; None: all lines."""
        ...

    def pin(self, position: int | None) -> View:
        """Return the rows that are visible at a position, as a view that stays valid."""
        ...

    def words(self) -> Int64s:
        """Return all rows."""
        ...

    def on_accepted(self) -> None:
        """Take note that a position has moved on."""
        ...

    def on_hold_moved(self, ends: bool) -> None:
        """Take note that a hold has moved on, perhaps to its end."""
        ...

    def forget(self, reader: Reader) -> None:
        """Remove a reader that has closed."""
        ...


class Reader:
    """One reader of a trace; `SharedTrace.read` makes it.

    Setting a frontier, which happens at every step, only stores it; the hold that follows from it is computed
    on demand, when a merge begins.
    """

    __slots__ = (
        "_frontiers",
        "_hold",
        "asks_corners",
        "is_done",
        "look",
        "name",
        "path",
        "position",
        "trace",
    )

    def __init__(self, trace: Readable, name: str, hold: Int64s, position: int | None, path: Path) -> None:
        self.trace = trace
        self._hold = hold
        self._frontiers: tuple[Int64s, ...] | None = None
        self.asks_corners = False
        """See `Trace.asks_corners`."""
        self.look: Callable[[], None] | None = None
        """See `Trace.look`."""
        self.name = name
        self.position = position
        self.path = path
        self.is_done = len(hold) == 0
        """True if it will look up no time any more."""

    @property
    def hold(self) -> Int64s:
        """The times of the trace that it may still look up, an antichain."""
        if self._frontiers is not None:
            self._hold, self._frontiers = self._hold_for(self._frontiers), None
        return self._hold

    def _hold_for(self, frontiers: tuple[Int64s, ...]) -> Int64s:
        path = self.path
        frontier = frontiers[0] if len(frontiers) == 1 else np.concatenate(frontiers)
        if path.delay:
            frontier = frontier - np.minimum(frontier & path.counter, path.delay)
        if self.asks_corners:
            # In levels of the trace: a step back in a level that the trace does not have would change
            # nothing.
            frontier = earlier_times(frontier & path.keep, self.trace.guards)
        if path.keep != KEEP_ALL or path.delay or len(frontiers) > 1:
            frontier = minimal_times(frontier & path.keep, self.trace.guards)
        return frontier

    @property
    def table(self) -> Int64s:
        """Lines of the rows that it sees, with times as the trace has them.

        Valid until the trace changes; see `pin`.
        """
        return self.trace.lines_up_to(self.position)

    @property
    def exact_from(self) -> int:
        """The first of these lines from which on all times are the original times of the rows."""
        return self.trace.exact_from

    def words(self) -> Int64s:
        """Return all rows of the trace, those not accepted included."""
        return self.trace.words()

    def pin(self) -> View:
        """Return what it sees, as a view that stays valid."""
        return self.trace.pin(self.position)

    def accept(self, sequence: int) -> None:
        """See all inserts up to `sequence` from now on. Requires: `sequence` is not before the position."""
        assert self.position is not None and self.position <= sequence <= self.trace.sequence
        self.position = sequence
        self.trace.on_accepted()

    def set_frontier(self, *frontiers: Int64s) -> None:
        """Promise to look up no time, of the reader's scope, that is not ≥ an element of some frontier."""
        self._frontiers = frontiers
        self._moved(not any(map(len, frontiers)))

    def set_hold(self, hold: Int64s) -> None:
        """Promise to look up no time of the trace that is not ≥ one of `hold`. Requires: `hold` is ≥ the last
        one.
        """
        self._hold, self._frontiers = hold, None
        self._moved(len(hold) == 0)

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch, before which it will not look, whichever way its frontier is
        stored.
        """
        self._hold = by.early(self._hold)
        if self._frontiers is not None:
            self._frontiers = tuple(map(by.early, self._frontiers))

    def _moved(self, is_done: bool) -> None:
        ends, self.is_done = is_done and not self.is_done, is_done
        self.trace.on_hold_moved(ends)

    def close(self) -> None:
        """End reading."""
        self.set_hold(np.empty(0, np.int64))
        self.trace.forget(self)


def delayed(lines: Int64s, delay: int) -> Int64s:
    """Return a copy of lines of a run table in which every time is later by `delay`."""
    shifted = lines.copy()
    time = HEADER + 3 * ((lines.shape[1] - HEADER) // 3 - 2)
    shifted[:, time + 2] += delay
    shifted[:, LUB] += delay
    return shifted


@dataclass(frozen=True)
class ReaderReport:
    """What one reader makes a trace retain.

    hold         the times that it may still look up, as words
    lag          number of inserts that it has not accepted; None for readers by time, which accept none
    holds_back   minimal times of since that it holds: they stay until it moves on
    """

    name: str
    hold: tuple[int, ...]
    lag: int | None
    holds_back: tuple[int, ...]


@dataclass(frozen=True)
class TraceReport:
    """The memory of a trace, and the readers that hold it.

    `pinned_bytes`: memory that only pinned views of postponed work hold.
    """

    name: str
    rows: int
    run_bytes: int
    head_bytes: int
    tail_bytes: int
    merge_bytes: int
    pinned_bytes: int
    since: tuple[int, ...]
    readers: tuple[ReaderReport, ...]

    def to_plain(self, unpack: Callable[[int], Sequence[int]]) -> dict[str, object]:
        """Return the report as plain values; `unpack` makes a time from a word."""

        def times(words: Iterable[int]) -> list[list[int]]:
            return [list(unpack(word)) for word in words]

        return {
            "name": self.name,
            "rows": self.rows,
            "bytes": self.bytes,
            "run_bytes": self.run_bytes,
            "head_bytes": self.head_bytes,
            "tail_bytes": self.tail_bytes,
            "merge_bytes": self.merge_bytes,
            "pinned_bytes": self.pinned_bytes,
            "since": times(self.since),
            "readers": [
                {
                    "name": reader.name,
                    "hold": times(reader.hold),
                    "lag": reader.lag,
                    "holds_back": times(reader.holds_back),
                }
                for reader in self.readers
            ],
        }

    @property
    def bytes(self) -> int:
        """Total memory."""
        parts = (self.run_bytes, self.head_bytes, self.tail_bytes, self.merge_bytes, self.pinned_bytes)
        return sum(parts)
