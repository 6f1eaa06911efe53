"""Looking up: the changes of one collection ask what another one, which was arranged for it, had before.

A join of n collections is computed by n *ways*, one for the changes of each collection, which look up the
others one after another. Nothing is kept but the arrangements that are looked up. Each combination of n
updates must come out of one way only, so there is a rule which of them that is. Let

    origin   the time of the change that a way began with; a combination's own time is the lub of all of its
    before   (time, number of the collection), compared as integers and then as numbers: one order of all
             updates of all collections, the same for all ways, in which later times never come first

A row on the way of collection i with origin t meets an update of collection j at time s iff (s, j) is before
(t, i): s ≤ t as integers if j < i, s < t if j > i. So a combination comes out of the way of its last update,
and of no other.

    ready    a row waits until no update that it should meet can still come: until all times before its
             origin, as integers, are complete in the arrangement. The integers extend the order of times, so
             the least integer of a frontier is the least time that can still come.
    kept     the arrangement may be compacted up to the beginning of the epoch *before* the first that rows
             may still come from. Then what is from that epoch or later has the times that it came with, and
             what is from before stays before it, whichever way its times are advanced. (Up to the frontier
             itself would be too far: (0, 5) seen from (1, 0) on is (1, 5), and no longer before (1, 0).)
    epochs   the lub of t and an s before t has the epoch of t; so the frontier of rows, which speaks of their
             times, tells the epochs of their origins

Decision 0013 has the argument at length. What is put off, as it is too much for one activation, reads the
arrangement anew: what has come in since is not before it, and what it may see is kept.

This is the logic alone: words and frontiers in, words out. What a row makes of what it finds is said by
`half_join.py` and `fewest.py`.
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
from differential.operators.join import MATCHED_ROWS_MAX
from differential.operators.machine import Machine
from differential.operators.waiting.waiting_rows import WaitingRows
from differential.trace.readers import Reader
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

__all__ = ["ARRANGED", "ROWS", "Looked", "Lookup", "LookupMachine", "WaitingByOrigin", "Work"]

ROWS: Final = 0
ARRANGED: Final = 1
"""Ports of rows, and of the arrangement that they look up."""

_NO_TIMES: Final = np.empty(0, np.int64)
_TIME: Final = -2
"""Where rows have their time."""


@dataclass(frozen=True)
class Lookup:
    """How rows look up an arrangement.

    words      how many of their first words are equal to the first words of what they meet
    origin     which of their words is the time that their way began at; None: it is their own time
    strictly   whether updates of the time of their origin are not before them
    flags      first words that are 0 where a key is null; such rows meet nothing
    """

    words: int
    origin: int | None
    strictly: bool
    flags: tuple[int, ...] = ()


class WaitingByOrigin:
    """Rows that wait until everything before their origins is complete; first origins first."""

    def __init__(self, origin: int | None, guards: int) -> None:
        self._origin = _TIME if origin is None else origin
        self._guards = guards
        self._parts: dict[int, list[Int64s]] = {}
        self._order: list[int] = []
        self._times: dict[int, Int64s] = {}

    def __len__(self) -> int:
        """How many different origins the rows have."""
        return len(self._order)

    def add(self, words: Int64s) -> None:
        """Let rows wait, at least one; the array is kept."""
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
        """Take out the rows whose origin, as an integer, is less than `bound`; None: all."""
        found: list[Int64s] = []
        while self._order and (bound is None or self._order[0] < bound):
            origin = heappop(self._order)
            found += self._parts.pop(origin)
            del self._times[origin]
        return found

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch, those of origins, too: an origin is of the epoch of its rows."""
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
        """The first origin. Requires: some rows wait."""
        return self._order[0]

    def times(self) -> Int64s:
        """The minimal times of all rows, ascending. Cost: a step for each origin."""
        if len(self._times) < 2:
            return next(iter(self._times.values()), _NO_TIMES)
        return minimal_times(np.concatenate(list(self._times.values())), self._guards)


def _moved_with_origin(rows: Int64s, by: Rebase, origin: int) -> Int64s:
    """Rows for words that count from a later epoch; `origin`: the word with their origin, or the time."""
    moved = by.rows(rows)
    if origin != _TIME:
        moved = moved.copy()
        moved[origin] = by.words(rows[origin])
    return moved


class Work:
    """Rows that may look up now, sorted: row i what has times before until[i]. Those before `start` have."""

    __slots__ = ("delta", "start", "until")

    def __init__(self, delta: Int64s, until: Int64s) -> None:
        self.delta = delta
        self.until = until
        self.start = 0


class Looked(Protocol):
    """What is looked up: an arrangement that is read, or rows that are kept for this alone."""

    @property
    def table(self) -> Int64s:
        """Lines of what is seen."""
        ...

    def set_hold(self, hold: Int64s) -> None:
        """No row will ask about times that are not ≥ one of these."""
        ...


class LookupMachine(Machine):
    """Rows look up what `source` reads, once all that they should meet is there; see above.

    words    how many words the rows have that come of it, time and diff aside
    epoch    position of the lowest bit of the epoch in a time

    Rows come in at port 0; only the frontier of port 1, which is that of the arrangement, matters.

    A compiled loop works off all closed epochs together, iteration by iteration, so there another order of
    all updates holds: first those of before the loop's epoch span, then by iteration, then by epoch. It is
    the same for all ways, and later times never come first in it. `begin_span` says that it holds.
    """

    pauses: ClassVar[bool] = True

    def __init__(self, lookup: Lookup, source: Looked, words: int, guards: int, epoch: int) -> None:
        self.lookup = lookup
        self.guards = guards
        self._source = source
        self.epoch = epoch
        self._waiting = WaitingByOrigin(lookup.origin, guards)
        self._work: deque[Work] = deque()
        self._span: tuple[int, int] | None = None
        """In a compiled loop the words of its epoch span: the first one, and the one behind it."""
        self._first_start = 0
        """No span begins before this word."""
        self._is_in_span = False
        self._closed: WaitingRows | None = None
        """Rows that wait in a compiled loop, by their times."""
        self._has_ended = False
        """Whether no row will ask any more."""
        self.times: tuple[int, ...] = () if lookup.origin is None else (lookup.origin,)
        self.words = words
        self.columns = 0
        """Of rows that come in, time and difference included; 0: not known."""
        self.nothing: Int64s = np.empty((words + 2, 0), np.int64)
        self.show: ShowRow = show_words
        """How messages show the rows that come in."""

    @property
    def gives_times(self) -> tuple[int, ...]:
        """The words of what it sends that are times, too."""
        raise NotImplementedError

    def answers(self, work: Work, table: Int64s) -> tuple[Int64s, int]:
        """What the rows from work.start on make of the arrangement that `table` describes, and where to go
        on: at the end, or behind about MATCHED_ROWS_MAX rows of work.
        """
        raise NotImplementedError

    def recv(self, port: int, parts: list[Part]) -> None:
        """Let rows wait that have no null among their keys."""
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
        """Let rows look up that meet nothing of what can still come in: by the frontier of the arrangement,
        or, in a compiled loop, by that of their barrier.
        """
        if self._span is not None:
            self._take_closed(frontiers[-1])
            return
        self.take_complete(frontiers[-1])
        if self.is_empty and len(frontiers) > 1 and not frontiers[0].shape[0] and not self._has_ended:
            self.hold_back(frontiers[0])

    def _take_closed(self, frontier: Int64s) -> None:
        """Let rows look up whose times are complete: of what they meet nothing comes any more either."""
        if self._closed is None or self._span is None:
            return
        delta = self._closed.take_ready(frontier)
        if delta.shape[1]:
            # Of one epoch the integers are in the order of iterations.
            span = self.wide_span
            until = self._until(delta) if span is None else np.full(delta.shape[1], span[1])
            self._work.append(Work(delta, until))

    @property
    def wide_span(self) -> tuple[int, int] | None:
        """The span, if it has several epochs, so that integers are not in the order of updates."""
        span = self._span
        return span if span is not None and span[1] - span[0] > 1 << self.epoch else None

    def begin_span(self, start: int, bound: int) -> None:
        """A compiled loop begins to work off the epochs from the word `start` to before the word `bound`."""
        self._span, self._is_in_span = (max(start, self._first_start), bound), True

    def end_span(self) -> None:
        """The compiled loop has worked off the span."""
        self._is_in_span = False

    def first_asked(self) -> int | None:
        """The first word of the span: what is from before it must be told from what is in it."""
        return self._span[0] if self._is_in_span and self._span is not None else None

    def take_complete(self, frontier: Int64s) -> Int64s | None:
        """Take the rows that meet nothing of what can still come in; `frontier`: of the arrangement.

        Returns these rows, sorted and summed; None if there are none.
        """
        if not len(self._waiting):
            return None
        bound: int | None = None
        if frontier.shape[0]:
            # Nothing comes strictly before an origin any more if that is the least that can come.
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
        """Up to which integer each row meets what is there."""
        origins = delta[_TIME if self.lookup.origin is None else self.lookup.origin]
        until: Int64s = origins + (0 if self.lookup.strictly else 1)
        return until

    @property
    def is_done(self) -> bool:
        """Whether there is nothing that `work` could do."""
        return not self._work

    @property
    def is_empty(self) -> bool:
        """Whether no row is here."""
        return not self._work and not len(self._waiting) and (self._closed is None or not self._closed.rows)

    def work(self) -> Int64s | None:
        """Return a piece of what can be made now, or all: int64[words + 2, m], neither sorted nor
        consolidated.
        """
        if not self._work:
            return None
        pieces: list[Int64s] = []
        made = 0
        table = self._source.table
        while self._work and made < MATCHED_ROWS_MAX:
            work = self._work[0]
            rows, work.start = self.answers(work, table)
            is_done = work.start == work.delta.shape[1]
            if is_done:
                self._work.popleft()
            made += rows.shape[1] if is_done else MATCHED_ROWS_MAX
            if rows.shape[1]:
                pieces.append(rows)
        if len(pieces) < 2:
            return pieces[0] if pieces else self.nothing
        return np.ascontiguousarray(np.concatenate(pieces, axis=1))

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch. What the arrangement has of before is before every origin, as it
        was: these are of epochs after the anchor's.
        """
        self._waiting.rebase(by)
        if self._closed is not None:
            self._closed.rebase(by, *self.times)
        # What is past is of the anchor's epoch now, and nothing that is still to come is.
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
        """Return the minimal times at which something may still be sent before more comes in, ascending."""
        bounds = self._waiting.times()
        if self._closed is not None:
            bounds = self._closed.times(bounds)
        for work in self._work:
            rest = np.ascontiguousarray(work.delta[_TIME:-1, work.start :])
            bounds = lower_bounds(rest, 0, bounds, self.guards)
        return bounds

    def earliest(self) -> list[int]:
        """Times of rows that are here, as integers, the least of them among them; none if there are none."""
        first = [int(work.delta[_TIME, work.start :].min()) for work in self._work]
        if self._closed is not None and self._closed.rows:
            first.append(int(self._closed.times(_NO_TIMES).min()))
        return [*first, self._waiting.first()] if len(self._waiting) else first

    def set_since(self, *frontiers: Int64s) -> None:
        """Let the arrangement forget what no row will ask about; the first frontier is that of the rows."""
        self.hold_back(frontiers[0])

    def let_look(self, look: Callable[[], None]) -> None:
        """Call `look` before a merge of the arrangement begins."""
        if isinstance(self._source, Reader):
            self._source.look = look

    def hold_back(self, frontier: Int64s) -> None:
        """Let the arrangement forget what no row will ask about. `frontier`: of the rows that come in."""
        first = [int(frontier.min())] if frontier.shape[0] else []
        first += self.earliest()
        if not first:
            self._has_ended = True
            self._source.set_hold(_NO_TIMES)
            return
        epoch = max((min(first) >> self.epoch) - 1, 0)
        self._source.set_hold(np.array([epoch << self.epoch], np.int64))
