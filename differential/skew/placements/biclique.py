"""JB: some unit of its side stores a row, whichever, and the row visits all units of the other side.

Any two rows meet, whatever the condition, and no key is hotter than another. The price is half of all units
in messages for every row. Source: the join-biclique model of BiStream (Lin et al., 2015).
"""

from __future__ import annotations

from progress.errors import MisuseError
from timely.routing.grid import Grid
from timely.routing.table import RoutingTable, checked_units

from .placement import Placement

__all__ = ["biclique", "halves"]


def biclique(units: int) -> Placement:
    """Return a placement on `units` in two halves, the left perhaps larger by one; rows are at random."""
    left, right = halves(units)
    table = RoutingTable.of(units, [Grid.split(left)], [Grid.split(right)])
    return Placement("JB", table, is_cells=False, meets_all=True)


def halves(units: int) -> tuple[range, range]:
    """Return the units of the left side, which come first, and of the right; each side needs at least one."""
    if checked_units(units) < 2:
        raise MisuseError("a biclique has a unit on either side: it needs two units or more")
    left = (units + 1) // 2
    return range(left), range(left, units)
