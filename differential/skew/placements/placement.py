"""Which units keep a row, and which ones does it visit?

A *unit* is a slot for rows, numbered from 0; which worker has it is of no concern here. A *placement* answers
for columns of rows, by a routing table, and by nothing else: not by arrival, nor by what came before.

    rows      key_hash  int64[n]   hash of the join key, ≥ 0    (`hash_of_key` of the key words)
              row_hash  int64[n]   hash of the whole row, ≥ 0   (of all words but time and difference)
              side      int64[n]   0 left, 1 right

"Random" in the literature is `row_hash` here: a removal goes where its insertion lies, moved or not.

**Law**: two rows of different sides that may match meet exactly once. They may match if their `key_hash` is
equal, and whatever it is where `meets_all`. There are two ways to meet:

- *cells*: a row is kept in all units that it visits, and the later one of two finds the earlier. So of the
  units of any left row and any right row that may match exactly one is the same. One table half, that of side
  0, serves both: a left row takes a share of the grid, a right row a copy.
- *halves* (bicliques): a row is kept by the half of the table that is its side's, and visits what that of the
  other side says. Of the units that keep one and that the other visits exactly one is the same, both ways;
  who joins asks only one of the ways (`half join`: by times).

A unit can keep rows of both sides, also in bicliques: it has a store per side. So the n + m units of the
paper are the first n and the last m of all, to begin with, and any unit may be given anything later.

The law holds for one version. Between versions kept rows move (`moves`): behind that, all rows that were kept
by any version lie where the newest one wants them.

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
    """What a new version does to rows that are kept, rows ascending.

    arrivals: (row, unit) that keep it by the new version only. sources: for each of these a unit that kept
    it. drops: (row, unit) that kept it by the old version only.
    """

    arrivals: Visits
    sources: Int64s
    drops: Visits


@dataclass(frozen=True)
class Placement:
    """A scheme with its settings.

    Args:
        name: as users write it. first: the version that holds from the first epoch on. is_cells: a row is
        kept where it visits. meets_all: any two rows meet, so that any condition can be asked for; else
        those with equal keys.
    """

    name: str
    first: RoutingTable
    is_cells: bool
    meets_all: bool

    def changed(self, table: RoutingTable, rows: Iterable[Announcement]) -> RoutingTable:
        """The version after `table` in which what `rows` say together holds.

        A `MisuseError` if they say nothing that can be (`RoutingTable.changed`), or nothing that the scheme
        allows: where any two rows meet, a side has one grid for all keys; that of cells has powers of two.
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
        """The units that keep each row."""
        if self.is_cells:
            return _visits(rows, table, np.zeros_like(rows.side), rows.side)
        return _visits(rows, table, rows.side, np.zeros_like(rows.side))

    def probes(self, rows: SideRows, table: RoutingTable) -> Visits:
        """The units where each row looks for rows of the other side; in cells the same as `stores`.

        A condition on neighbouring keys asks for each of them by a row of its own, with the same `row_hash`;
        of a (row, unit) that comes out several times one is enough.
        """
        if self.is_cells:
            return self.stores(rows, table)
        return _visits(rows, table, 1 - rows.side, np.ones_like(rows.side))

    def kept(
        self, words: Int64s, keys: Int64s, side: int, table: RoutingTable, *, as_spots: bool = False
    ) -> Int64s:
        """Rows of words of a side, once for each unit that keeps them, with the unit in front; `stores` of
        them, in one pass. `keys`: which words are the key; time and difference are last. `as_spots`: with
        bucket and unit in front, in one word.
        """
        half = 0 if self.is_cells else side
        takes_copy = side if self.is_cells else 0
        return placed_rows(words, keys, half, takes_copy, int(as_spots), TableColumns(*table.columns))

    def probing(
        self, words: Int64s, keys: Int64s, side: int, table: RoutingTable, *, as_spots: bool = False
    ) -> Int64s:
        """The same, once for each unit where they look for others: of `probes`."""
        if self.is_cells:
            return self.kept(words, keys, side, table, as_spots=as_spots)
        return placed_rows(words, keys, 1 - side, 1, int(as_spots), TableColumns(*table.columns))

    def moves(self, rows: SideRows, old: RoutingTable, new: RoutingTable) -> Moves:
        """What becomes of kept `rows` when `new` follows `old`."""
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
    """The units of the line that each row takes of its key's grid in `half` of the table."""
    assert rows.key_hash.shape == rows.row_hash.shape == rows.side.shape
    columns = TableColumns(*table.columns)
    return Visits(*visits_of(rows.key_hash, rows.row_hash, half, takes_copy, columns))
