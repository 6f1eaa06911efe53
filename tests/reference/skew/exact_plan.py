"""The cheapest plan there is, by trying all ways to divide a few rows between units.

Only what a plan of keys in shares can do: each key's rows anywhere. Costs are those of `cost.py`: a cell
announced for each unit of a key that changes, every probe sent once more for each further unit, rows that
move.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from differential.skew.planning.cost import Costs, Weights


def divisions(rows: int, units: int) -> Iterator[tuple[int, ...]]:
    """All ways to have `rows` rows on `units` units."""
    if units == 1:
        yield (rows,)
        return
    for here in range(rows + 1):
        for rest in divisions(rows - here, units - 1):
            yield (here, *rest)


def is_balanced(loads: Sequence[int], theta_max: float) -> bool:
    """By definition 1 of the seed."""
    mean = sum(loads) / len(loads)
    return all(abs(load - mean) <= theta_max * mean + 1e-9 for load in loads)


def cost_of(
    before: Sequence[tuple[int, ...]], after: Sequence[tuple[int, ...]], probes: Sequence[int]
) -> Costs:
    """What it costs to go from one division of each key to another."""
    costs = Costs()
    for was, will, looking in zip(before, after, probes, strict=True):
        if was != will:
            units = sum(rows > 0 for rows in will)
            further = units - sum(rows > 0 for rows in was)
            moved = sum(max(0, now - then) for then, now in zip(was, will, strict=True))
            costs = costs.plus(Costs(units, further * looking, moved))
    return costs


def cheapest(
    before: Sequence[tuple[int, ...]], probes: Sequence[int], theta_max: float, weights: Weights, traffic: int
) -> float | None:
    """The least cost of a plan with θ ≤ θmax; `None` if there is no such plan."""
    units = len(before[0])
    found = [
        weights.cost(cost_of(before, after, probes), traffic)
        for after in itertools.product(*(list(divisions(sum(key), units)) for key in before))
        if is_balanced([sum(column) for column in zip(*after, strict=True)], theta_max)
    ]
    return min(found, default=None)
