"""Runs of joins in units, drawn from a seed: rows that come and go, absurd announcements, late messages.

A run is judged at every epoch: what the join has put out by then accumulates to the plain join of what had
come in; and when everything has been removed, nothing is left in any unit. What is drawn does not depend on
the number of workers, so that loads of two runs can be compared.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import History, accumulated_at
from reference.dataflow import Cluster

import differential as dd
from differential.kernels.rows.hashing import hash_of_key
from differential.skew.running.units_vertex import UnitsVertex
from timely.building.dataflow import Dataflow
from timely.errors import MisuseError
from timely.routing.announcement import BUCKET, EVERY, KEY, Announcement, RoutingCell, RoutingChanges
from timely.routing.grid import HASH_MAX, Grid
from timely.wire.routing import BUCKETS

__all__ = ["HASHES", "SCHEMES", "SpreadRun", "loads_of", "seal_apart"]

KEYS = 4
VALUES = 6
EPOCHS = 8
SCHEMES: dict[str, dd.Balance] = {
    "D-JB": dd.Balance("D-JB", units=5),
    "JB6": dd.Balance("JB6", units=6, groups=2),
    "hash": dd.Balance("hash", units=4),
    "JB": dd.Balance("JB", units=5),
    "matrix": dd.Balance("matrix", units=8),
}
HASHES: list[int] = [hash_of_key(np.array([[key]]), 0, 1) for key in range(KEYS)]

_Change = tuple[tuple[int, int], int]


@dataclass
class SpreadRun:
    """One run.

    scheme   its name; lead: of announcements; bits: of epochs, if there are to be few
    said     announcements by epoch; given: rows of either input by epoch
    """

    seed: int
    scheme: str
    lead: int = 2
    epochs: int = EPOCHS
    bits: int | None = None
    said: dict[int, list[Announcement]] = field(default_factory=dict)
    given: dict[int, dict[str, list[_Change]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        placement = SCHEMES[self.scheme].placement
        table = placement.first
        present: dict[str, Counter[tuple[int, int]]] = {"a": Counter(), "b": Counter()}
        for epoch in range(self.epochs):
            last = epoch >= self.epochs - 2
            self.given[epoch] = {name: _drawn(rng, rows, is_last=last) for name, rows in present.items()}
            if rng.random() < 0.6:
                rows = _announced(rng, self.scheme, table.units)
                try:
                    table = placement.changed(table, rows)
                except MisuseError:
                    continue
                self.said[epoch] = rows

    def build(self, flow: Dataflow) -> None:
        """The dataflow."""
        if self.bits is not None:
            flow.level_bits = (self.bits, 9)
        a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "k: int, w: int")
        routed = dd.Routed(SCHEMES[self.scheme], dd.announcements(flow), self.lead)
        pairs = a.join(b, on="k", balance=routed)
        pairs.output("pairs")
        dd.loads(pairs).output("loads")

    def carried_out(self, workers: int, seed: int, *, monitored: bool = False) -> Cluster:
        """The cluster at the end, after everything was done in any order that `seed` says."""
        rng = random.Random(seed)
        cluster = Cluster(self.build, workers, seed, monitored=monitored)
        behind = rng.choice([0, 0, 1, 4])
        for epoch in range(self.epochs):
            for name, rows in self.given[epoch].items():
                for row in rows:
                    cluster.change(name, [row], epoch, rng.randrange(workers))
            for announcement in self.said.get(epoch, ()):
                cluster.change("routes", [(tuple(announcement), 1)], epoch, rng.randrange(workers))
            seal_apart(cluster, epoch, epoch - behind)
            cluster.harry(rng, rng.choice([0, 5, 20]))
            if rng.random() < 0.3:
                cluster.run()
        cluster.seal(self.epochs + self.lead)
        cluster.run()
        return cluster

    def inputs(self, name: str, epoch: int) -> Rows:
        """What had come in by an epoch."""
        found: Rows = Counter()
        for at in range(min(epoch, self.epochs - 1) + 1):
            for row, diff in self.given[at][name]:
                found[row] += diff
        return Rows({row: count for row, count in found.items() if count})

    def check(self, cluster: Cluster) -> None:
        """Judge what came of it."""
        pairs = cluster.changes("pairs")
        for epoch in range(self.epochs + self.lead):
            wanted = plainly.join(self.inputs("a", epoch), self.inputs("b", epoch))
            have = accumulated_at(pairs, (epoch,))
            assert have == wanted, f"in epoch {epoch}: {have} and not {wanted}"
        kept = [load for load in accumulated_at(cluster.changes("loads"), (self.epochs,)) if load[3] == 0]
        assert not kept, f"everything has been removed, and these are left: {kept}"
        for vertex in cluster.vertices("join on k in units"):
            assert isinstance(vertex, UnitsVertex)
            for trace in vertex.traces():
                trace.compact()
                assert trace.rows == 0, trace.words()


def loads_of(cluster: Cluster) -> History:
    """By unit and epoch."""
    return cluster.changes("loads")


def seal_apart(cluster: Cluster, rows: int, announcements: int) -> None:
    """Seal rows up to an epoch, and announcements up to another one."""
    for index, instance in enumerate(cluster.instances):
        with cluster.turn_of(index):
            for name, handle in instance.inputs.items():
                last = announcements if name == "routes" else rows
                if last >= handle.epoch:
                    handle.seal(last)


def _drawn(rng: random.Random, present: Counter[tuple[int, int]], *, is_last: bool) -> list[_Change]:
    """Rows that come and go in an epoch; in the last ones what is there goes."""
    found: list[_Change] = []
    for _ in range(rng.choice([0, 2, 6, 9])):
        row = (min(rng.randrange(KEYS), rng.randrange(KEYS)), rng.randrange(VALUES))
        if present[row] > 0 and rng.random() < 0.4:
            found.append((row, -present.pop(row)))
        elif not is_last:
            times = rng.choice([1, 1, 2])
            present[row] += times
            found.append((row, times))
    if is_last:
        found += [(row, -count) for row, count in present.items() if count]
        present.clear()
    return found


def _grid(rng: random.Random, units: int) -> Grid:
    shares, copies = rng.choice([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (2, 2)])
    if units < 4 and shares == copies:
        shares, copies = 1, 1
    if shares > 1 and copies > 1:
        flat: Sequence[int] = rng.sample(range(units), shares * copies)
    else:
        flat = [rng.randrange(units) for _ in range(shares * copies)]
    cells = tuple(tuple(flat[share * copies : (share + 1) * copies]) for share in range(shares))
    ends = [[*sorted(rng.sample(range(HASH_MAX), n - 1)), HASH_MAX] for n in (shares, copies)]
    return Grid(cells, tuple(ends[0]), tuple(ends[1]))


def _announced(rng: random.Random, scheme: str, units: int) -> list[Announcement]:
    said: dict[RoutingCell, Grid | None] = {}
    if scheme in ("JB", "matrix"):  # all keys of a side have one grid
        for side in (0,) if scheme == "matrix" else (0, 1):
            if scheme == "matrix":
                shares = rng.choice([1, 2, 4, 8])
                flat = rng.sample(range(units), 8)
                copies = 8 // shares
                rows = [flat[share * copies : (share + 1) * copies] for share in range(shares)]
                said[RoutingCell(EVERY, side, 0)] = Grid.even(rows)
            else:
                said[RoutingCell(EVERY, side, 0)] = _grid(rng, units)
        return RoutingChanges(None, said).announcements()
    more = rng.choice([None, None, None, units + 2, max(units - 1, 2)])
    units = units if more is None else more
    for side in (0, 1):
        for key in rng.sample(range(KEYS), rng.choice([0, 1, 3])):
            if rng.random() < 0.5:
                said[RoutingCell(KEY, side, HASHES[key])] = rng.choice(
                    [None, _grid(rng, units), _grid(rng, units)]
                )
            else:
                said[RoutingCell(BUCKET, side, HASHES[key] % BUCKETS)] = _grid(rng, units)
    return RoutingChanges(more, said).announcements()
