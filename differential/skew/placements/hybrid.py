"""D-JB: keys are routed by buckets, and heavy keys as exceptions.

Each row is kept once and visits one unit, as if every key were on one unit, but for heavy keys: these are
alone, split, or copied (`timely/routing/grid.py`). Which, and where, is the planner's business
(`differential/skew/planning/`); to begin with there are no exceptions. Source: the mixed partitioning by key
and by tuple of the third seed. Copies are not in it: a split key has all of its shares visited, so where a
single row has a thousand partners, all thousand visit it, and only copies of that row divide them.
"""

from __future__ import annotations

from timely.routing.grid import Grid
from timely.routing.table import RoutingTable

from .biclique import halves
from .placement import Placement

__all__ = ["hybrid"]


def hybrid(units: int) -> Placement:
    """`units` in two halves; bucket b of a side is on unit b modulo the size of its half."""
    left, right = ([Grid.alone(unit) for unit in half] for half in halves(units))
    return Placement("D-JB", RoutingTable.of(units, left, right), is_cells=False, meets_all=False)
