"""JB6, or ContRand: the units of each side form groups; a key belongs to a group, a row goes anywhere within
it.

Between JB (one group) and key routing (a group for each unit): a row visits one group instead of a whole
side, and a hot key is spread over a group. The user sets the number of groups. Source: ContRand of BiStream
(Lin et al., 2015); the third seed compares with six.
"""

from __future__ import annotations

from progress.errors import MisuseError
from timely.routing.grid import Grid
from timely.routing.table import RoutingTable
from timely.wire.routing import BUCKETS

from .biclique import halves
from .placement import Placement

__all__ = ["GROUPS_DEFAULT", "grouped", "parts"]

GROUPS_DEFAULT = 6


def grouped(units: int, groups: int = GROUPS_DEFAULT) -> Placement:
    """Return a placement on `units` in two halves, each in `groups` groups as equal as can be.

    There are no more groups than units of a half. A bucket of keys belongs to a group.
    """
    if not 1 <= groups <= BUCKETS:
        raise MisuseError(f"there are 1 to {BUCKETS} groups, not {groups}")
    left, right = (parts(half, groups) for half in halves(units))
    table = RoutingTable.of(units, left, right)
    return Placement(f"JB{groups}", table, is_cells=False, meets_all=groups == 1)


def parts(half: range, groups: int) -> list[Grid]:
    """Return a grid for each group of the units of a side; their sizes differ by one at most."""
    count = min(groups, len(half))
    cuts = [len(half) * group // count for group in range(count + 1)]
    return [Grid.split(half[start:stop]) for start, stop in zip(cuts, cuts[1:], strict=False)]
