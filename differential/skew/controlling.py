"""The controller: an ordinary client that reads loads, makes plans, and announces their changes of routing.

    controller = Controller(flow, balance, settings)
    …                                     # for each epoch: insert rows, and then
    controller.announce()                 # the announcements of this epoch, if there are any
    flow.seal()

If nobody calls the controller any more, or its process is down, routes stay as they are. A new controller for
a running flow needs the announcements so far (`said`), and begins to count with the current rows. It need not
be the client that seals: it asks which epoch is open.

    at once    all changes of a plan are announced in one epoch
    batched    `pacing` items (buckets, keys) in each epoch
    fluid      one item in each epoch

An item moves as a whole, and each move is right by itself, so any number of them may be announced together,
in any order. The item with the most load goes first, since the last of a hundred may be a hundred epochs
behind. The third seed stops the input while rows move: `stand_still` does that, for comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import pyarrow as pa

from timely.errors import MisuseError
from timely.routing.announcement import BUCKET, KEY, Announcement, RoutingCell, RoutingChanges
from timely.routing.table import SIDES, RoutingTable
from timely.wire.routing import BUCKETS

from .balance import Balance
from .planning.controller import PlanSettings, RoutingPlan, plan, plan_grid
from .planning.loads import LoadCounts, Loads, Measure
from .running.units import PAIRS

__all__ = ["Controller", "Names", "Pacing", "announced"]

Pacing = int | Literal["at once", "fluid"]


class _Output(Protocol):
    def changes(self, start: int | None = None) -> pa.Table:
        """Return all changes of epochs that were sealed since the last call, or from `start` on."""
        ...

    def follow(self, *, snapshot: bool = False) -> Iterator[tuple[int, pa.Table]]:
        """Yield the current rows as if they had come in the last epoch, and then the changes of each."""
        ...


class _Input(Protocol):
    def insert(self, data: object) -> int:
        """Add rows to the open epoch."""
        ...


class _Flow(Protocol):
    """The part of a flow of `timely.client` that a controller needs."""

    epoch: int

    def input(self, name: str) -> _Input:
        """Return an input."""
        ...

    def output(self, name: str) -> _Output:
        """Return an output."""
        ...

    def refresh(self) -> int:
        """Ask which epoch is open, and return it."""
        ...

    def seal(self) -> int:
        """Complete the open epoch."""
        ...

    def wait(self) -> int:
        """Wait until all sealed epochs are complete."""
        ...


@dataclass(frozen=True)
class Names:
    """Names of the input of announcements, and of the outputs bucket_counts, key_counts and loads."""

    announcements: str = "routes"
    buckets: str = "buckets"
    keys: str = "keys"
    loads: str = "loads"


class Controller:
    """Keeps the units of one join in balance, by announcements.

    Args:
        flow: has the outputs and the input of `names`; nobody else reads their changes by this handle.
        balance: the balance of the join.
        settings: when and what to plan.
        pacing: the number of items that are announced in an epoch.
        said: all announcements that were made before, epoch by epoch, as `announced` reads them.

    Raises MisuseError for a scheme that has nothing to plan, and for an impossible pacing.
    """

    def __init__(
        self,
        flow: _Flow,
        balance: Balance,
        settings: PlanSettings,
        *,
        pacing: Pacing = "at once",
        names: Names | None = None,
        said: Iterable[Iterable[Announcement]] = (),
    ) -> None:
        if balance.scheme in ("JB", "JB6"):
            raise MisuseError(f"controller: {balance.scheme} places rows at random, and needs no plans")
        if pacing not in ("at once", "fluid") and (type(pacing) is not int or pacing < 1):
            raise MisuseError(
                f"controller: pacing is 'at once', 'fluid' or a number of items, not {pacing!r}"
            )
        self._flow = flow
        self._placement = balance.placement
        self._settings = settings
        self._pacing = 1 if pacing == "fluid" else pacing
        self._names = Names() if names is None else names
        self._buckets: Counter[tuple[int, int]] = Counter()
        self._keys: dict[int, tuple[int, int]] = {}
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._before: tuple[Counter[tuple[int, int]], dict[int, tuple[int, int]]] = (Counter(), {})
        self._waiting: list[RoutingChanges] = []
        self.table: RoutingTable = self._placement.first
        """The routing table after all announcements so far."""
        for rows in said:
            self.table = self._placement.changed(self.table, rows)
        self._checks = self._flow.refresh() // settings.period
        self._begun: set[str] = set()
        self.plans: list[RoutingPlan] = []
        """All plans that were made, in order."""

    def announce(self) -> list[Announcement]:
        """Insert and return the announcements of the open epoch; call it once per epoch, before sealing.

        Every `period` epochs a plan is made from the complete epochs. It takes the place of changes that
        still wait, since those were planned with older counts. No plan is made while a change of the number
        of units waits: then all that waits comes first.
        """
        due = (self._flow.refresh() + 1) // self._settings.period
        if due > self._checks and not self._waits_for_units():
            self.check()
        self._checks = due
        return self._next()

    def _waits_for_units(self) -> bool:
        return any(changes.units is not None for changes in self._waiting)

    def _next(self) -> list[Announcement]:
        """Announce the changes that wait first."""
        if not self._waiting:
            return []
        changes = self._waiting.pop(0)
        rows = changes.announcements()
        self.table = self._placement.changed(self.table, rows)
        self._flow.input(self._names.announcements).insert([tuple(row) for row in rows])
        return rows

    def check(self, units: int | None = None) -> RoutingPlan | None:
        """Make a plan now, for `units` units from now on (None: as many as there are); its changes wait.

        They take the place of changes that waited until now, unless these change the number of units.
        """
        self._read()
        if not self._waits_for_units():
            self._waiting.clear()
        if not self._placement.is_cells or not self._placement.meets_all:
            loads = self._loads()
            new_plan = plan(self._placement, self.table, loads, self._settings, units)
            self._keep_period()
            if new_plan is not None:
                self.plans.append(new_plan)
                grows = (new_plan.changes.units or 0) > self.table.units
                ordered = _heaviest_first(new_plan.changes, loads, self._settings.measure)
                self._waiting += _paced(ordered, self._pacing, grows)
            return new_plan
        sizes = [sum(count for (of, _), count in self._buckets.items() if of == side) for side in SIDES]
        changes = plan_grid(self.table, *sizes)
        self._waiting += [] if changes is None else [changes]
        return None

    def stand_still(self, lead: int = 2) -> int:
        """Announce all that waits, and seal until its rows have moved; return how many epochs went by.

        The third seed does so. The input belongs to the caller, who must not insert meanwhile.
        """
        epochs = 0
        while self._waiting:
            self._next()
            self._flow.seal()
            epochs += 1
        for _ in range(lead + 1):
            self._flow.seal()
        self._flow.wait()
        return epochs + lead + 1

    def _read(self) -> None:
        """Read the changes of complete epochs."""
        for side, key, diff in self._changes(self._names.buckets, "side", "key", "diff"):
            self._buckets[side, key] += diff
        for key, left, right, diff in self._changes(self._names.keys, "key", "left", "right", "diff"):
            if diff > 0:
                self._keys[key] = (left, right)
            else:
                self._keys.pop(key, None)
        for side, bucket, what, diff in self._changes(self._names.loads, "side", "bucket", "what", "diff"):
            if what == PAIRS:
                self._pairs[side, bucket] += diff

    def _changes(self, name: str, *columns: str) -> Iterable[tuple[int, ...]]:
        output = self._flow.output(name)
        if name not in self._begun and self._flow.epoch > 0:
            # An earlier reader of this handle may have read the changes until now, or let them be forgotten.
            _, table = next(output.follow(snapshot=True))
        else:
            table = output.changes()
        self._begun.add(name)
        # In this order, since the old value goes in the same epoch in which the new one comes.
        table = table.sort_by([("epoch", "ascending"), ("diff", "ascending")])
        listed = [cast("list[int]", table.column(column).to_pylist()) for column in columns]
        return zip(*listed, strict=True)

    def _loads(self) -> Loads:
        """Return what a planner needs: all stored rows, and the probes and pairs since the last plan."""
        buckets, keys = self._before
        counts: dict[RoutingCell, LoadCounts] = {}
        heavy: Counter[tuple[int, int]] = Counter()
        heavy_came: Counter[tuple[int, int]] = Counter()
        for key, both in self._keys.items():
            came = [both[side] - keys.get(key, (0, 0))[side] for side in SIDES]
            for side in SIDES:
                probes = max(came[1 - side], 0)
                counts[RoutingCell(KEY, side, key)] = LoadCounts(both[side], probes, probes * both[side])
                heavy[side, key % BUCKETS] += both[side]
                heavy_came[side, key % BUCKETS] += came[side]
        for side in SIDES:
            for bucket in range(BUCKETS):
                stored = self._buckets[side, bucket] - heavy[side, bucket]
                came_here = self._buckets[1 - side, bucket] - buckets[1 - side, bucket]
                probes = max(came_here - heavy_came[1 - side, bucket], 0)
                if stored or probes:
                    pairs = max(self._pairs[side, bucket], 0) if not heavy[side, bucket] else 0
                    counts[RoutingCell(BUCKET, side, bucket)] = LoadCounts(max(stored, 0), probes, pairs)
        traffic = sum(self._buckets.values()) - sum(buckets.values())
        return Loads(counts, max(traffic, 0))

    def _keep_period(self) -> None:
        self._before = (Counter(self._buckets), dict(self._keys))
        self._pairs.clear()


def announced(output: _Output) -> list[list[Announcement]]:
    """Read all announcements, by epoch, from an output of the collection of `dd.announcements`.

    A new controller needs them as `said`. Raises ForgottenError if some of them were forgotten there.
    """
    table = output.changes(0)
    by_epoch: dict[int, list[Announcement]] = {}
    for row in table.sort_by("epoch").to_pylist():
        by_epoch.setdefault(row["epoch"], []).append(
            Announcement(*(row[name] for name in Announcement._fields))
        )
    return list(by_epoch.values())


def _heaviest_first(changes: RoutingChanges, loads: Loads, measure: Measure) -> RoutingChanges:
    """Return the same changes, the cells with the largest measured load first."""

    def load(cell: RoutingCell) -> int:
        counts = loads.counts.get(cell, LoadCounts(0))
        return counts.stored if measure == "stored" else sum(counts)

    return RoutingChanges(
        changes.units, {at: changes.grids[at] for at in sorted(changes.grids, key=load, reverse=True)}
    )


def _paced(changes: RoutingChanges, pacing: int | str, grows: bool) -> list[RoutingChanges]:
    """Return the changes in steps of `pacing` items; the number of units is first if it grows, else last."""
    if not isinstance(pacing, int):
        return [changes]
    items = list(changes.grids.items())
    parts = [RoutingChanges(None, dict(items[at : at + pacing])) for at in range(0, len(items), pacing)]
    if changes.units is None:
        return parts
    units = [RoutingChanges(changes.units, {})]
    return [*units, *parts] if grows else [*parts, *units]
