"""The controller: reads what there is, asks for a plan, announces it. An ordinary client.

    controller = Controller(flow, balance, settings)
    …                                     # for each epoch: insert rows, and then
    controller.announce()                 # what is to be announced in this epoch, if anything
    flow.seal()

If nobody calls it any more, routes stay as they are, and so they do while its process is down. One that is
made anew for a flow that runs is told what has been announced so far (`said`), and begins to count with what
is there. It need not be the client that seals: which epoch is open it asks.

    at once    all that a plan changes is announced in one epoch
    batched    `pacing` items (buckets, keys) in each epoch
    fluid      one item in each epoch

An item is moved as a whole, and each is right by itself, so any number of them may be announced together, in
any order: the one with most load goes first, since the last of a hundred may be a hundred epochs behind. The
third seed stops the input while rows move: `stand_still` does that, to be compared with.
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
        """All changes of epochs that were sealed since the last time, or from `start` on."""
        ...

    def follow(self, *, snapshot: bool = False) -> Iterator[tuple[int, pa.Table]]:
        """What there is as if it had come in the last epoch, and then the changes of each."""
        ...


class _Input(Protocol):
    def insert(self, data: object) -> int:
        """Add rows to the open epoch."""
        ...


class _Flow(Protocol):
    """What a controller needs of a flow of `timely.client`."""

    epoch: int

    def input(self, name: str) -> _Input:
        """An input."""
        ...

    def output(self, name: str) -> _Output:
        """An output."""
        ...

    def refresh(self) -> int:
        """Ask which epoch is open."""
        ...

    def seal(self) -> int:
        """Complete the open epoch."""
        ...

    def wait(self) -> int:
        """Until all sealed epochs are complete."""
        ...


@dataclass(frozen=True)
class Names:
    """Of the input of announcements; of the outputs with bucket_counts, key_counts, loads of the join."""

    announcements: str = "routes"
    buckets: str = "buckets"
    keys: str = "keys"
    loads: str = "loads"


class Controller:
    """Announces what keeps the units of one join in balance.

    Args:
        flow: with the outputs and the input of `names`; by this handle nobody else reads their changes.
        balance: as the join has it. settings: when and what to plan. pacing: how many items are announced in
        an epoch. said: all announcements that were made before, epoch by epoch, as `announced` reads them.

    Raises MisuseError for a scheme that has nothing to plan, and a pacing that is none.
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
            raise MisuseError(f"controller: pacing is 'at once', 'fluid' or so many items, not {pacing!r}")
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
        """By all that has been announced."""
        for rows in said:
            self.table = self._placement.changed(self.table, rows)
        self._checks = self._flow.refresh() // settings.period
        self._begun: set[str] = set()
        self.plans: list[RoutingPlan] = []
        """All that were made, in order."""

    def announce(self) -> list[Announcement]:
        """To be called once in each epoch, before it is sealed: insert what is to be announced in it.

        Every `period` epochs a plan is made of what is complete. It takes the place of what still waits, as
        that was made of older counts; not if the number of units is to change: then all of that comes first.
        """
        due = (self._flow.refresh() + 1) // self._settings.period
        if due > self._checks and not self._waits_for_units():
            self.check()
        self._checks = due
        return self._next()

    def _waits_for_units(self) -> bool:
        return any(changes.units is not None for changes in self._waiting)

    def _next(self) -> list[Announcement]:
        """Announce what waits first."""
        if not self._waiting:
            return []
        changes = self._waiting.pop(0)
        rows = changes.announcements()
        self.table = self._placement.changed(self.table, rows)
        self._flow.input(self._names.announcements).insert([tuple(row) for row in rows])
        return rows

    def check(self, units: int | None = None) -> RoutingPlan | None:
        """Plan now, for so many `units` from now on (None: as there are); what comes of it waits to be
        announced, in place of what waited until now.
        """
        self._read()
        if not self._waits_for_units():
            self._waiting.clear()
        if not self._placement.is_cells or not self._placement.meets_all:
            loads = self._loads()
            made = plan(self._placement, self.table, loads, self._settings, units)
            self._keep_period()
            if made is not None:
                self.plans.append(made)
                grows = (made.changes.units or 0) > self.table.units
                ordered = _heaviest_first(made.changes, loads, self._settings.measure)
                self._waiting += _paced(ordered, self._pacing, grows)
            return made
        sizes = [sum(count for (of, _), count in self._buckets.items() if of == side) for side in SIDES]
        changes = plan_grid(self.table, *sizes)
        self._waiting += [] if changes is None else [changes]
        return None

    def stand_still(self, lead: int = 2) -> int:
        """Announce all that waits, and seal until it has moved; returns how many epochs went by.

        So does the third seed. The input is the caller's: it is not to insert meanwhile.
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
        """Take in what is new of complete epochs."""
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
            # Whoever had this handle before may have read what came until now, or let it be forgotten.
            _, table = next(output.follow(snapshot=True))
        else:
            table = output.changes()
        self._begun.add(name)
        # In this order, as what was is said to be gone in the epoch in which it is something else.
        table = table.sort_by([("epoch", "ascending"), ("diff", "ascending")])
        listed = [cast("list[int]", table.column(column).to_pylist()) for column in columns]
        return zip(*listed, strict=True)

    def _loads(self) -> Loads:
        """What a planner is told: rows kept in all, who asked and what was found since the last plan."""
        buckets, keys = self._before
        counts: dict[RoutingCell, LoadCounts] = {}
        heavy: Counter[tuple[int, int]] = Counter()
        heavy_came: Counter[tuple[int, int]] = Counter()
        for key, both in self._keys.items():
            came = [both[side] - keys.get(key, (0, 0))[side] for side in SIDES]
            for side in SIDES:
                asked = max(came[1 - side], 0)
                counts[RoutingCell(KEY, side, key)] = LoadCounts(both[side], asked, asked * both[side])
                heavy[side, key % BUCKETS] += both[side]
                heavy_came[side, key % BUCKETS] += came[side]
        for side in SIDES:
            for bucket in range(BUCKETS):
                stored = self._buckets[side, bucket] - heavy[side, bucket]
                came_here = self._buckets[1 - side, bucket] - buckets[1 - side, bucket]
                asked = max(came_here - heavy_came[1 - side, bucket], 0)
                if stored or asked:
                    pairs = max(self._pairs[side, bucket], 0) if not heavy[side, bucket] else 0
                    counts[RoutingCell(BUCKET, side, bucket)] = LoadCounts(max(stored, 0), asked, pairs)
        traffic = sum(self._buckets.values()) - sum(buckets.values())
        return Loads(counts, max(traffic, 0))

    def _keep_period(self) -> None:
        self._before = (Counter(self._buckets), dict(self._keys))
        self._pairs.clear()


def announced(output: _Output) -> list[list[Announcement]]:
    """What was announced, epoch by epoch, read of an output of the collection that `dd.announcements` gives:
    what a controller that is made anew is to be told as `said`.

    Raises ForgottenError if some of it was forgotten there.
    """
    table = output.changes(0)
    found: dict[int, list[Announcement]] = {}
    for row in table.sort_by("epoch").to_pylist():
        found.setdefault(row["epoch"], []).append(Announcement(*(row[name] for name in Announcement._fields)))
    return list(found.values())


def _heaviest_first(changes: RoutingChanges, loads: Loads, measure: Measure) -> RoutingChanges:
    """The same, those places first that have most of what is measured."""

    def load(place: RoutingCell) -> int:
        counts = loads.counts.get(place, LoadCounts(0))
        return counts.stored if measure == "stored" else sum(counts)

    return RoutingChanges(
        changes.units, {at: changes.grids[at] for at in sorted(changes.grids, key=load, reverse=True)}
    )


def _paced(changes: RoutingChanges, pacing: int | str, grows: bool) -> list[RoutingChanges]:
    """The same changes, so many items at a time; the number of units comes first if it grows, else last."""
    if not isinstance(pacing, int):
        return [changes]
    items = list(changes.grids.items())
    parts = [RoutingChanges(None, dict(items[at : at + pacing])) for at in range(0, len(items), pacing)]
    if changes.units is None:
        return parts
    units = [RoutingChanges(changes.units, {})]
    return [*units, *parts] if grows else [*parts, *units]
