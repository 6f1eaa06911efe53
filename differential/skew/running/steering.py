"""A controller within the dataflow: for a join with `balance="auto"` it makes the announcements itself.

One vertex, on one worker, gets the counts of the join's rows: those of each bucket of light keys, and those
of each heavy key. After each complete epoch with enough new rows it asks what each *worker* has to do, since
workers and not units wait for one another. Only if the busiest has much more than the mean it makes a plan,
as `planning/controller.py` does for clients, and announces it, at the time of that epoch.

It looks at counts of inputs alone, which no routing changes. So the same rows lead to the same announcements,
and its own announcements never give it more to do: a dataflow comes to rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch, words_of
from differential.operators.vertices import OperatorVertex
from differential.thresholds import SPREAD_LOAD_MIN, UNEVEN_PERCENT_MIN
from progress.times.anchor import Rebase
from timely.dictionaries import Mark
from timely.operators.capture import FOREVER
from timely.routing.announcement import BUCKET, KEY, Announcement, RoutingCell
from timely.routing.table import RoutingTable
from timely.wire.batch import Batch
from timely.wire.routing import BUCKETS

from ..placements.placement import Placement
from ..planning.controller import PlanSettings, plan
from ..planning.draft import RoutingDraft
from ..planning.loads import LoadCounts, Loads

__all__ = ["COUNTED", "LoadSums", "SteeringVertex", "announced_for"]

COUNTED: Final = Schema.of("is_key: int, key: int, left: int, right: int, keys: int")
"""The counts: of a bucket (is_key 0) those of its light keys, of a heavy key (1) its own; rows of either
side, and keys. Pairs follow: as many as if all light keys of a bucket had the same numbers of rows."""

_CHECKED_SHARE: Final = 3
"""A check follows once so many times the new rows are at least all rows: a check costs milliseconds."""

_SETTINGS: Final = PlanSettings(measure="work")


class LoadSums:
    """What all counts up to an epoch add up to."""

    def __init__(self) -> None:
        self._buckets = np.zeros((3, BUCKETS), np.int64)
        self._keys: dict[int, tuple[int, int]] = {}
        self.traffic = 0
        """Changes of rows since the last check."""

    def add(self, words: Int64s) -> None:
        """Add changes of counts."""
        is_key = words[0] != 0
        few = words[:, ~is_key]
        for sums, counts in zip(self._buckets, few[2:5] * few[-1], strict=True):
            np.add.at(sums, few[1], counts)
        for key, left, right, diff in words[[1, 2, 3, -1]][:, is_key].T.tolist():
            before = self._keys.pop(key, (0, 0))
            now = (before[0] + diff * left, before[1] + diff * right)
            if any(now):
                self._keys[key] = now
        self.traffic += int(np.abs((words[2:4] * words[-1]).sum(axis=1)).sum())

    def is_due(self) -> bool:
        """Return True if there are enough new rows for a check."""
        rows = int(self._buckets[:2].sum()) + sum(map(sum, self._keys.values()))
        return self.traffic > 0 and self.traffic * _CHECKED_SHARE >= rows

    def loads(self) -> Loads:
        """Return the counts as a planner takes them, for cells: rows of the right are those that look."""
        counts = {
            RoutingCell(BUCKET, 0, bucket): _counts_of(left, right, keys)
            for bucket, (left, right, keys) in enumerate(self._buckets.T.tolist())
            if left or right
        }
        counts |= {RoutingCell(KEY, 0, key): _counts_of(*sides, 1) for key, sides in self._keys.items()}
        return Loads(counts, self.traffic)


def _counts_of(left: int, right: int, keys: int) -> LoadCounts:
    """Return the counts of some keys. Rows that are there less than 0 times are no load."""
    left, right = max(left, 0), max(right, 0)
    return LoadCounts(left, right, left * right // max(keys, 1))


def announced_for(
    placement: Placement, table: RoutingTable, loads: Loads, workers: int
) -> list[Announcement]:
    """Return what to announce: nothing unless one of `workers` has much more to do than the mean, and that is
    worth moving rows for.
    """
    if sum(sum(each) for each in loads.counts.values()) < SPREAD_LOAD_MIN:
        return []
    units = RoutingDraft(table, placement.first, loads, _SETTINGS.measure, placement.is_cells).loads
    by_worker = [sum(units[worker::workers]) for worker in range(workers)]
    total, most = sum(by_worker), max(by_worker)
    if most * workers * 100 < total * UNEVEN_PERCENT_MIN:
        return []
    routing = plan(placement, table, loads, _SETTINGS)
    return [] if routing is None else list(routing.changes.announcements())


class SteeringVertex(OperatorVertex):
    """Makes announcements for one join. Rows of counts come to one worker."""

    wants_frontier: ClassVar[bool] = True

    def __init__(self, placement: Placement) -> None:
        super().__init__()
        self._placement = placement
        self._table = placement.first
        self._sums = LoadSums()
        self._noted: dict[int, list[Int64s]] = {}
        self._counts: Counter[str] = Counter()

    def on_start(self) -> None:
        """Learn how words pack epochs."""
        self._shift, _ = self.code.fields[0]

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Note counts until their epoch is complete."""
        del port
        for _, batch in messages:
            words = words_of(batch)
            epochs = words[-2] >> self._shift
            for epoch in np.unique(epochs).tolist():
                self._noted.setdefault(epoch, []).append(words[:, epochs == epoch])
        self._hold()

    def on_frontier(self) -> None:
        """Check after each epoch that is complete now."""
        frontier = self.frontier_words(0)
        before = int(frontier[0]) >> self._shift if len(frontier) else FOREVER
        for epoch in sorted(epoch for epoch in self._noted if epoch < before):
            for words in self._noted.pop(epoch):
                self._sums.add(words)
            if self.workers > 1 and self._sums.is_due():
                self._check(epoch << self._shift)
        self._hold()

    def _check(self, word: int) -> None:
        self._counts["checks"] += 1
        rows = announced_for(self._placement, self._table, self._sums.loads(), self.workers)
        self._sums.traffic = 0
        if rows:
            self._counts["plans"] += 1
            self._table = self._placement.changed(self._table, rows)
            words = np.array([[*row, word, 1] for row in rows], np.int64).T
            self.send(0, UpdateBatch(np.ascontiguousarray(words)), word)

    def _hold(self) -> None:
        self.hold_words(sorted(epoch << self._shift for epoch in self._noted))

    def rebase(self, by: Rebase) -> None:
        """Count epochs from a later one."""
        super().rebase(by)
        noted: dict[int, list[Int64s]] = {}
        for epoch, parts in self._noted.items():
            noted.setdefault(max(epoch - by.epochs, 0), []).extend(parts)
        self._noted = noted

    def symbols(self, mark: Mark) -> None:
        """Show nothing: counts, numbers of buckets and hashes of keys stand for no values."""

    def counters(self) -> dict[str, int]:
        """Return how often it has looked, and planned."""
        return {"checks": self._counts["checks"], "plans": self._counts["plans"]}
