"""MoveOut and MoveIn: which items leave a unit that has too much, and which come to one that has too little.

The rules of the third seed:

    H1   if whole items can leave so that the unit is within its bounds, they leave
    H2   otherwise the heaviest item is divided, and a part of it leaves
    H3   items whose home is a unit that has too little come home first, and their exceptions are forgotten

If both H1 and H2 are possible, the one that costs less for what it relieves is done (`cost.py`), H1 if they
cost the same. A receiver takes no more than brings it to the middle of its bounds. A unit with too much gives
up twice its excess, if that does not bring it below the middle: what moves stays in proportion to what had to
move, and a unit far beyond its bounds does not need a plan again at the next check.

The seed's MoveIn knows H3 only, and leaves a unit with too little as it is if no item has its home there and
no other unit has too much. Here such a unit then *pulls*: H1 and H2 of the unit that has most, with it as the
only receiver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from timely.routing.announcement import BUCKET, KEY

from .cost import Costs, Weights
from .draft import Item, RoutingDraft

__all__ = ["Bounds", "Mover", "bounds_of"]


class Bounds(NamedTuple):
    """The bounds of a unit's load, and the aims of a plan: low ≤ low_aim ≤ high_aim ≤ high."""

    low: int
    low_aim: int
    high_aim: int
    high: int


class _Step(NamedTuple):
    """Move an item to a unit: all of it, or `rows` rows of its divided side."""

    item: Item
    target: int
    rows: int | None


def bounds_of(total: int, units: int, theta_max: float, aim: float) -> Bounds:
    """Return the bounds of `units` units that have `total` together; a plan aims within `aim` · θmax."""
    mean = total / units
    high = math.floor(mean * (1 + theta_max) + 1e-9)
    low = math.ceil(mean * (1 - theta_max) - 1e-9)
    high_aim = max(math.floor(mean * (1 + theta_max * aim) + 1e-9), math.ceil(mean - 1e-9))
    low_aim = min(math.ceil(mean * (1 - theta_max * aim) - 1e-9), math.floor(mean + 1e-9))
    return Bounds(low, max(low_aim, min(low, high_aim)), high_aim, max(high, high_aim))


class _Option(NamedTuple):
    """Steps, their costs, and by how much they relieve their unit, at most by what is needed."""

    costs: Costs
    relief: int
    steps: list[_Step]


@dataclass
class Mover:
    """Moves items of a draft by the rules above. `log` has a line per step: what was moved, by which rule."""

    draft: RoutingDraft
    weights: Weights
    log: list[str] = field(default_factory=list)

    def move_out(self, unit: int, targets: Sequence[int], bounds: Bounds) -> None:
        """Move what is beyond the bounds of `unit` to those `targets` that have room."""
        draft = self.draft
        over = draft.loads[unit] - bounds.high
        others = [target for target in targets if target != unit]
        goal = max(bounds.high_aim, bounds.high - over)
        while draft.loads[unit] > bounds.high:
            rooms = {target: bounds.high_aim - draft.loads[target] for target in others}
            before = draft.loads[unit]
            self._step(
                unit,
                {target: room for target, room in rooms.items() if room > 0},
                bounds._replace(high_aim=goal),
            )
            if draft.loads[unit] >= before:
                return

    def empty(self, unit: int, targets: Sequence[int]) -> None:
        """Move everything from a unit that retires, each item to the target with the least load."""
        for item in self.draft.on(unit):
            if not item.is_follower:
                target = min(targets, key=lambda other: (self.draft.loads[other], other))
                self._do("retires", _Step(item, target, None), unit)

    def move_in(self, unit: int, sources: Sequence[int], bounds: Bounds) -> None:
        """Move what `unit` lacks to it, from those `sources` that have more than the mean."""
        draft = self.draft
        if draft.loads[unit] < bounds.low:
            self.call_home(unit, bounds)
        goal = min(bounds.low_aim, 2 * bounds.low - draft.loads[unit])
        while draft.loads[unit] < bounds.low:
            source = max((other for other in sources if other != unit), key=lambda other: draft.loads[other])
            before = draft.loads[unit]
            pulled = min(goal - before, draft.loads[source] - bounds.low_aim)
            if pulled > 0:
                aim = draft.loads[source] - pulled
                self._step(source, {unit: bounds.high_aim - before}, bounds._replace(high_aim=aim, high=aim))
            if draft.loads[unit] <= before:
                return  # no item of the source can be moved

    def call_home(self, unit: int, bounds: Bounds) -> None:
        """H3: items whose home is `unit` come back from elsewhere while there is room, the heaviest first."""
        draft = self.draft
        away = [
            item
            for item in draft.items.values()
            if item.home == unit and not item.is_follower and item.units != [unit]
            if item.bucket is None or item.bucket.is_whole
        ]
        for item in sorted(away, key=lambda item: (-item.total, item.cell)):
            if draft.loads[unit] >= bounds.low_aim:
                return
            whole = item.load_of(item.total, draft.measure)
            whole += sum(follower.load_of(follower.total, draft.measure) for follower in item.followers)
            come = whole - (draft.load_on(item, unit) if unit in item.of_unit else 0)
            left = [draft.loads[other] - draft.load_on(item, other) for other in item.units if other != unit]
            if come and draft.loads[unit] + come <= bounds.high_aim and min(left) >= bounds.low:
                self.log.append(f"H3: {item.cell} comes home to unit {unit} from {item.units}")
                draft.call_home(item)

    def _step(self, unit: int, rooms: dict[int, int], bounds: Bounds) -> None:
        """Do what costs least for the load that it takes from `unit`: move whole items, or a part of a key.

        If there is neither, a part of a bucket.
        """
        whole = self._whole(unit, rooms, bounds)
        part = self._divided(unit, rooms, bounds, KEY)
        if whole is None and part is None:
            part = self._divided(unit, rooms, bounds, BUCKET)
        candidates = [("H1", whole), ("H2", part)]
        options = [(self._cost(option), rule, option) for rule, option in candidates if option is not None]
        if options:
            _, rule, option = min(options, key=lambda each: each[:2])
            for step in option.steps:
                self._do(rule, step, unit)

    def _cost(self, option: _Option) -> float:
        return self.weights.cost(option.costs, self.draft.traffic) / option.relief

    def _do(self, rule: str, step: _Step, unit: int) -> None:
        item, target, rows = step
        what = "all" if rows is None else f"{rows} of {item.of_unit[unit]}"
        self.log.append(f"{rule}: {what} of {item.cell} from unit {unit} to {target}")
        if item.is_follower:
            self.draft.free(item)
        self.draft.move(item, unit, target, rows)

    def _whole(self, unit: int, rooms: dict[int, int], bounds: Bounds) -> _Option | None:
        """H1: return whole items that bring `unit` within its bounds when they leave; None if there are none.

        Keys come first, the heaviest that fit. Buckets come by number, not by weight: those that had most by
        chance would have less from then on, and those that they leave behind more.
        """
        draft, rooms = self.draft, dict(rooms)
        load, costs, steps = draft.loads[unit], Costs(), list[_Step]()
        taken = set[int]()
        by_weight = draft.on(unit)
        in_order = [item for item in by_weight if item.bucket is not None]
        in_order += sorted((item for item in by_weight if item.bucket is None), key=lambda item: item.cell)
        for item in in_order:
            if load <= bounds.high_aim or not rooms:
                break
            leaves = draft.load_on(item, unit)
            if item.bucket is not None and id(item.bucket) in taken and item.is_follower:
                continue
            if any(id(follower) in taken for follower in item.followers) or not item.is_whole:
                continue
            target = max(rooms, key=lambda other: (rooms[other], -other))
            if 0 < leaves <= rooms[target] and load - leaves >= bounds.low:
                rooms[target] -= leaves
                load -= leaves
                taken.add(id(item))
                steps.append(_Step(item, target, None))
                costs = costs.plus(Costs(1, 0, draft.stored_on(item, unit)))
        relief = min(draft.loads[unit] - load, draft.loads[unit] - bounds.high_aim)
        return _Option(costs, relief, steps) if steps and load <= bounds.high else None

    def _divided(self, unit: int, rooms: dict[int, int], bounds: Bounds, scope: int) -> _Option | None:
        """H2: return a part of the heaviest divisible item of a scope, to the unit with most room."""
        draft = self.draft
        if not rooms:
            return None
        need = draft.loads[unit] - bounds.high_aim
        for item in draft.on(unit):
            if item.cell.scope != scope or item.followers:
                continue  # keys that follow a bucket leave before it
            self._choose_how(item)
            target = max(rooms, key=lambda other: (rooms[other], other in item.of_unit, -other))
            count = self._part(item, unit, target, need, rooms[target])
            if count > 0:
                there = item.load_of(item.of_unit[unit] - count, draft.measure)
                relief = draft.load_on(item, unit) - there
                return _Option(self._costs_of_part(item, target, count), relief, [_Step(item, target, count)])
        return None

    def _choose_how(self, item: Item) -> None:
        """Choose copies for a whole item if copies cost less than a visit to each share; else shares."""
        if item.is_whole:
            few = self.draft.measure == "work" and item.counts.stored < item.counts.probes
            self.draft.divide_by(item, "copies" if few else "shares")

    def _costs_of_part(self, item: Item, target: int, count: int) -> Costs:
        arriving = 0 if target in item.of_unit else 1
        stored, probes, _ = item.counts
        if item.divides == "shares":
            lookers = probes if self.draft.is_cells else 0  # rows that look are stored, too
            return Costs(len(item.pieces) + 1, arriving * probes, count + arriving * lookers)
        return Costs(len(item.pieces) + 1, arriving * stored, arriving * stored)

    def _part(self, item: Item, unit: int, target: int, need: int, room: int) -> int:
        """Return how many rows of the divided side leave.

        These are the most that relieve `unit` by no more than `need` and fit into the `room` of `target`.
        """
        draft = self.draft
        here, there = item.of_unit[unit], draft.load_on(item, target) if target in item.of_unit else 0
        load = draft.load_on(item, unit)
        least, most = 0, here - 1
        while least < most:  # both conditions hold up to some count, and never above
            count = (least + most + 1) // 2
            relief = load - item.load_of(here - count, draft.measure)
            if relief <= need and draft.load_if(item, target, count) - there <= room:
                least = count
            else:
                most = count - 1
        return least
