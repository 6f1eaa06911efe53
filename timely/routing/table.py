"""On which units are the rows of each key, from which epoch on?

A `RoutingTable` is one version: a grid of units for each of the 1,024 buckets of keys, for each side of a
join, and *exceptions*, grids of single keys. Buckets keep it small whatever the number of keys; exceptions
are for keys that are too heavy for one unit, or for their bucket.

`RoutingVersions` is the state of a router: each version holds from an epoch on until the next one does. Both
are immutable; changes come as announcements (`announcement.py`), and a refused one changes nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import MisuseError
from timely.limits import UNITS_COUNT_MAX
from timely.wire.routing import BUCKETS

from .announcement import BUCKET, KEY, Announcement, RoutingChanges
from .columns import columns_of
from .grid import Grid

__all__ = ["SIDES", "RoutingTable", "RoutingVersions", "checked_units"]

SIDES: Final = (0, 1)
"""0 is left, 1 is right."""


def checked_units(units: int) -> int:
    """Return `units`; raises `MisuseError` unless there can be that many."""
    if not 1 <= units <= UNITS_COUNT_MAX:
        raise MisuseError(f"there are 1 to {UNITS_COUNT_MAX} units, not {units}")
    return units


@dataclass(frozen=True)
class RoutingTable:
    """One version of the routing.

    Args:
        units: the number of units, which are numbered from 0.
        buckets: for each side the grids of its `BUCKETS` buckets.
        exceptions: for each side the grids of keys that do not follow their bucket, by the hash of the key.
    """

    units: int
    buckets: tuple[tuple[Grid, ...], tuple[Grid, ...]]
    exceptions: tuple[Mapping[int, Grid], Mapping[int, Grid]] = field(
        default=(MappingProxyType({}), MappingProxyType({}))
    )

    @staticmethod
    def of(units: int, left: Sequence[Grid], right: Sequence[Grid]) -> RoutingTable:
        """Return a table without exceptions in which bucket b of a side has grid b modulo the number of grids
        in `left` or `right`.
        """
        grids = [tuple(side[bucket % len(side)] for bucket in range(BUCKETS)) for side in (left, right)]
        table = RoutingTable(checked_units(units), (grids[0], grids[1]))
        return table._checked()

    @cached_property
    def columns(self) -> tuple[Int64s, ...]:
        """The table as arrays, for kernels."""
        return columns_of(self.buckets, self.exceptions)

    def grid_of(self, side: int, key_hash: int) -> Grid:
        """Return the grid of rows of `side` with this key."""
        exception = self.exceptions[side].get(key_hash)
        return self.buckets[side][key_hash % BUCKETS] if exception is None else exception

    def changed(self, rows: Iterable[Announcement]) -> RoutingTable:
        """Return the next version, with the changes that `rows` define together.

        Raises `MisuseError` if they contradict one another, form no grids, or name units that do not exist.
        """
        changes = RoutingChanges.of(rows)
        buckets = [list(side) for side in self.buckets]
        exceptions = [dict(side) for side in self.exceptions]
        for subject, grid in changes.grids.items():
            if subject.scope == KEY and grid is None:
                exceptions[subject.side].pop(subject.key, None)
                continue
            assert grid is not None, subject
            if subject.scope == KEY:
                exceptions[subject.side][subject.key] = grid
            elif subject.scope == BUCKET:
                buckets[subject.side][subject.key] = grid
            else:
                buckets[subject.side] = [grid] * BUCKETS
        return RoutingTable(
            self.units if changes.units is None else checked_units(changes.units),
            (tuple(buckets[0]), tuple(buckets[1])),
            (MappingProxyType(exceptions[0]), MappingProxyType(exceptions[1])),
        )._checked()

    def _checked(self) -> RoutingTable:
        """Return the table itself; raises `MisuseError` if a grid has a unit that does not exist."""
        there = range(self.units)
        for side in SIDES:
            for grid in {*self.buckets[side], *self.exceptions[side].values()}:
                if not all(unit in there for unit in grid.all_units):
                    self._refuse(side)
        return self

    def _refuse(self, side: int) -> None:
        """Raise `MisuseError`, which names the first bucket or key with a unit that does not exist."""
        named = [(f"bucket {bucket}", grid) for bucket, grid in enumerate(self.buckets[side])]
        named += [(f"key {key}", grid) for key, grid in self.exceptions[side].items()]
        for name, grid in named:
            unknown = [unit for unit in grid.all_units if not 0 <= unit < self.units]
            if unknown:
                raise MisuseError(
                    f"{name} of side {side} is sent to unit {min(unknown)}; there are units 0 to "
                    f"{self.units - 1}"
                )


@dataclass(frozen=True)
class RoutingVersions:
    """Several tables, each of which holds from an epoch on.

    Args:
        starts: the epoch from which each table holds, ascending from 0.
        tables: one for each of `starts`.
    """

    starts: tuple[int, ...]
    tables: tuple[RoutingTable, ...]

    @staticmethod
    def begin(table: RoutingTable) -> RoutingVersions:
        """Return versions in which `table` holds from the first epoch on."""
        return RoutingVersions((0,), (table,))

    def at(self, epoch: int) -> RoutingTable:
        """Return the table for rows of `epoch`."""
        return self.tables[bisect_right(self.starts, epoch) - 1]

    def index_of(self, epochs: Int64s) -> Int64s:
        """Return for each epoch the index of its table."""
        indices: Int64s = np.searchsorted(np.array(self.starts, np.int64), epochs, side="right") - 1
        return indices

    def changed(self, epoch: int, rows: Iterable[Announcement]) -> RoutingVersions:
        """Return these versions and one more, from `epoch` on, which is later than all other starts."""
        assert epoch > self.starts[-1], (epoch, self.starts)
        return RoutingVersions((*self.starts, epoch), (*self.tables, self.tables[-1].changed(rows)))

    def since(self, epoch: int) -> RoutingVersions:
        """Return the versions without those that no row of `epoch` or later can use."""
        first = bisect_right(self.starts, epoch) - 1
        return RoutingVersions((0, *self.starts[first + 1 :]), self.tables[first:])
