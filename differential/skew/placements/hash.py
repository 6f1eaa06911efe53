"""Hash: every key is on one unit, with both sides.

A join without placements does the same, with workers in place of units. A row costs one message whatever the
number of units; a hot key costs its unit everything.
"""

from __future__ import annotations

from timely.routing.grid import Grid
from timely.routing.table import RoutingTable

from .placement import Placement

__all__ = ["hash_placement", "home_table"]


def hash_placement(units: int) -> Placement:
    """Return the placement by which bucket b of keys is on unit b modulo `units`."""
    return Placement("hash", home_table(units), is_cells=True, meets_all=False)


def home_table(units: int) -> RoutingTable:
    """Return the table in which bucket b of either side is on unit b modulo `units`."""
    alone = [Grid.alone(unit) for unit in range(max(units, 1))]
    return RoutingTable.of(units, alone, alone)
