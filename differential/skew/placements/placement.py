"""Placements: the units that store a row, and the units that it visits.

A *unit* is a slot for rows, numbered from 0; which worker has it does not matter here. A *placement* finds
units for columns of rows by a routing table, and by nothing else: neither by arrival, nor by earlier rows.

    rows      key_hash  int64[n]   hash of the join key, ≥ 0    (`hash_of_key` of the key words)
              row_hash  int64[n]   hash of the whole row, ≥ 0   (of all words but time and difference)
              side      int64[n]   0 left, 1 right

"Random" in the literature is `row_hash` here: a removal goes where its insertion is, moved or not.

**Law**: two rows of different sides that may match meet exactly once. They may match if their `key_hash` is
equal, and, with `meets_all`, whatever it is. There are two ways to meet:

- *cells*: a row is stored in all units that it visits, and the later one of two finds the earlier. So any
left row and any right row that may match have exactly one unit in common. One half of the table, that of side
0, serves both: a left row takes a share of the grid, a right row a copy.
- *halves* (bicliques): the half of the table for its own side says which units store a row, the half for the
other side which units it visits. Exactly one unit both stores the one row and is visited by the other, either
way round; a join asks only one of the ways (half join: by times).

A unit can store rows of both sides, also in bicliques: it has a store per side. So the n + m units of the
paper are at first the first n and the last m of all, and later any unit may get anything.

The law holds for one version. Between versions stored rows move (`moves`): afterwards all rows that any
version stored are where the newest one wants them.

Sources: the bipartite model of BiStream (Lin et al., 2015), ContRand of the same; the matrix of Elseidy et
al. (2014); D-JB of Wang and Meng (2018), the third seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from differential.kernels.visits import TableColumns, placed_rows, visits_of
from progress.compiled.arrays import Int64s
from progress.errors import MisuseError
from timely.routing.announcement import Announcement
from timely.routing.table import SIDES, RoutingTable

__all__ = ["Moves", "Placement", "SideRows", "Visits"]


class SideRows(NamedTuple):
    """Columns of the same length, as in the docstring of this file."""

    key_hash: Int64s
    row_hash: Int64s
    side: Int64s


class Visits(NamedTuple):
    """Pairs (index of a row, unit), rows ascending; no pair twice."""

    row: Int64s
    unit: Int64s


class Moves(NamedTuple):
    """The effect of a new version on stored rows, rows ascending.

    arrivals   (row, unit) such that only the new version stores the row on the unit
    sources    for each of these a unit that stored the row
    drops      (row, unit) such that only the old version stored the row on the unit
    """

    arrivals: Visits
    sources: Int64s
    drops: Visits


@dataclass(frozen=True)
class Placement:
    """A scheme with its settings.

    Args:
        name: as users write it.
        first: the version that holds from the first epoch on.
        is_cells: a row is stored where it visits.
        meets_all: any two rows meet, so that a join may have any condition; else those with equal keys.
    """

    name: str
    first: RoutingTable
    is_cells: bool
    meets_all: bool

    def changed(self, table: RoutingTable, rows: Iterable[Announcement]) -> RoutingTable:
        """Return the version after `table` in which all of `rows` hold.

        Raises MisuseError if they are impossible together (`RoutingTable.changed`), or if the scheme does not
        allow them: if any two rows meet, a side has one grid for all keys; that of cells has powers of two.
        """
        new = table.changed(rows)
        if self.meets_all:
            for half in (0,) if self.is_cells else SIDES:
                self._check_one_grid(new, half)
        return new

    def _check_one_grid(self, table: RoutingTable, half: int) -> None:
        grid = table.buckets[half][0]
        if table.exceptions[half] or any(other != grid for other in table.buckets[half]):
            raise MisuseError(f"{self.name}: any two rows meet, so all keys of a side have one grid")
        if self.is_cells and (grid.shares & (grid.shares - 1) or grid.copies & (grid.copies - 1)):
            raise MisuseError(
                f"{self.name}: a grid has a power of two of shares and of copies, not {grid.shares} and "
                f"{grid.copies}"
            )

    def stores(self, rows: SideRows, table: RoutingTable) -> Visits:
        """Return the units that store each row."""
        if self.is_cells:
            return _visits(rows, table, np.zeros_like(rows.side), rows.side)
        return _visits(rows, table, rows.side, np.zeros_like(rows.side))

    def probes(self, rows: SideRows, table: RoutingTable) -> Visits:
        """Return the units where each row looks for rows of the other side; in cells the same as `stores`.

        A condition on neighbouring keys asks for each of them by a row of its own, with the same `row_hash`;
        if a (row, unit) results several times, one is enough.
        """
        if self.is_cells:
            return self.stores(rows, table)
        return _visits(rows, table, 1 - rows.side, np.ones_like(rows.side))

    def storing(
        self, words: Int64s, keys: Int64s, side: int, table: RoutingTable, *, as_spots: bool = False
    ) -> Int64s:
        """Return rows of words of a side, once for each unit that stores them, with the unit in front.

        This is `stores` in one pass. `keys`: the key words; time and difference are last. `as_spots`: bucket
        and unit, in one word, are in front.
        """
        half = 0 if self.is_cells else side
        takes_copy = side if self.is_cells else 0
        return placed_rows(words, keys, half, takes_copy, int(as_spots), TableColumns(*table.columns))

    def probing(
        self, words: Int64s, keys: Int64s, side: int, table: RoutingTable, *, as_spots: bool = False
    ) -> Int64s:
        """Return the same, once for each unit where the rows look for others: `probes` in one pass."""
        if self.is_cells:
            return self.storing(words, keys, side, table, as_spots=as_spots)
        return placed_rows(words, keys, 1 - side, 1, int(as_spots), TableColumns(*table.columns))

    def moves(self, rows: SideRows, old: RoutingTable, new: RoutingTable) -> Moves:
        """Return the effect on stored `rows` if `new` follows `old`."""
        before, after = self.stores(rows, old), self.stores(rows, new)
        units = max(old.units, new.units)
        was, will = before.row * units + before.unit, after.row * units + after.unit
        arrives = np.isin(will, was, assume_unique=True, invert=True)
        goes = np.isin(was, will, assume_unique=True, invert=True)
        first = np.searchsorted(before.row, after.row[arrives])
        return Moves(
            Visits(after.row[arrives], after.unit[arrives]),
            before.unit[first],
            Visits(before.row[goes], before.unit[goes]),
        )


def _visits(rows: SideRows, table: RoutingTable, half: Int64s, takes_copy: Int64s) -> Visits:
    """Return the units of the line that each row takes of its key's grid in `half` of the table."""
    assert rows.key_hash.shape == rows.row_hash.shape == rows.side.shape
    columns = TableColumns(*table.columns)
    return Visits(*visits_of(rows.key_hash, rows.row_hash, half, takes_copy, columns))
