"""Which worker has which keys, and from which epoch on?

Keys are hashed to `BUCKETS` buckets, and a *routing* says which worker owns each bucket. It has *versions*:
each holds from the first time of an epoch on, until the next one does. So the worker of a row depends on the
row and its time alone, not on the sender or on when it is sent.

A routing is immutable. The default has one version, in which bucket b belongs to worker b modulo the number
of workers. A program announces another version some epochs before it holds: `operators/router.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Final

import numpy as np

from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase

__all__ = ["BUCKETS", "Routing", "routing_among"]

BUCKETS: Final = 1_024
"""A power of two, so that a key's bucket is the low bits of its hash."""


class Routing:
    """Owners of buckets, by version.

    Args:
        workers: the number of workers.
        starts: the time word from which each version holds, ascending from 0.
        owners: the worker of each bucket in each version, of shape (versions, `BUCKETS`).
    """

    def __init__(self, workers: int, starts: Int64s, owners: Int64s) -> None:
        assert starts.shape[0] == owners.shape[0] >= 1 and owners.shape[1] == BUCKETS, (starts, owners.shape)
        assert starts[0] == 0 and bool((starts[1:] > starts[:-1]).all()), starts
        assert owners.min() >= 0 and owners.max() < workers, (owners.min(), owners.max(), workers)
        self.workers = workers
        self.starts = starts
        self.owners = owners

    @staticmethod
    @cache
    def default(workers: int) -> Routing:
        """Return the routing of a single version: bucket b at worker b modulo `workers`."""
        owners = (np.arange(BUCKETS, dtype=np.int64) % workers).reshape(1, BUCKETS)
        return Routing(workers, np.zeros(1, np.int64), owners)

    @property
    def versions(self) -> int:
        """The number of versions in this routing."""
        return len(self._lists)

    def owners_at(self, word: int) -> list[int]:
        """Return the worker of each bucket at the time `word`."""
        if len(self._lists) == 1:
            return self._lists[0]
        return self._lists[bisect_right(self.starts.tolist(), word) - 1]

    def owner_array_at(self, word: int) -> Int64s:
        """Return the worker of each bucket at the time `word`, as an array, which nobody writes to."""
        row = 0 if len(self._lists) == 1 else bisect_right(self.starts.tolist(), word) - 1
        array: Int64s = self.owners[row]
        return array

    def changed(self, start: int, changes: Mapping[int, int]) -> Routing:
        """Return a routing in which, from the time word `start` on, the buckets of `changes` have new owners.

        All versions so far begin before `start`, or the last one begins there and is replaced.
        """
        owners = self.owners[-1].copy()
        for bucket, worker in changes.items():
            owners[bucket] = worker
        version_count = self.versions if start > self.starts[-1] else self.versions - 1
        starts = np.append(self.starts[:version_count], np.int64(start))
        return Routing(self.workers, starts, np.vstack((self.owners[:version_count], owners[np.newaxis])))

    def since(self, word: int) -> Routing:
        """Return the routing without the versions that no time from `word` on can use."""
        first = bisect_right(self.starts.tolist(), word) - 1
        if first == 0:
            return self
        starts = self.starts[first:].copy()
        starts[0] = 0
        return Routing(self.workers, starts, self.owners[first:].copy())

    def rebased(self, by: Rebase) -> Routing:
        """Return the routing for words that count from a later epoch, without the versions that no time from
        there on can use.
        """
        later = self.since(by.step)
        starts = later.starts.copy()
        starts[1:] = by.words(starts[1:])
        return Routing(self.workers, starts, later.owners)

    def compared(self) -> object:
        """Return all that decides what it will do: the lists follow from it."""
        return self.workers, self.starts, self.owners

    @cached_property
    def _lists(self) -> list[list[int]]:
        lists: list[list[int]] = self.owners.tolist()
        return lists


@cache
def routing_among(workers: int, listed: tuple[int, ...]) -> Routing:
    """Return the routing of a single version that gives the buckets to the listed ones of `workers`."""
    owners = np.array(listed, np.int64)[np.arange(BUCKETS) % len(listed)].reshape(1, BUCKETS)
    return Routing(workers, np.zeros(1, np.int64), owners)
