"""Which answers must be looked at again, and when?

A set of pairs (key, time): at these times the answer of a key may have to be corrected although nothing
arrives there (see `reduce.py`). Pairs are *near* at first, one sorted table that is looked through at each
step. If many stay there for long they go *far*, where they wait by time as rows do.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.ready import lower_bounds, merge_pending, split_ready
from differential.operators.consolidate import WaitingRows
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

_NEAR_MAX: Final = 1024
_LOOKS_MAX: Final = 32
"""Pairs are near as long as they are fewer, or were looked through less often."""


class PendingTimes:
    """A set of pairs, `kw` key words and the time; tables of them are int64[kw + 1, n], sorted, without
    doubles.

    Laws: take_ready(F) returns, and takes out, exactly the pairs whose time is not beyond F · times(B) are
    the minimal ones of B and of all pairs
    """

    def __init__(self, kw: int, guards: int) -> None:
        self._kw = kw
        self._guards = guards
        self._near: Int64s = np.empty((kw + 1, 0), np.int64)
        self._looks = 0
        self._far = WaitingRows(kw + 2, guards)
        self._far_summed = 0

    def add(self, pairs: Int64s) -> None:
        """Put pairs in; the table is kept, and not changed."""
        assert pairs.shape[0] == self._kw + 1
        self._near = merge_pending(self._near, pairs) if self._near.shape[1] else pairs

    def take_ready(self, frontier: Int64s) -> Int64s:
        """Take out the pairs whose times are not beyond the frontier."""
        ready = self._near
        if ready.shape[1]:
            ready, self._near = split_ready(self._near, self._kw, frontier, self._guards)
            self._looks += 1
        if self._near.shape[1] <= _NEAR_MAX:
            self._looks = 0
        elif self._looks > _LOOKS_MAX:
            self._move_far()
        if self._far.rows:
            # What was put there twice was summed by consolidation: the count of a pair is not of interest.
            far = self._far.take_ready(frontier)[:-1]
            ready = merge_pending(ready, far) if ready.shape[1] else far
        return ready

    def times(self, bounds: Int64s) -> Int64s:
        """The minimal antichain of `bounds` and the times of all pairs, ascending."""
        if self._near.shape[1]:
            bounds = lower_bounds(self._near, self._kw, bounds, self._guards)
        return self._far.times(bounds) if self._far.rows else bounds

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch."""
        near = self._near.copy()
        near[-1] = by.words(near[-1])
        self._near = near
        self._far.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the keys of all pairs."""
        mark.words(self._near[:-1])
        self._far.symbols(mark)

    def check_invariants(self) -> None:
        """Assert that what is near is sorted and different."""
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
