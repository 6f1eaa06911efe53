"""D-JB: keys are routed by buckets, and heavy keys as exceptions.

Each row is stored once and visits one unit, as if every key were on one unit, except for heavy keys: these
are alone, split, or copied (`timely/routing/grid.py`). The planner decides which keys, and where
(`differential/skew/planning/`); at first there are no exceptions. Source: the mixed partitioning by key and
by tuple of the third seed, which has no copies. All shares of a split key are visited: if a single row has a
thousand partners, all thousand visit it, and only copies of that row divide them.
"""

from __future__ import annotations

from timely.routing.grid import Grid
from timely.routing.table import RoutingTable

from .biclique import halves
from .placement import Placement

__all__ = ["hybrid"]


def hybrid(units: int) -> Placement:
    """Return a placement on `units` in two halves; bucket b of a side is on unit b modulo its half's size."""
    left, right = ([Grid.alone(unit) for unit in half] for half in halves(units))
    return Placement("D-JB", RoutingTable.of(units, left, right), is_cells=False, meets_all=False)
