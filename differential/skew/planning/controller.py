"""Loads in, announcements out: the plan of each check.

Pure: a client calls `plan` with its counts and the newest table, and announces the result; if nobody calls,
routes stay as they are. The same counts give the same plan, wherever it is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from progress.errors import MisuseError
from timely.routing.announcement import EVERY, RoutingCell, RoutingChanges
from timely.routing.table import RoutingTable, checked_units

from ..placements.biclique import halves as biclique_halves
from ..placements.matrix import fitting_grid, matrix_table
from ..placements.placement import Placement
from .cost import Costs, Weights
from .draft import RoutingDraft, costs_of
from .loads import Loads, Measure, thetas
from .moving import Mover
from .plans import AIM_DEFAULT, balance, ism

__all__ = ["PlanSettings", "RoutingPlan", "halves_of", "plan", "plan_grid"]


@dataclass(frozen=True)
class PlanSettings:
    """Settings of a controller.

    Args:
        theta_max: how far from the mean a load may be, as a part of it.
        period: epochs between checks.
        measure: what a load is.
        weights: of costs.
        aim: the part of `theta_max` to which a plan brings loads that are beyond it.
    """

    theta_max: float = 0.2
    period: int = 5
    measure: Measure = "stored"
    weights: Weights = field(default_factory=Weights)
    aim: float = AIM_DEFAULT

    def __post_init__(self) -> None:
        if not (math.isfinite(self.theta_max) and self.theta_max >= 0):
            raise MisuseError(f"controller: theta_max is a finite number from 0 on, not {self.theta_max}")
        if self.period < 1:
            raise MisuseError(f"controller: period is a number of epochs from 1 on, not {self.period}")
        if self.measure not in ("stored", "work"):
            raise MisuseError(f"controller: measure is 'stored' or 'work', not {self.measure!r}")
        if not 0 <= self.aim <= 1:
            raise MisuseError(f"controller: aim is a part of theta_max, from 0 to 1, not {self.aim}")


class RoutingPlan(NamedTuple):
    """The changes to announce, and why.

    before, after: the load of each unit by the counts. log: a line for each step.
    """

    changes: RoutingChanges
    costs: Costs
    cost: float
    before: list[int]
    after: list[int]
    log: list[str]


def halves_of(table: RoutingTable, units: int) -> tuple[list[int], list[int]]:
    """Return the units of each side when there are `units`.

    A side has the units that had a bucket of it in the first `table`; units that joined since go to the sides
    one by one in turn. Units from `units` on are in neither. If a side has none left, the units are halved
    anew.
    """
    left, right = ({unit for grid in side for unit in grid.all_units} for side in table.buckets)
    halves = [unit for unit in left if unit < units], [unit for unit in right - left if unit < units]
    for unit in range(table.units, units):
        halves[(unit - table.units) % 2].append(unit)
    if units > 1 and not (halves[0] and halves[1]):
        anew = biclique_halves(units)
        return list(anew[0]), list(anew[1])
    return halves


def plan(
    placement: Placement, table: RoutingTable, loads: Loads, settings: PlanSettings, units: int | None = None
) -> RoutingPlan | None:
    """Return changes that make θ ≤ θmax for all units; None if that holds already, or no change is found.

    For hash and D-JB. `units`: how many there are from now on; everything leaves the units beyond them, and
    new ones get their part. Raises MisuseError if there cannot be so many; also for other schemes, which
    spread rows by chance, so that there is nothing to plan.
    """
    if any(len(grid.all_units) > 1 for side in placement.first.buckets for grid in set(side)):
        raise MisuseError(f"{placement.name}: no plan is made for rows that are spread by chance")
    unit_count = table.units if units is None else checked_units(units)
    draft = RoutingDraft(table, placement.first, loads, settings.measure, placement.is_cells, unit_count)
    before, duplicates = list(draft.loads), draft.duplicates()
    live = range(unit_count)
    if unit_count == table.units and max(thetas(before)) <= settings.theta_max:
        return None
    mover = Mover(draft, settings.weights)
    for unit in range(unit_count, table.units):
        mover.empty(unit, live)
    if placement.is_cells or unit_count == 1:
        ism(mover, live, settings.theta_max, settings.aim)
    else:
        balance(mover, halves_of(placement.first, unit_count), settings.theta_max, settings.aim)
    changes = draft.changes(unit_count)
    if changes.units is None and not changes.grids:
        return None
    costs = costs_of(draft, duplicates)
    cost = settings.weights.cost(costs, loads.traffic)
    return RoutingPlan(changes, costs, cost, before, list(draft.loads), mover.log)


def plan_grid(table: RoutingTable, left_rows: int, right_rows: int) -> RoutingChanges | None:
    """For the matrix: return the change to the grid that fits the sides' sizes best; None: keep it."""
    shares = fitting_grid(table.units, left_rows, right_rows)
    if shares == table.buckets[0][0].shares:
        return None
    return RoutingChanges(None, {RoutingCell(EVERY, 0, 0): matrix_table(table.units, shares).buckets[0][0]})
