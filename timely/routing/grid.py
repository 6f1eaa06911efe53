"""On which units are the rows of one key stored, and which of them does a row of the other side visit?

A *grid* is a table of units, of *shares* times *copies*. The stored rows of a key are divided into shares by
intervals of their own hash, and each share is stored once per copy. A row of the other side takes one copy,
by an interval of its own hash, and visits that copy of all shares:

    stored on     units[share of the row][every copy]
    visited       units[every share][copy of the row]

These two sets have one cell in common, [share of the one][copy of the other]: two rows that may match meet
once. All ways to treat a key are grids: *alone* is 1 × 1, *split* is n × 1, *copied* is 1 × n; JB is one
n × 1 grid for all keys of a side, and DYNAMIC one n × m grid for all keys.

A unit may be in several cells only of a grid with one share or one copy; otherwise two rows could meet in two
cells of one unit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from progress.errors import MisuseError

__all__ = ["HASH_MAX", "Grid", "even_ends"]

HASH_MAX: Final = (1 << 63) - 1
"""The largest hash of a key or row, from 0 on, so that the end of an interval is a word as well."""


@dataclass(frozen=True)
class Grid:
    """Units by share and copy.

    Args:
        units: `units[share][copy]`.
        share_ends: the last row hash of each share, ascending to `HASH_MAX`.
        copy_ends: the same for copies, by the hash of the visiting row.
    """

    units: tuple[tuple[int, ...], ...]
    share_ends: tuple[int, ...]
    copy_ends: tuple[int, ...]

    @staticmethod
    def alone(unit: int) -> Grid:
        """Return a grid of one unit."""
        return Grid(((unit,),), (HASH_MAX,), (HASH_MAX,))

    @staticmethod
    def even(units: Sequence[Sequence[int]]) -> Grid:
        """Return a grid with shares of equal size, and copies that are visited equally often."""
        cells = tuple(map(tuple, units))
        return Grid(cells, even_ends(len(cells)), even_ends(len(cells[0])))

    @staticmethod
    def split(units: Sequence[int], ends: Sequence[int] | None = None) -> Grid:
        """Return a grid of one copy, in shares that end at `ends`; of equal size without `ends`."""
        shares = even_ends(len(units)) if ends is None else tuple(ends)
        return Grid(tuple((unit,) for unit in units), shares, (HASH_MAX,))

    @staticmethod
    def copied(units: Sequence[int]) -> Grid:
        """Return a grid of one share, stored on each of `units`, which are visited equally often."""
        return Grid((tuple(units),), (HASH_MAX,), even_ends(len(units)))

    def __hash__(self) -> int:
        """Return the hash of all fields, computed once: each version of a table hashes all of its grids."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.units, self.share_ends, self.copy_ends))

    @property
    def shares(self) -> int:
        """The number of shares."""
        return len(self.units)

    @property
    def copies(self) -> int:
        """The number of copies: how often each row is stored, if all units differ."""
        return len(self.units[0])

    @cached_property
    def kept_on(self) -> tuple[tuple[int, ...], ...]:
        """For each share the different units that store it, in the order of copies."""
        return tuple(tuple(dict.fromkeys(line)) for line in self.units)

    @cached_property
    def visited(self) -> tuple[tuple[int, ...], ...]:
        """For each copy the different units to visit, in the order of shares."""
        return tuple(tuple(dict.fromkeys(line)) for line in zip(*self.units, strict=True))

    @cached_property
    def all_units(self) -> frozenset[int]:
        """The units in the grid."""
        return frozenset(unit for line in self.units for unit in line)

    def share_of(self, row_hash: int) -> int:
        """Return the share of a stored row."""
        return bisect_left(self.share_ends, row_hash)

    def copy_of(self, row_hash: int) -> int:
        """Return the copy that a visiting row takes."""
        return bisect_left(self.copy_ends, row_hash)

    def checked(self, name: str) -> Grid:
        """Return the grid itself; raises `MisuseError`, which begins with `name`, if it is invalid."""
        shares, copies = self.shares, len(self.units[0]) if self.units else 0
        if shares == 0 or copies == 0 or any(len(line) != copies for line in self.units):
            raise MisuseError(f"{name}: a grid has as many copies of each share, and at least one")
        for ends, count in ((self.share_ends, shares), (self.copy_ends, copies)):
            if len(ends) != count or ends[-1] != HASH_MAX or ends[0] < 0:
                raise MisuseError(
                    f"{name}: the intervals {ends} do not cover the hashes from 0 to {HASH_MAX}"
                )
            if any(end <= before for before, end in zip(ends, ends[1:], strict=False)):
                raise MisuseError(f"{name}: the ends of intervals {ends} do not ascend")
        if shares > 1 and copies > 1 and len(self.all_units) != shares * copies:
            raise MisuseError(
                f"{name}: a grid of {shares} shares and {copies} copies needs {shares * copies} different "
                f"units, or rows would meet twice; it has {sorted(self.all_units)}"
            )
        return self


def even_ends(count: int) -> tuple[int, ...]:
    """Return the ends of `count` intervals of equal length that cover all hashes."""
    return tuple((HASH_MAX + 1) * (index + 1) // count - 1 for index in range(count))
