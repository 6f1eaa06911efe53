"""How is a change of the routing to units sent, as rows of an ordinary input?

An announcement is one row of eight integers for one cell of a grid; a change is announced by all cells of the
new grid, in one epoch. Rows have no order and may come from several clients, so only all rows of an epoch
together define a change: `RoutingChanges.of` puts the cells together and refuses cells that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from progress.errors import MisuseError
from timely.wire.routing import BUCKETS

from .grid import HASH_MAX, Grid

__all__ = [
    "BUCKET",
    "EVERY",
    "HOME",
    "KEY",
    "SCOPES",
    "UNITS",
    "Announcement",
    "RoutingCell",
    "RoutingChanges",
]

BUCKET: Final = 0
"""The scope of a change of one bucket of a side."""
KEY: Final = 1
"""The scope of a change of one key of a side, by its hash: an exception from its bucket."""
EVERY: Final = 2
"""The scope of a change of all buckets of a side; its `key` is 0."""
UNITS: Final = 3
"""The scope of a change of the number of units, which is in `unit`; all other fields are 0."""
SCOPES: Final = ("bucket", "key", "every bucket", "units")

HOME: Final = -1
"""As the unit of a key: the key is no exception any more, and follows its bucket."""


class RoutingCell(NamedTuple):
    """The subject of a change: a bucket or key of a side, all buckets of a side, or the number of units."""

    scope: int
    side: int
    key: int

    def __str__(self) -> str:
        if self.scope == UNITS:
            return "the number of units"
        what = SCOPES[self.scope] + ("" if self.scope == EVERY else f" {self.key}")
        return f"{what} of side {self.side}"


class Announcement(NamedTuple):
    """One cell of a changed grid; all fields are 64-bit integers."""

    scope: int
    side: int
    key: int
    share: int
    copy: int
    share_end: int
    copy_end: int
    unit: int

    @property
    def subject(self) -> RoutingCell:
        """The bucket, key, side or number that it changes."""
        return RoutingCell(self.scope, self.side, self.key)


class RoutingChanges(NamedTuple):
    """The changes that the announcements of one epoch define together."""

    units: int | None
    """The new number of units; None if it does not change."""
    grids: Mapping[RoutingCell, Grid | None]
    """The new grids; `None` for a key that is no exception any more."""

    def announcements(self) -> list[Announcement]:
        """Return the rows that announce these changes."""
        rows = [] if self.units is None else [Announcement(UNITS, 0, 0, 0, 0, 0, 0, self.units)]
        for subject, grid in self.grids.items():
            if grid is None:
                rows.append(Announcement(*subject, 0, 0, HASH_MAX, HASH_MAX, HOME))
                continue
            rows += [
                Announcement(*subject, share, copy, grid.share_ends[share], grid.copy_ends[copy], unit)
                for share, line in enumerate(grid.units)
                for copy, unit in enumerate(line)
            ]
        return rows

    @staticmethod
    def of(rows: Iterable[Announcement]) -> RoutingChanges:
        """Return the changes that `rows` define together; raises `MisuseError` if they are invalid, or
        contradict one another.

        A row that comes twice counts once, so a client may repeat its announcements.
        """
        cells: dict[RoutingCell, set[Announcement]] = {}
        for row in rows:
            _check(row)
            cells.setdefault(row.subject, set()).add(row)
        numbers = {row.unit for row in cells.pop(RoutingCell(UNITS, 0, 0), set())}
        if len(numbers) > 1:
            raise MisuseError(f"conflicting announcements: {sorted(numbers)} units in one epoch")
        for side in (0, 1):
            if RoutingCell(EVERY, side, 0) in cells and any(
                at.scope == BUCKET and at.side == side for at in cells
            ):
                raise MisuseError(
                    f"conflicting announcements: all buckets of side {side} and one of them in one epoch"
                )
        return RoutingChanges(next(iter(numbers), None), {at: _grid(at, cells[at]) for at in sorted(cells)})


def _check(row: Announcement) -> None:
    """Raise `MisuseError` if the subject of `row` cannot exist."""
    if row.scope not in range(len(SCOPES)) or row.side not in (0, 1):
        raise MisuseError(f"an announcement has a scope from 0 to 3 and side 0 or 1, not {row}")
    if row.scope in (UNITS, EVERY) and row.key != 0 or row.scope == UNITS and row.side != 0:
        raise MisuseError(
            f"an announcement about {SCOPES[row.scope]} names no key, and no side if of units: {row}"
        )
    if row.scope == BUCKET and not 0 <= row.key < BUCKETS:
        raise MisuseError(f"there are {BUCKETS} buckets, from 0 on; {row} is about another one")
    if row.key < 0:
        raise MisuseError(f"the hash of a key is not negative: {row}")


def _grid(subject: RoutingCell, cells: set[Announcement]) -> Grid | None:
    """Return the grid that consists of `cells`; `None` for the one cell that sends a key home."""
    if any(cell.unit == HOME for cell in cells):
        if len(cells) > 1:
            raise MisuseError(
                f"conflicting announcements: {subject} is called home and sent elsewhere in one epoch"
            )
        if subject.scope != KEY:
            raise MisuseError(f"{subject}: only keys are called home (unit {HOME})")
        return None
    by_position = {(cell.share, cell.copy): cell for cell in cells}
    share_ends = {cell.share: cell.share_end for cell in cells}
    copy_ends = {cell.copy: cell.copy_end for cell in cells}
    if len(by_position) < len(cells) or any(
        cell.share_end != share_ends[cell.share] or cell.copy_end != copy_ends[cell.copy] for cell in cells
    ):
        raise MisuseError(f"conflicting announcements: {subject} is sent to different places in one epoch")
    shares, copies = range(len(share_ends)), range(len(copy_ends))
    if set(by_position) != {(share, copy) for share in shares for copy in copies}:
        raise MisuseError(
            f"{subject}: {len(cells)} cells are no grid of {len(shares)} shares and {len(copies)} copies"
        )
    units = tuple(tuple(by_position[share, copy].unit for copy in copies) for share in shares)
    ends = tuple(share_ends[share] for share in shares), tuple(copy_ends[copy] for copy in copies)
    return _grid_of(units, *ends).checked(str(subject))


_grid_of = lru_cache(maxsize=4 * BUCKETS)(Grid)
"""Makes equal grids one object, as long as the cache holds them: each version compares all of its grids."""
