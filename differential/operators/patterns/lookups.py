"""Lookups: the changes of one collection look up the earlier updates of another one, which is arranged.

A join of n collections is computed by n *ways*. Each way takes the changes of one collection, which look up
the others one after another. Only the arrangements that are looked up are kept. Each combination of n updates
must come out of exactly one way, so a rule decides which. Let

    origin   the time of the change that a way began with; a combination's own time is the lub of all its
             times
    before   (time, number of the collection), compared as integers and then as numbers: one order of all
             updates of all collections, the same for all ways, in which later times never come first

A row on the way of collection i with origin t meets an update of collection j at time s iff (s, j) is before
(t, i): s ≤ t as integers if j < i, s < t if j > i. So a combination comes out of the way of its last update,
and of no other.

    ready    a row waits until no update that it should meet can still come: until all times before its
             origin, as integers, are complete in the arrangement. The integers extend the order of times, so
             the least integer of a frontier is the least time that can still come.
    kept     the arrangement may be compacted up to the beginning of the epoch *before* the first that rows
             may still come from. Then updates of that epoch or later have the times that they came with, and
             earlier updates stay before it, whichever way their times are advanced. (Up to the frontier
             itself would be too far: (0, 5) seen from (1, 0) on is (1, 5), and no longer before (1, 0).)
    epochs   the lub of t and an s before t has the epoch of t; so the frontier of rows, which is about their
             times, tells the epochs of their origins

Decision 0013 has the argument at length. Rows that are too many for one activation are put off, and read the
arrangement anew: updates that have come in since are not before them, and those that they may see are kept.

This is the logic alone: words and frontiers in, words out. `half_join.py` and `fewest.py` say what a row
makes of the updates that it meets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import ClassVar, Final, Protocol

import numpy as np

from differential.columns.overflow import ShowRow, row_overflow, show_words
from differential.columns.packed.parts import Part, each_in
from differential.kernels.history.ready import lower_bounds, minimal_times
from differential.kernels.rows.sort import sort_parts
from differential.operators.join import MATCHED_PIECE_ROWS
from differential.operators.machine import Machine
from differential.operators.waiting.waiting_rows import WaitingRows
from differential.trace.readers import Reader
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

__all__ = ["ARRANGED", "ROWS", "Lookup", "LookupMachine", "LookupSource", "WaitingByOrigin", "Work"]

ROWS: Final = 0
ARRANGED: Final = 1
"""Ports of rows, and of the arrangement that they look up."""

_NO_TIMES: Final = np.empty(0, np.int64)
_TIME: Final = -2
"""The index of the time among the words of a row."""


@dataclass(frozen=True)
class Lookup:
    """How rows look up an arrangement.

    words      the number of their first words that equal the first words of an update that they meet
    origin     the index of the word that is the time at which their way began; None: it is their own time
    strictly   True if updates at the time of their origin are not before them
    flags      first words that are 0 where a key is null; such rows meet nothing
    """

    words: int
    origin: int | None
    strictly: bool
    flags: tuple[int, ...] = ()


class WaitingByOrigin:
    """Rows that wait until all times before their origins are complete; first origins first."""

    def __init__(self, origin: int | None, guards: int) -> None:
        self._origin = _TIME if origin is None else origin
        self._guards = guards
        self._parts: dict[int, list[Int64s]] = {}
        self._order: list[int] = []
        self._times: dict[int, Int64s] = {}

    def __len__(self) -> int:
        """Return the number of different origins of the rows."""
        return len(self._order)

    def add(self, words: Int64s) -> None:
        """Let rows wait, at least one. The array is kept."""
        origins = words[self._origin]
        first = int(origins[0])
        if words.shape[1] == 1 or (origins == first).all():
            self._put(first, words)
            return
        ordered = words[:, np.argsort(origins, kind="stable")]
        origins = ordered[self._origin]
        starts = np.flatnonzero(np.diff(origins, prepend=origins[0] - 1)).tolist()
        for start, stop in zip(starts, [*starts[1:], words.shape[1]], strict=True):
            self._put(int(origins[start]), ordered[:, start:stop].copy())

    def _put(self, origin: int, words: Int64s) -> None:
        if origin not in self._parts:
            heappush(self._order, origin)
            self._parts[origin] = []
            self._times[origin] = np.array([origin]) if self._origin == _TIME else _NO_TIMES
        self._parts[origin].append(words)
        if self._origin != _TIME:
            column = words.shape[0] + _TIME
            self._times[origin] = lower_bounds(words, column, self._times[origin], self._guards)

    def take(self, bound: int | None) -> list[Int64s]:
        """Remove and return the rows whose origin, as an integer, is less than `bound`; None: all rows."""
        parts: list[Int64s] = []
        while self._order and (bound is None or self._order[0] < bound):
            origin = heappop(self._order)
            parts += self._parts.pop(origin)
            del self._times[origin]
        return parts

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch, those of origins, too: an origin is of the epoch of its rows."""
        parts = [part for parts in self._parts.values() for part in parts]
        self._parts, self._order, self._times = {}, [], {}
        for part in parts:
            self.add(_moved_with_origin(part, by, self._origin))

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows that wait."""
        for parts in self._parts.values():
            for part in parts:
                mark.words(part[:-2])

    def first(self) -> int:
        """Return the first origin. Requires: some rows wait."""
        return self._order[0]

    def times(self) -> Int64s:
        """Return the minimal times of all rows, ascending. Cost: a step for each origin."""
        if len(self._times) < 2:
            return next(iter(self._times.values()), _NO_TIMES)
        return minimal_times(np.concatenate(list(self._times.values())), self._guards)


def _moved_with_origin(rows: Int64s, by: Rebase, origin: int) -> Int64s:
    """Return rows whose words count from a later epoch; `origin`: the word with their origin, or the time."""
    moved = by.rows(rows)
    if origin != _TIME:
        moved = moved.copy()
        moved[origin] = by.words(rows[origin])
    return moved


class Work:
    """Rows that may look up now, sorted. Row i meets updates with times before until[i]. Rows before
    `start` are done.
    """

    __slots__ = ("delta", "start", "until")

    def __init__(self, delta: Int64s, until: Int64s) -> None:
        self.delta = delta
        self.until = until
        self.start = 0


class LookupSource(Protocol):
    """The updates that rows look up: an arrangement, or rows that are kept only for these lookups."""

    @property
    def table(self) -> Int64s:
        """The lines of all updates."""
        ...

    def set_hold(self, hold: Int64s) -> None:
        """Learn that rows will ask only about times ≥ one of these."""
        ...


class LookupMachine(Machine):
    """Rows look up the updates of `source`, once all updates that they should meet are there; see above.

    words    the number of words of the rows that it sends, without time and diff
    epoch    the position of the lowest bit of the epoch in a time

    Rows come in at port 0; only the frontier of port 1, which is that of the arrangement, matters.

    A compiled loop works off all closed epochs together, iteration by iteration. So another order of all
    updates holds there: first those from before the loop's epoch span, then by iteration, then by epoch. It
    is the same for all ways, and later times never come first in it. From `begin_span` on it holds. So the
    arrangement may be compacted no further than to the epoch before the span, or before the one to come.
    """

    pauses: ClassVar[bool] = True

    def __init__(self, lookup: Lookup, source: LookupSource, words: int, guards: int, epoch: int) -> None:
        self.lookup = lookup
        self.guards = guards
        self._source = source
        self.epoch = epoch
        self._waiting = WaitingByOrigin(lookup.origin, guards)
        self._work: deque[Work] = deque()
        self._span: tuple[int, int] | None = None
        """In a compiled loop, the first word of its epoch span, and the word behind the span."""
        self._first_start = 0
        """No span begins before this word."""
        self._is_in_span = False
        self._closed: WaitingRows | None = None
        """Rows that wait in a compiled loop, by their times."""
        self._has_ended = False
        """True if no row will look up any more."""
        self.times: tuple[int, ...] = () if lookup.origin is None else (lookup.origin,)
        self.words = words
        self.columns = 0
        """The columns of rows that come in, time and difference included; 0: not known."""
        self.nothing: Int64s = np.empty((words + 2, 0), np.int64)
        self.show: ShowRow = show_words
        """How messages show the rows that come in."""

    @property
    def gives_times(self) -> tuple[int, ...]:
        """The indexes of the words of rows it sends that are times, too."""
        raise NotImplementedError

    def answers(self, work: Work, table: Int64s) -> tuple[Int64s, int]:
        """Return the rows that those from work.start on make of the updates that `table` describes, and the
        row to go on with: the end, or behind about MATCHED_PIECE_ROWS rows of work.
        """
        raise NotImplementedError

    def recv(self, port: int, parts: list[Part]) -> None:
        """Let rows wait; drop those with a null among their keys."""
        if port == ARRANGED:
            return
        for words in each_in(parts):
            rows = self._with_keys(words)
            if rows.shape[1] and self._span is None:
                self._waiting.add(rows)
            elif rows.shape[1]:
                self._in_loop(rows.shape[0]).add(rows)

    def _with_keys(self, words: Int64s) -> Int64s:
        for flag in self.lookup.flags:
            has_key = words[flag] != 0
            if not has_key.all():
                words = np.ascontiguousarray(words[:, has_key])
        return words

    def _in_loop(self, columns: int) -> WaitingRows:
        if self._closed is None:
            self._closed = WaitingRows(columns, self.guards)
            self._closed.show = self.show
        return self._closed

    def advance(self, *frontiers: Int64s) -> None:
        """Let rows look up that will meet no update that can still come in, by the frontier of the
        arrangement, or, in a compiled loop, by that of their barrier.
        """
        if self._span is not None:
            self._take_closed(frontiers[-1])
            return
        self.take_complete(frontiers[-1])
        if self.is_empty and len(frontiers) > 1 and not frontiers[0].shape[0] and not self._has_ended:
            self.hold_back(frontiers[0])

    def _take_closed(self, frontier: Int64s) -> None:
        """Let rows look up whose times are complete: no update that they meet can come in any more,
        either.
        """
        if self._closed is None or self._span is None:
            return
        delta = self._closed.take_ready(frontier)
        if delta.shape[1]:
            # In a span of one epoch the integers are in the order of iterations.
            span = self.wide_span
            until = self._until(delta) if span is None else np.full(delta.shape[1], span[1])
            self._work.append(Work(delta, until))

    @property
    def wide_span(self) -> tuple[int, int] | None:
        """The span, if it has several epochs, so that integers are not in the order of updates."""
        span = self._span
        return span if span is not None and span[1] - span[0] > 1 << self.epoch else None

    def begin_span(self, start: int, bound: int) -> None:
        """Note that a compiled loop begins to work off the epochs from word `start` to before word
        `bound`.
        """
        self._span, self._is_in_span = (max(start, self._first_start), bound), True

    def end_span(self) -> None:
        """Note that the compiled loop has worked off the span."""
        self._is_in_span = False

    def first_asked(self) -> int | None:
        """Return the first word of the span: earlier times must stay different from those in it."""
        return self._span[0] if self._is_in_span and self._span is not None else None

    def take_complete(self, frontier: Int64s) -> Int64s | None:
        """Let rows look up that will meet no update that can still come in; `frontier`: of the arrangement.

        Return these rows, sorted and summed; None if there are none.
        """
        if not len(self._waiting):
            return None
        bound: int | None = None
        if frontier.shape[0]:
            # If the least time that can come is an origin, nothing comes strictly before that origin.
            bound = int(frontier.min()) + self.lookup.strictly
        parts = self._waiting.take(bound)
        if not parts:
            return None
        try:
            delta = sort_parts(parts)
        except OverflowError:
            raise row_overflow(parts, self.show) from None
        if delta.shape[1] == 0:
            return None
        self._work.append(Work(delta, self._until(delta)))
        return delta

    def _until(self, delta: Int64s) -> Int64s:
        """Return, for each row, the integer before which it meets updates."""
        origins = delta[_TIME if self.lookup.origin is None else self.lookup.origin]
        until: Int64s = origins + (0 if self.lookup.strictly else 1)
        return until

    @property
    def is_done(self) -> bool:
        """True if there is nothing for `work` to do."""
        return not self._work

    @property
    def is_empty(self) -> bool:
        """True if it has no rows."""
        return not self._work and not len(self._waiting) and (self._closed is None or not self._closed.rows)

    def work(self) -> Int64s | None:
        """Return a piece of the rows that can be made now, or all: int64[words + 2, m], neither sorted nor
        consolidated.
        """
        if not self._work:
            return None
        pieces: list[Int64s] = []
        count = 0
        table = self._source.table
        while self._work and count < MATCHED_PIECE_ROWS:
            work = self._work[0]
            rows, work.start = self.answers(work, table)
            is_done = work.start == work.delta.shape[1]
            if is_done:
                self._work.popleft()
            count += rows.shape[1] if is_done else MATCHED_PIECE_ROWS
            if rows.shape[1]:
                pieces.append(rows)
        if len(pieces) < 2:
            return pieces[0] if pieces else self.nothing
        return np.ascontiguousarray(np.concatenate(pieces, axis=1))

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch. Earlier updates of the arrangement stay before every origin, since
        origins are of epochs after the anchor's.
        """
        self._waiting.rebase(by)
        if self._closed is not None:
            self._closed.rebase(by, *self.times)
        # Past updates are of the anchor's epoch now, and none that is still to come is.
        self._first_start = 1 << self.epoch
        if self._span is not None:
            start, bound = self._span
            self._span = max(by.early_word(start), self._first_start), by.early_word(bound)
        origin = _TIME if self.lookup.origin is None else self.lookup.origin
        for work in self._work:
            work.delta = np.ascontiguousarray(work.delta[:, work.start :])
            work.delta = _moved_with_origin(work.delta, by, origin)
            work.until, work.start = by.words(work.until[work.start :]), 0

    def symbols(self, mark: Mark) -> None:
        """Show all words of rows that wait, and of those that look up piece by piece."""
        self._waiting.symbols(mark)
        if self._closed is not None:
            self._closed.symbols(mark)
        for work in self._work:
            mark.words(work.delta[:-2])

    def needs(self) -> Int64s:
        """Return the minimal times at which it may still send rows before more come in, ascending."""
        bounds = self._waiting.times()
        if self._closed is not None:
            bounds = self._closed.times(bounds)
        for work in self._work:
            rest = np.ascontiguousarray(work.delta[_TIME:-1, work.start :])
            bounds = lower_bounds(rest, 0, bounds, self.guards)
        return bounds

    def earliest(self) -> list[int]:
        """Return some times of its rows, as integers, including the least; none if it has no rows."""
        first = [int(work.delta[_TIME, work.start :].min()) for work in self._work]
        if self._closed is not None and self._closed.rows:
            first.append(int(self._closed.times(_NO_TIMES).min()))
        return [*first, self._waiting.first()] if len(self._waiting) else first

    def set_since(self, *frontiers: Int64s) -> None:
        """Let the arrangement forget updates that no row will ask about; the first frontier is that of
        the rows.
        """
        self.hold_back(frontiers[0])

    def let_look(self, look: Callable[[], None]) -> None:
        """Call `look` before a merge of the arrangement begins."""
        if isinstance(self._source, Reader):
            self._source.look = look

    def hold_back(self, frontier: Int64s) -> None:
        """Let the arrangement forget updates that no row will ask about. `frontier`: of the rows that
        come in.
        """
        first = [int(frontier.min())] if frontier.shape[0] else []
        first += self.earliest()
        if not first:
            self._has_ended = True
            self._source.set_hold(_NO_TIMES)
            return
        if self._span is not None:
            # Updates from before a span stay before it, also if its first rows are of a later epoch.
            first.append(self._span[0] if self._is_in_span else self._span[1])
        epoch = max((min(first) >> self.epoch) - 1, 0)
        self._source.set_hold(np.array([epoch << self.epoch], np.int64))
