"""A trace with one writer and many readers.

The writer numbers its inserts 1, 2, …: `sequence` is the last number. `readers.py` describes readers. A
shared trace consists of the settled runs, the head, and the *tail*: the inserts that some reader has not
accepted. Their lines are in this order, so that a reader at position p sees the first ones of them. Once all
positions are past a piece of the tail it *settles*: it is inserted as into any trace, and may be merged with
earlier rows. Mostly pieces settle before anybody looks, so the lines of the tail are made on demand.

Laws (`check_invariants`, and property tests):

    1. at every time t ≥ some time of a reader's hold, its view accumulates to the sum of the inserts up to
       its position, or, if it reads by time, to that of all inserts
    2. every time of a hold is ≥ one of since, the minimal times of all holds; both only advance
    3. only inserts that every position is past are settled, and no piece of the tail has a position inside
       (first - 1 < p < last)

Batches to readers carry the number of their insert and are sent in the activation that inserts them. So a
reader has all inserts that it has not accepted in its inbox at once, and goes from its position to the end in
one step: it stops inside no piece, however pieces are merged. Positions of readers that will look up no time
any more do not count. When no reader will look up anything, all rows are dropped.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Final, Self
from weakref import WeakSet

import numpy as np

from differential.columns.overflow import row_overflow
from differential.kernels.history.ready import minimal_times
from differential.kernels.rows.memory import LUB
from differential.kernels.rows.sort import sort_consolidate
from differential.thresholds import TAIL_PIECES_MAX
from differential.trace.readers import Path, Reader, ReaderReport, TraceReport
from differential.trace.tail import TailPiece
from differential.trace.trace import Trace
from differential.trace.view import View
from progress.compiled.arrays import Int64s
from progress.errors import InternalError
from progress.times.anchor import Rebase
from progress.times.word_order import word_less_equal
from timely.dictionaries import Mark

_HERE: Final = Path()


def _shown(times: Int64s) -> str:
    return ", ".join(map(hex, times.tolist())) or "the end of all time"


class SharedTrace(Trace):
    """The history of a collection that several operators read; see above. `name` is for reports."""

    def __init__(self, kw: int, vw: int, guards: int, name: str = "") -> None:
        super().__init__(kw, vw, guards)
        self.name = name
        self.sequence = 0
        self._readers: list[Reader] = []
        self.tail: list[TailPiece] = []
        self._all_lines: Int64s | None = None  # with those of the tail; None: to be made on demand
        self._pinned: WeakSet[View] = WeakSet()
        self._holds_moved = False

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """See `Trace`; readers are copied along, pieces of the tail and pinned views are shared."""
        copied = super().__deepcopy__(memo)
        copied._readers = copy.deepcopy(self._readers, memo)
        copied.tail, copied._all_lines = self.tail.copy(), None
        copied._pinned = WeakSet(self._pinned)
        return copied

    def compared(self) -> object:
        """See `Trace`."""
        readers = [(reader.name, reader.position, reader.hold) for reader in self._readers]
        return super().compared(), self.sequence, readers

    # Readers.

    def read(self, name: str, *, by_position: bool, path: Path = _HERE, hold: Int64s | None = None) -> Reader:
        """Return a new reader that sees all inserts so far. `hold`: the times that it will look up, by
        default since.

        Raises `InternalError` if a time of `hold` is not ≥ one of since.
        """
        since = self.since
        if hold is None:
            hold = since
        bounds = since.tolist()
        if not bounds or not all(
            any(word_less_equal(bound, time, self.guards) for bound in bounds) for time in hold.tolist()
        ):
            raise InternalError(
                f"{name!r} wants to read {self.name!r} from {_shown(hold)} on, but times before "
                f"{_shown(since)} may have been forgotten"
            )
        reader = Reader(self, name, hold, self.sequence if by_position else None, path)
        self._readers.append(reader)
        self._holds_moved = True
        return reader

    @property
    def readers(self) -> Sequence[Reader]:
        """All readers that have not closed."""
        return self._readers

    @property
    def is_done(self) -> bool:
        """True if all readers, at least one so far, will look up no time any more.

        New rows are not stored then.
        """
        if not self._readers:
            return len(self._since) == 0  # all have closed
        return all(reader.is_done for reader in self._readers)

    def forget(self, reader: Reader) -> None:
        """Remove a reader that has closed."""
        self._readers.remove(reader)

    def on_hold_moved(self, ends: bool) -> None:
        """A reader looks up fewer times, or, if it `ends`, none any more."""
        self._holds_moved = True
        if ends:
            if self.is_done:
                self._drop()
            else:
                self._settle_tail()  # its position does not count any more

    def on_accepted(self) -> None:
        """A position has moved on."""
        self._settle_tail()

    @property
    def since(self) -> Int64s:
        """The minimal times of all holds; before the first reader, the first time of all."""
        if self._holds_moved:
            self._holds_moved = False
            holds = [reader.hold for reader in self._readers if not reader.is_done]
            if len(holds) == 1:
                self._since = holds[0]
            elif holds:
                self._since = minimal_times(np.concatenate(holds), self.guards)
            elif self._readers:
                self._since = np.empty(0, np.int64)
        return self._since

    def set_since(self, *bounds: Int64s) -> None:
        """Raise `InternalError`: since follows from the holds."""
        raise InternalError(f"since of {self.name!r} follows from the holds of readers, not from {bounds}")

    def _look(self) -> None:
        for reader in self._readers:
            if reader.look is not None and not reader.is_done:
                reader.look()

    # Writing.

    def add(self, words: Int64s) -> int:
        """Add rows, sorted and consolidated, at least one; return the number of this insert.

        The trace keeps the array. Cost: some µs more than an insert into a trace of one operator.
        """
        assert words.shape[1] > 0, "no reader would hear of an insert without rows"
        self.sequence += 1
        for reader in self._readers:
            if reader.position is not None and not reader.is_done:
                break
        else:
            if not self.is_done:
                super().insert(words)
            return self.sequence
        self.tail.append(TailPiece(self.sequence, self.sequence, words, self.guards))
        self._all_lines = None
        if len(self.tail) > TAIL_PIECES_MAX:
            self._shorten_tail()
        return self.sequence

    def insert(self, words: Int64s) -> None:
        """Do `add`, for callers that do not need the number; do nothing without rows."""
        if words.shape[1]:
            self.add(words)

    def take_back(self, rows: int, inserts: int) -> None:
        """See `Trace`; all readers by position have accepted these inserts.

        Requires: they had accepted all earlier inserts.
        """
        assert not self.tail
        self.sequence += inserts
        for reader in self._readers:
            if reader.position is not None:
                reader.position = self.sequence
        super().take_back(rows, inserts)

    def _accepted(self) -> int:
        """Return the last insert that every reader has accepted; the very last if none reads by position."""
        least = self.sequence
        for reader in self._readers:
            position = reader.position
            if position is not None and position < least and not reader.is_done:
                least = position
        return least

    def _settle_tail(self) -> None:
        """Insert the pieces that every position is past."""
        tail = self.tail
        if not tail:
            return
        accepted = self._accepted()
        if tail[0].last > accepted:
            return
        self._all_lines = None
        while tail and tail[0].last <= accepted:
            super().insert(tail.pop(0).words)

    def _shorten_tail(self) -> None:
        """Merge neighbours, newest first, unless a position lies between, or the older one is much larger."""
        tail, positions = self.tail, {reader.position for reader in self._readers if not reader.is_done}
        for index in range(len(tail) - 2, -1, -1):
            older, newer = tail[index], tail[index + 1]
            if older.last not in positions and older.rows < 2 * newer.rows + 8:
                try:
                    tail[index : index + 2] = [older.with_newer(newer)]
                except OverflowError:
                    raise row_overflow([older.words, newer.words], self.show) from None

    def rebase(self, by: Rebase) -> None:
        """See `Trace`; the holds of readers move along.

        Times in the tail are not before the new anchor: their batches are still on their way to readers.
        """
        self.tail = [piece.rebased(by) for piece in self.tail]
        super().rebase(by)

    def _rebase_holds(self, by: Rebase) -> None:
        super()._rebase_holds(by)
        for reader in self._readers:
            reader.rebase(by)

    def _drop(self) -> None:
        """Drop all rows: no reader will look up anything."""
        self.tail.clear()
        self._all_lines = None
        super().set_since(np.empty(0, np.int64))

    def _rewrite_table(self) -> None:
        super()._rewrite_table()
        self._all_lines = None

    # Reading.

    @property
    def lines(self) -> Int64s:
        """See `Trace.lines`; those of the tail come last."""
        if not self.tail:
            return self.table
        if self._all_lines is None:
            self._all_lines = np.concatenate([self.table, np.stack([piece.line for piece in self.tail])])
        return self._all_lines

    def lines_up_to(self, position: int | None) -> Int64s:
        """Return the lines that are visible at a position; None: all lines. No copy: the first lines."""
        if position is None or not self.tail:
            return self.lines
        pieces = self._pieces_up_to(position)
        return self.lines[: len(self.table) + pieces] if pieces else self.table

    def pin(self, position: int | None = None) -> View:
        """Return the rows that are visible at a position, as a view that stays valid; None: all rows."""
        lines = self.lines_up_to(position)
        pieces = self.tail[: len(lines) - len(self.table)]
        view = View(lines, self._runs, self._head_words(), pieces)
        self._pinned.add(view)
        return view

    def _pieces_up_to(self, position: int) -> int:
        return sum(piece.last <= position for piece in self.tail)

    @property
    def exact_from(self) -> int:
        """The first line from which on no time was ever advanced.

        Those are the lines of runs that were never merged, of the head, and of the tail.
        """
        line = len(self._runs)
        while line > 0 and self._runs[line - 1].compacted == b"":
            line -= 1
        return line

    def _unpacked(self) -> Sequence[Int64s]:
        """Return the rows that are in no run, those of the tail included."""
        return (*super()._unpacked(), *(piece.words for piece in self.tail))

    def symbols(self, mark: Mark) -> None:
        """Mark all words, those of the tail included. The holder of a pinned view marks the words in it."""
        super().symbols(mark)
        for piece in self.tail:
            mark.words(piece.words[:-2])

    # Reports.

    @property
    def rows(self) -> int:
        """Number of rows, those of the tail included."""
        return super().rows + sum(piece.rows for piece in self.tail)

    @property
    def bytes(self) -> int:
        """Memory for rows, also for pinned views of postponed work."""
        return super().bytes + self._tail_bytes() + self._pinned_bytes()

    def _tail_bytes(self) -> int:
        return sum(piece.words.nbytes for piece in self.tail)

    def _pinned_bytes(self) -> int:
        counted = {id(part) for part in (*self._runs, *self.tail)}
        return sum(view.bytes_besides(counted) for view in self._pinned)

    def report(self) -> TraceReport:
        """Return how much memory the trace holds, and which readers hold it."""
        self._look()
        since = self.since.tolist()
        readers = tuple(
            ReaderReport(
                reader.name,
                tuple(reader.hold.tolist()),
                None if reader.position is None else self.sequence - reader.position,
                tuple(sorted(set(since) & set(reader.hold.tolist()))),
            )
            for reader in self._readers
        )
        return TraceReport(
            self.name,
            self.rows,
            sum(run.bytes for run in self._runs),
            self._head.nbytes,
            self._tail_bytes(),
            sum(merge.bytes for merge in self._merges.values()),
            self._pinned_bytes(),
            tuple(since),
            readers,
        )

    def check_invariants(self) -> None:
        """Assert laws 2 and 3, and the invariants of `Trace`; reads every row."""
        super().check_invariants()
        since = self._since.tolist()
        for reader in self._readers:
            for time in reader.hold.tolist():
                assert any(word_less_equal(bound, time, self.guards) for bound in since), "law 2"
            assert reader.position is None or 0 <= reader.position <= self.sequence
            for piece in self.tail:
                at = None if reader.is_done else reader.position
                assert at is None or not piece.first - 1 < at < piece.last, "law 3: a position inside a piece"
        settled = self.tail[0].first - 1 if self.tail else self.sequence
        assert settled <= self._accepted(), "law 3: settled, and not accepted by all"
        for piece in self.tail:
            assert piece.first == settled + 1 <= piece.last
            settled = piece.last
            assert np.array_equal(sort_consolidate(piece.words), piece.words)
            assert all(word_less_equal(int(t), int(piece.line[LUB]), self.guards) for t in piece.words[-2])
        assert settled == self.sequence
        for line, piece in zip(self.lines[len(self.table) :], self.tail, strict=True):
            assert np.array_equal(line, piece.line)
