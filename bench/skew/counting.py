"""A join under a placement, epoch by epoch: what is sent, kept, looked for and found, and what a plan moves.

Exact counts, as a dataflow would have them: rows of an epoch go by the version of their epoch; a controller
is told at the end of every `period`th epoch what has been kept, and what it announces holds from `lead`
epochs later on, when kept rows move all at once. A pair is found by the later row: by a left row that comes
in the same epoch.

For each key it is kept how many rows of it are on each unit, so a pair is counted and never made.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from differential.skew.placements.matrix import input_load
from differential.skew.placements.placement import Placement, SideRows, Visits
from differential.skew.planning.controller import PlanSettings, plan, plan_grid
from differential.skew.planning.loads import LoadCounts, Loads, excess, imbalance
from progress.compiled.arrays import Int64s
from timely.routing.announcement import BUCKET, KEY, RoutingCell
from timely.routing.table import RoutingTable
from timely.wire.routing import BUCKETS

from .queries import Join
from .streams import EPOCHS, hashed

__all__ = ["BINS", "Counted", "Simulation", "simulate"]

BINS = 8
"""Keys of a band are routed by their value over this, so that few of them have neighbours in another bin."""
LEAD = 3
"""Announced in the epoch after the check, and two more: the default lead."""
HEAVY = 1 / 16
"""A key with this part of the mean load of a unit is counted apart from its bucket."""
SETTLED = 10
"""From this epoch on imbalance is looked at between checks, too."""


@dataclass
class Counted:
    """What a run came to. `stores`, `probes`, `moved`: rows sent for each. `work`: of each unit."""

    rows: int = 0
    stores: int = 0
    probes: int = 0
    moved: int = 0
    pairs: int = 0
    kept: int = 0
    is_cells: bool = False
    work: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    excess: float = 0.0
    cost: float = 0.0
    checked: list[float] = field(default_factory=list)
    """Imbalance of what was counted at each check, under the table that came out of it."""
    epochs: list[float] = field(default_factory=list)
    """Imbalance of kept rows at the end of each epoch."""
    grids: list[float] = field(default_factory=list)
    """For the matrix: its input load over that of the best grid, at the end of each epoch."""
    must_move: float = 0.0
    """When units join: the rows that the new ones should have."""
    seconds: float = 0.0

    @property
    def messages(self) -> int:
        """Rows sent: in cells one message both keeps a row and looks."""
        return self.stores + self.moved + (0 if self.is_cells else self.probes)

    @property
    def settled(self) -> float:
        """The worst imbalance from epoch 10 on."""
        return max(self.epochs[SETTLED:], default=1.0)

    def plus(self, other: Counted) -> Counted:
        """Both joins of a query on the same units; imbalances are those of the last."""
        return replace(
            other,
            rows=self.rows + other.rows,
            stores=self.stores + other.stores,
            probes=self.probes + other.probes,
            moved=self.moved + other.moved,
            pairs=self.pairs + other.pairs,
            kept=self.kept + other.kept,
            excess=self.excess + other.excess,
            cost=self.cost + other.cost,
            seconds=self.seconds + other.seconds,
            work=self.work + other.work if self.work.size else other.work,
        )


class Simulation:
    """One join under one placement.

    Args:
        settings: of the controller; `None`: nothing changes. joining: (epoch, units), from which check on
        there are so many units.
    """

    def __init__(
        self,
        join: Join,
        placement: Placement,
        settings: PlanSettings | None = None,
        joining: tuple[int, int] | None = None,
    ) -> None:
        self.placement, self.settings, self.joining = placement, settings, joining
        self.reach = join.reach
        self.table = placement.first
        self.units = max(placement.first.units, joining[1] if joining else 0)
        sides = join.left, join.right
        values = np.unique(np.concatenate([side.key for side in sides]))
        order = np.argsort(np.concatenate([side.epoch for side in sides]), kind="stable")
        self.epoch = np.concatenate([side.epoch for side in sides])[order]
        self.value = np.concatenate([side.key for side in sides])[order]
        self.values = values
        self.key = np.searchsorted(values, self.value)
        row_hash = np.concatenate([hashed(side.words) for side in sides])[order]
        side = np.repeat((0, 1), [each.rows for each in sides])[order]
        self.rows = SideRows(self._routed(self.value), row_hash, side)
        self.hash_of = self._routed(values)
        self.counts = np.zeros((3, 2, values.shape[0]), np.int64)
        """stored, probes and pairs by side and key."""
        self.kept = np.zeros((2, values.shape[0], self.units), np.int64)
        self.out = Counted(rows=self.key.shape[0], is_cells=placement.is_cells)
        self.out.work = np.zeros(self.units, np.int64)
        self.pending: tuple[int, RoutingTable] | None = None
        self.versions = [(0, self.table)]
        """Each table, with the epoch from which on it held."""

    def run(self) -> Counted:
        """All epochs."""
        begin = time.process_time()
        bounds = np.searchsorted(self.epoch, np.arange(EPOCHS + 1))
        for epoch in range(EPOCHS):
            if self.pending is not None and self.pending[0] == epoch:
                self._move(int(bounds[epoch]), *self.pending)
                self.pending = None
            self._route(int(bounds[epoch]), int(bounds[epoch + 1]))
            self.out.epochs.append(imbalance(self._loads()))
            self._look_at_grid(int(bounds[epoch + 1]))
            if self.settings is not None and (epoch + 1) % self.settings.period == 0:
                self._check(epoch, int(bounds[epoch + 1]), int(bounds[epoch + 1 - self.settings.period]))
        self.out.kept = int(self.kept.sum())
        self.out.seconds = time.process_time() - begin
        return self.out

    # An epoch

    def _route(self, start: int, stop: int) -> None:
        rows, key = SideRows(*(column[start:stop] for column in self.rows)), self.key[start:stop]
        stores = self.placement.stores(rows, self.table)
        self.out.stores += stores.row.shape[0]
        for side in (1, 0):  # so a left row finds the right ones of its epoch, and these find it not
            self._probe(rows, self.value[start:stop], side)
            mine = rows.side[stores.row] == side
            row, unit = stores.row[mine], stores.unit[mine]
            np.add.at(self.kept, (side, key[row], unit), 1)
            self.out.work += np.bincount(unit, minlength=self.units)
            np.add.at(self.counts[0, side], key[rows.side == side], 1)

    def _probe(self, rows: SideRows, value: Int64s, side: int) -> None:
        """What rows of a side look for, and what they find; neighbours that lead to the same unit are one
        visit.
        """
        mine = np.flatnonzero(rows.side == side)
        visited = [np.zeros(0, np.int64)]
        for offset in range(-self.reach, self.reach + 1):
            wanted = value[mine] + offset
            at = np.minimum(np.searchsorted(self.values, wanted), self.values.shape[0] - 1)
            is_there = self.values[at] == wanted
            look = SideRows(self._routed(wanted), rows.row_hash[mine], rows.side[mine])
            row, unit = self.placement.probes(look, self.table)
            found = np.where(is_there[row], self.kept[1 - side, at[row], unit], 0)
            self.out.pairs += int(found.sum())
            np.add.at(self.out.work, unit, found)
            np.add.at(self.counts[1, 1 - side], at[is_there], 1)
            np.add.at(self.counts[2, 1 - side], at[row], found)
            visited.append(row * self.units + unit)
        visits = np.unique(np.concatenate(visited))
        self.out.probes += visits.shape[0]
        self.out.work += np.bincount(visits % self.units, minlength=self.units)

    def _routed(self, value: Int64s) -> Int64s:
        """The hash by which a key is routed; of a band that of its bin."""
        return hashed((value // BINS if self.reach else value)[np.newaxis])

    # A version

    def _move(self, upto: int, epoch: int, table: RoutingTable) -> None:
        rows, key = SideRows(*(column[:upto] for column in self.rows)), self.key[:upto]
        moves = self.placement.moves(rows, self.table, table)
        self._add(rows, key, moves.arrivals, 1)
        self._add(rows, key, moves.drops, -1)
        self.out.moved += moves.arrivals.row.shape[0]
        self.table = table
        self.versions.append((epoch, table))

    def _add(self, rows: SideRows, key: Int64s, visits: Visits, how_many: int) -> None:
        np.add.at(self.kept, (rows.side[visits.row], key[visits.row], visits.unit), how_many)

    def _check(self, epoch: int, upto: int, since: int) -> None:
        assert self.settings is not None and self.pending is None
        if self.placement.meets_all:
            left = int((self.rows.side[:upto] == 0).sum())
            changes = plan_grid(self.table, left, upto - left) if self.placement.is_cells else None
            if changes is not None:
                self._announce(epoch, self.placement.changed(self.table, changes.announcements()))
            return
        before = self._loads()
        units = self.table.units
        if self.joining is not None and epoch >= self.joining[0] and units != self.joining[1]:
            units = self.joining[1]
            self.out.must_move = sum(before) * (1 - self.table.units / units)
        made = plan(self.placement, self.table, self._told(upto, upto - since), self.settings, units)
        if self.settings.measure == "stored":
            self.out.excess += excess(before, self.settings.theta_max)
            self.out.checked.append(imbalance(before if made is None else made.after))
        if made is not None:
            self.out.cost += made.cost
            self._announce(epoch, self.placement.changed(self.table, made.changes.announcements()))

    def _announce(self, epoch: int, table: RoutingTable) -> None:
        if epoch + LEAD < EPOCHS:
            self.pending = (epoch + LEAD, table)

    def _told(self, upto: int, traffic: int) -> Loads:
        """What a controller is told: heavy keys and exceptions apart, the others by bucket."""
        assert self.settings is not None
        weight = self.counts[0] if self.settings.measure == "stored" else self.counts.sum(axis=0)
        if self.placement.is_cells:  # both sides of a key lie together, and those of the right look
            counts = self.counts[:, :1].copy()
            counts[1, 0], counts[2, 0] = self.counts[0, 1], self.counts[2].sum(axis=0)
            weight = weight.sum(axis=0, keepdims=True)
        else:
            counts = self.counts
        least = max(float(weight.sum()) / self.table.units * HEAVY, 2.0)
        told: dict[RoutingCell, LoadCounts] = {}
        hashes: dict[RoutingCell, Int64s] = {}
        for side in range(counts.shape[1]):
            of_hash = _by_hash(self.hash_of, counts[:, side], weight[side])
            apart = (of_hash[4] >= least) | np.isin(of_hash[0], list(self.table.exceptions[side]))
            for key, *each in of_hash[:4, apart].T.tolist():
                told[RoutingCell(KEY, side, key)] = LoadCounts(*each)
            hashes.update(self._hashes(side, of_hash[0, apart], upto))
            bucket = of_hash[0][~apart] % BUCKETS
            sums = np.zeros((3, BUCKETS), np.int64)
            for line in range(3):
                np.add.at(sums[line], bucket, of_hash[line + 1][~apart])
            told.update(
                {RoutingCell(BUCKET, side, at): LoadCounts(*each) for at, each in enumerate(sums.T.tolist())}
            )
        return Loads(told, traffic, hashes)

    def _hashes(self, side: int, keys: Int64s, upto: int) -> dict[RoutingCell, Int64s]:
        """The ascending row hashes of kept rows of some keys, these ascending, too."""
        rows = SideRows(*(column[:upto] for column in self.rows))
        mine = np.flatnonzero((rows.side == side) & np.isin(rows.key_hash, keys))
        order = mine[np.lexsort((rows.row_hash[mine], rows.key_hash[mine]))]
        parts = np.split(rows.row_hash[order], np.searchsorted(rows.key_hash[order], keys[1:]))
        return {RoutingCell(KEY, side, int(key)): part for key, part in zip(keys, parts, strict=False)}

    def _loads(self) -> list[int]:
        loads: list[int] = self.kept.sum(axis=(0, 1))[: self.table.units].tolist()
        return loads

    def _look_at_grid(self, upto: int) -> None:
        if self.placement.is_cells and self.placement.meets_all:
            grid = self.table.buckets[0][0]
            cells = grid.shares * grid.copies
            left = int((self.rows.side[:upto] == 0).sum())
            powers = [1 << power for power in range(cells.bit_length())]
            best = min(input_load(cells, shares, left, upto - left) for shares in powers)
            self.out.grids.append(input_load(cells, grid.shares, left, upto - left) / best)


def _by_hash(hashes: Int64s, counts: Int64s, weight: Int64s) -> Int64s:
    """(hash, stored, probes, pairs, weight) of each different hash: keys of one bin are one."""
    different, place = np.unique(hashes, return_inverse=True)
    sums = np.zeros((5, different.shape[0]), np.int64)
    sums[0] = different
    for line, column in enumerate((*counts, weight), start=1):
        np.add.at(sums[line], place, column)
    return sums


def simulate(
    joins: list[Join],
    placement: Placement,
    settings: PlanSettings | None = None,
    joining: tuple[int, int] | None = None,
) -> Counted:
    """All joins of a query, on the same units."""
    total = Counted()
    for join in joins:
        total = total.plus(Simulation(join, placement, settings, joining).run())
    return total
