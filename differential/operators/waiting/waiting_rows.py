"""Rows, and pairs of a key and a time, that wait until their times are complete.

    WaitingRows     rows, which leave when their times are complete
    PendingTimes    pairs (key, time) at which an answer may have to be corrected although nothing arrives

The minimal times of rows that wait are found at no cost per row. Those of pairs cost a look at each pair, as
long as it is *near* (see `PendingTimes`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.overflow import ShowRow, row_overflow, show_words
from differential.columns.packed.block import Block
from differential.columns.packed.parts import Part, in_order, rows_in, words_in
from differential.kernels.history.ready import lower_bounds, merge_pending, split_ready
from differential.kernels.rows.sort import PackedRows, is_consolidated, sort_consolidate, unpacked
from differential.operators.waiting.pile import Pile
from differential.thresholds import ONLY_PART_ROWS_MAX, PACKED_ROWS_MIN
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from progress.times.open_times import OpenTimes
from progress.times.word_antichain import not_beyond
from progress.times.word_order import few_are_beyond
from timely.dictionaries import Mark
from timely.thresholds import FEW_WORDS_MAX

__all__ = ["PendingTimes", "WaitingRows"]

_NONE = np.empty(0, np.int64)

_PARTS_MAX: Final = 32

_LOOKS_MAX: Final = 32
"""How often a part is looked through before it is cut by time. A loop takes about this often from the
rows that one change has caused at its iterations; 100,000 epochs in one part would be looked through
100,000 times."""

_NEAR_MAX: Final = 1024
"""Pending pairs go far when they were more than this at more than `_LOOKS_MAX` looks, one after another."""


class WaitingRows:
    """Rows of `columns` columns (time and diff last) that wait for their times to be complete.

    Rows come in parts, and the minimal times of each part are found once. So the questions of every step (is
    anything ready, what must be held) cost nothing per row. A few parts are looked through at each step at
    which some of their rows may be ready. Parts that were looked through often, or are many, are cut *by
    time*: from then on taking ready rows costs only those rows, whatever else waits. Parts of one time with
    at least `PACKED_ROWS_MIN` rows go to their time at once. If many rows are of one time, equal ones are
    summed before they are ready (`waiting/pile.py`).

    Memory: that of the rows, less where many are of one time, and some 350 bytes for each different time once
    they are cut.
    """

    def __init__(self, columns: int, guards: int) -> None:
        self.columns = columns
        self.guards = guards
        self._parts: list[tuple[Int64s, Int64s, int]] = []
        """Of each part: its rows, their minimal times, and how often it was looked through."""
        self._by_time: dict[int, Pile] = {}
        self._times = OpenTimes(guards)
        self.rows = 0
        """The number of rows that wait."""
        self.show: ShowRow = show_words

    def add(self, part: Part) -> None:
        """Let rows wait. The part is kept, and not changed."""
        if isinstance(part, Block):
            time = part.only(-2)
            if part.rows >= PACKED_ROWS_MIN and time is not None:
                assert part.columns == self.columns
                self._put(time, part)
                return
            part = part.words()
        words, rows = part, part.shape[1]
        assert words.shape[0] == self.columns
        if rows and rows >= PACKED_ROWS_MIN and (words[-2] == words[-2, 0]).all():
            self._put(int(words[-2, 0]), words)
        elif rows:
            self.rows += rows
            self._keep(words, 0)
            if len(self._parts) > _PARTS_MAX:
                parts, self._parts = self._parts, []
                self.rows -= sum(part.shape[1] for part, _, _ in parts)
                self._cut([part for part, _, _ in parts])

    def take_over(self, parts: list[Part]) -> None:
        """Let rows wait. Parts leave their list one by one, so that each is freed when it is summed."""
        if len(parts) == 1:
            self.add(parts[0])
            return
        parts.reverse()
        while parts:
            self.add(parts.pop())

    def take_ready(self, frontier: Int64s) -> Int64s:
        """Remove and return the rows that are not beyond the frontier, sorted and consolidated.

        Do not write to them: they may be an array that was added.
        """
        part = self._only_part(frontier)
        if part is None:
            rows = self.take_in_order(frontier)
            return unpacked(rows)
        if is_consolidated(part):
            return part
        try:
            return sort_consolidate(part)
        except OverflowError:
            raise row_overflow([part], self.show) from None

    def take_in_order(self, frontier: Int64s) -> PackedRows | Int64s:
        """Do the same; if the rows are many, and fit, they stay packed."""
        only = self._only_part(frontier)
        if only is not None:
            return self._summed([only])
        parts, self._parts = self._parts, []
        complete: list[Part] = []
        while parts:
            part, bound, looks = parts.pop()
            if self._is_beyond(bound, frontier):
                self._parts.append((part, bound, looks))
                continue
            ready, later = split_ready(part, self.columns - 2, frontier, self.guards)
            if ready.shape[1]:
                complete.append(ready)
            if later.shape[1] and looks < _LOOKS_MAX:
                self._keep(later, looks + 1)
            elif later.shape[1]:
                self.rows -= later.shape[1]
                self._cut([later])
        self.rows -= rows_in(complete)
        if self._by_time:
            for time in self._times.take_complete(frontier):
                pile = self._by_time.pop(time)
                self.rows -= pile.rows
                complete += pile.take()
        assert self.rows >= 0
        if not complete:
            return np.empty((self.columns, 0), np.int64)
        # This, and what `in_order` drops, frees the memory of the rows before more is taken.
        part = ready = later = _NONE
        return self._summed(complete)

    def _only_part(self, frontier: Int64s) -> Int64s | None:
        """Fast path: take the only part, if it is small and all of it is ready. Return None otherwise."""
        if self.rows > ONLY_PART_ROWS_MAX or len(self._parts) != 1 or self._by_time:
            return None
        part = self._parts[0][0]
        if split_ready(part, self.columns - 2, frontier, self.guards)[1].shape[1]:
            return None
        self._parts, self.rows = [], 0
        return part

    def consolidate(self) -> None:
        """Sum the rows that wait, so that rows that cancel take no memory."""
        if self.rows:
            waiting: list[Part] = [part for part, _, _ in self._parts]
            for pile in self._by_time.values():
                waiting += pile.take()
            self._parts, self._by_time, self._times, self.rows = [], {}, OpenTimes(self.guards), 0
            if waiting:
                rows = self._summed(waiting)
                self.add(unpacked(rows))

    def times(self, bounds: Int64s) -> Int64s:
        """Return the minimal antichain of `bounds` and the waiting times, ascending."""
        for _, bound, _ in self._parts:
            is_first = bounds.shape[0] == 0
            bounds = bound if is_first else lower_bounds(bound.reshape(1, -1), 0, bounds, self.guards)
        if self._by_time:
            bounds = lower_bounds(self._times.minimal().reshape(1, -1), 0, bounds, self.guards)
        return bounds

    def rebase(self, by: Rebase, *also: int) -> None:
        """Count the words of times from a later epoch, and those of the columns `also`."""

        def moved(part: Int64s) -> Int64s:
            if not also:
                return by.rows(part)
            rows = by.rows(part).copy()
            for column in also:
                rows[column] = by.words(part[column])
            return rows

        self._parts = [(moved(part), by.words(bound), looks) for part, bound, looks in self._parts]
        self._by_time = {by.word(time): pile.rebased(moved) for time, pile in self._by_time.items()}
        self._times = OpenTimes(self.guards, self._by_time)

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows that wait."""
        for part, _, _ in self._parts:
            mark.words(part[:-2])
        for pile in self._by_time.values():
            pile.symbols(mark)

    def check_invariants(self) -> None:
        """Assert that no row is counted twice, and that rows that were cut are in the piles of their
        times.
        """
        rows = sum(part.shape[1] for part, _, _ in self._parts)
        assert self.rows == rows + sum(pile.rows for pile in self._by_time.values())
        assert self._times.elements() == sorted(self._by_time)
        for time, pile in self._by_time.items():
            pile.check_invariants(time)

    def _keep(self, words: Int64s, looks: int) -> None:
        self._parts.append((words, lower_bounds(words, self.columns - 2, _NONE, self.guards), looks))

    def _cut(self, parts: list[Int64s]) -> None:
        """Put rows into the piles of their times. Parts of one time each stay as they are."""
        mixed: list[Int64s] = []
        for part in parts:
            time = int(part[-2, 0])
            if part.shape[1] == 1 or (part[-2] == time).all():
                self._put(time, part)
            else:
                mixed.append(part)
        if not mixed:
            return
        rows = mixed[0] if len(mixed) == 1 else np.concatenate(mixed, axis=1)
        rows = rows[:, np.argsort(rows[-2], kind="stable")]
        starts = np.flatnonzero(np.diff(rows[-2], prepend=-1)).tolist()
        for start, stop in zip(starts, [*starts[1:], rows.shape[1]], strict=True):
            self._put(int(rows[-2, start]), rows[:, start:stop].copy())

    def _put(self, time: int, part: Part) -> None:
        pile = self._by_time.get(time)
        if pile is None:
            pile = self._by_time[time] = Pile(self.columns)
            self._times.add(time)
        before = pile.rows
        pile.add(part, self.show)
        self.rows += pile.rows - before

    def _summed(self, parts: list[Part]) -> PackedRows | Int64s:
        # Fast path: one part alone is mostly sorted already, such as the sums of a group.
        if len(parts) == 1 and not isinstance(parts[0], Block) and is_consolidated(parts[0]):
            return parts[0]
        try:
            return in_order(parts)
        except OverflowError:
            raise row_overflow(words_in(parts), self.show) from None

    def _is_beyond(self, bounds: Int64s, frontier: Int64s) -> bool:
        # Small changes stay below the threshold: they must not wait for a kernel that is compiled first.
        if len(bounds) * frontier.shape[0] > FEW_WORDS_MAX:
            return len(not_beyond(bounds, frontier, self.guards)) == 0
        return few_are_beyond(bounds.tolist(), frontier.tolist(), self.guards)


class PendingTimes:
    """A set of pairs (key, time) at which an answer may have to be corrected although nothing arrives there
    (see `reduce.py`).

    A pair has `kw` key words and the time; a table of pairs is int64[kw + 1, n], sorted, without doubles.
    Pairs are *near* at first, in one sorted table that is looked through at each step. If many stay there for
    long they go *far*, where they wait by time as rows do.

    Laws: take_ready(F) returns, and takes out, exactly the pairs whose time is not beyond F · times(B) are
    the minimal ones of B and of the times of all pairs
    """

    def __init__(self, kw: int, guards: int) -> None:
        self._kw = kw
        self._guards = guards
        self.has_any = False
        """False only if there are no pairs."""
        self._near: Int64s = np.empty((kw + 1, 0), np.int64)
        self._looks = 0
        self._far = WaitingRows(kw + 2, guards)
        self._far_summed = 0

    def add(self, pairs: Int64s) -> None:
        """Put pairs in. The table is kept, and not changed."""
        assert pairs.shape[0] == self._kw + 1
        self.has_any = True
        self._near = merge_pending(self._near, pairs) if self._near.shape[1] else pairs

    def take_ready(self, frontier: Int64s) -> Int64s:
        """Take out the pairs whose times are not beyond the frontier."""
        ready = self._near
        if not self.has_any:  # Fast path.
            return ready
        if ready.shape[1]:
            ready, self._near = split_ready(self._near, self._kw, frontier, self._guards)
            self._looks += 1
        if self._near.shape[1] <= _NEAR_MAX:
            self._looks = 0
        elif self._looks > _LOOKS_MAX:
            self._move_far()
        if self._far.rows:
            # Drop the counts: consolidation has summed pairs that were put there twice.
            far = self._far.take_ready(frontier)[:-1]
            ready = merge_pending(ready, far) if ready.shape[1] else far
        self.has_any = bool(self._near.shape[1] or self._far.rows)
        return ready

    def times(self, bounds: Int64s) -> Int64s:
        """Return the minimal antichain of `bounds` and the times of all pairs, ascending."""
        if self._near.shape[1]:
            bounds = lower_bounds(self._near, self._kw, bounds, self._guards)
        return self._far.times(bounds) if self._far.rows else bounds

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch."""
        near = self._near.copy()
        near[-1] = by.words(near[-1])
        self._near = near
        self._far.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the keys of all pairs."""
        mark.words(self._near[:-1])
        self._far.symbols(mark)

    def check_invariants(self) -> None:
        """Assert that near pairs are sorted and different."""
        near = [tuple(row) for row in self._near.T.tolist()]
        assert near == sorted(set(near))
        self._far.check_invariants()

    def _move_far(self) -> None:
        near = self._near
        self._far.add(np.concatenate([near, np.ones((1, near.shape[1]), np.int64)]))
        self._near, self._looks = np.empty((self._kw + 1, 0), np.int64), 0
        if self._far.rows > 2 * self._far_summed:
            self._far.consolidate()
            self._far_summed = self._far.rows
