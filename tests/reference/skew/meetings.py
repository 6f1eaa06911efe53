"""Where do two rows meet? Plainly: every left row with every right row, and the units of both as sets."""

from __future__ import annotations

from differential.skew.placements.placement import Placement, SideRows, Visits
from timely.routing.table import RoutingTable


def units_by_row(visits: Visits, rows: int) -> list[list[int]]:
    """The units of each row, in the order in which they are said."""
    units: list[list[int]] = [[] for _ in range(rows)]
    for row, unit in zip(visits.row.tolist(), visits.unit.tolist(), strict=True):
        units[row].append(unit)
    return units


def wrong_meetings(placement: Placement, rows: SideRows, table: RoutingTable) -> list[str]:
    """All pairs of a left and a right row that may match and do not meet exactly once, either way."""
    count = len(rows.side)
    kept = units_by_row(placement.stores(rows, table), count)
    visited = units_by_row(placement.probes(rows, table), count)
    side, key = rows.side.tolist(), rows.key_hash.tolist()
    wrong = []
    for left in range(count):
        for right in range(count):
            may_match = placement.meets_all or key[left] == key[right]
            if (side[left], side[right]) != (0, 1) or not may_match:
                continue
            ways = [(kept[left], visited[right]), (visited[left], kept[right])]
            for here, there in ways:
                met = [unit for unit in here for other in there if unit == other]
                if len(met) != 1:
                    wrong.append(f"rows {left} and {right} meet on units {met}")
    return wrong
