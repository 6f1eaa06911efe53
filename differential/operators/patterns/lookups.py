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
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, Protocol

import numpy as np

from differential.columns.overflow import ShowRow, row_overflow, show_words
from differential.kernels.history.ready import lower_bounds, minimal_times
from differential.kernels.rows.sort import sort_parts
from differential.operators.join import MATCHED_ROWS_MAX
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

__all__ = ["Looked", "Lookup", "LookupMachine", "WaitingByOrigin", "Work"]

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


class LookupMachine:
    """Rows look up what `source` reads, once all that they should meet is there; see above.

    words    how many words the rows have that come of it, time and diff aside
    epoch    position of the lowest bit of the epoch in a time
    """

    def __init__(self, lookup: Lookup, source: Looked, words: int, guards: int, epoch: int) -> None:
        self.lookup = lookup
        self.guards = guards
        self._source = source
        self._epoch = epoch
        self._waiting = WaitingByOrigin(lookup.origin, guards)
        self._work: deque[Work] = deque()
        self.nothing: Int64s = np.empty((words + 2, 0), np.int64)
        self.show: ShowRow = show_words
        """How messages show the rows that come in."""

    def answers(self, work: Work, table: Int64s) -> tuple[Int64s, int]:
        """What the rows from work.start on make of the arrangement that `table` describes, and where to go
        on: at the end, or behind about MATCHED_ROWS_MAX rows of work.
        """
        raise NotImplementedError

    def recv(self, words: Int64s, moved: int = 0) -> None:
        """Let rows wait. The array may be kept. `moved`: what was added to their times on the way, and is to
        be added to their origins, too.
        """
        if moved and self.lookup.origin is not None:
            words = words.copy()
            words[self.lookup.origin] += moved
        for flag in self.lookup.flags:
            kept = words[flag] != 0
            if not kept.all():
                words = np.ascontiguousarray(words[:, kept])
        if words.shape[1]:
            self._waiting.add(words)

    def advance(self, frontier: Int64s) -> Int64s | None:
        """Let rows look up that meet nothing of what can still come in. `frontier`: of the arrangement.

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
        origins = delta[_TIME if self.lookup.origin is None else self.lookup.origin]
        self._work.append(Work(delta, origins + (0 if self.lookup.strictly else 1)))
        return delta

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing that `work` could do."""
        return not self._work

    @property
    def is_empty(self) -> bool:
        """Whether no row is here."""
        return not self._work and not len(self._waiting)

    def work(self) -> Int64s:
        """A piece of what can be made now, or all: int64[words + 2, m], neither sorted nor consolidated.

        Requires: not `is_idle`.
        """
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
        origin = _TIME if self.lookup.origin is None else self.lookup.origin
        for work in self._work:
            work.delta = np.ascontiguousarray(work.delta[:, work.start :])
            work.delta = _moved_with_origin(work.delta, by, origin)
            work.until, work.start = by.words(work.until[work.start :]), 0

    def symbols(self, mark: Mark) -> None:
        """Show all words of rows that wait, and of those that look up piece by piece."""
        self._waiting.symbols(mark)
        for work in self._work:
            mark.words(work.delta[:-2])

    def capabilities(self) -> Int64s:
        """The minimal times at which something may still be sent before more comes in, ascending."""
        bounds = self._waiting.times()
        for work in self._work:
            rest = np.ascontiguousarray(work.delta[_TIME:-1, work.start :])
            bounds = lower_bounds(rest, 0, bounds, self.guards)
        return bounds

    def earliest(self) -> list[int]:
        """Times of rows that are here, as integers, the least of them among them; none if there are none."""
        first = [int(work.delta[_TIME, work.start :].min()) for work in self._work]
        return [*first, self._waiting.first()] if len(self._waiting) else first

    def hold_back(self, frontier: Int64s) -> None:
        """Let the arrangement forget what no row will ask about. `frontier`: of the rows that come in."""
        first = [int(frontier.min())] if frontier.shape[0] else []
        first += self.earliest()
        if not first:
            self._source.set_hold(_NO_TIMES)
            return
        epoch = max((min(first) >> self._epoch) - 1, 0)
        self._source.set_hold(np.array([epoch << self._epoch], np.int64))
