"""Where everything is while a plan is made, and what the loads would be if an item moved.

A *draft* begins as a routing table, and the steps of a plan change it; the difference to the table is what
has to be announced. It consists of *items*: the buckets, and the keys that were counted apart. A key that is
no exception *follows* its bucket until it is taken out of it.

An item is on one unit, or *divided*: into shares (stored rows by their hash; every row that looks visits all
of them), or into copies (each stores all rows; a row that looks takes one by its hash). `of_unit` counts the
rows that are divided: stored rows of a unit for shares, rows that look there for copies. So with n rows of
the divided side on a unit its load there is, for the measure *work*,

    shares   n + probes + pairs · n / stored            copies   stored + n + pairs · n / probes

and for *stored* n, or all stored rows in each copy. The part without n is the price of dividing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import MisuseError
from timely.routing.announcement import BUCKET, KEY, RoutingCell, RoutingChanges
from timely.routing.grid import HASH_MAX, Grid
from timely.routing.table import SIDES, RoutingTable
from timely.wire.routing import BUCKETS

from .cost import Costs
from .loads import LoadCounts, Loads, Measure

__all__ = ["HashRange", "Item", "RoutingDraft", "costs_of"]


@dataclass
class HashRange:
    """An interval of hashes, up to `end`, with `count` rows of the divided side in it."""

    unit: int
    end: int
    count: int


@dataclass(eq=False)
class Item:
    """A bucket or key in a draft."""

    cell: RoutingCell
    counts: LoadCounts
    bucket_home: int
    """The unit where the hash puts its bucket."""
    pieces: list[HashRange]
    divides: Literal["shares", "copies"] = "shares"
    bucket: Item | None = field(default=None, repr=False)
    """For a key: the bucket that it follows, or would follow if it were called home."""
    is_follower: bool = False
    followers: list[Item] = field(default_factory=list)
    hashes: Int64s | None = field(default=None, repr=False)
    of_unit: dict[int, int] = field(default_factory=dict)

    @property
    def home(self) -> int:
        """The unit where it belongs: for a bucket where the hash puts it, for a key where its bucket is."""
        return self.bucket_home if self.bucket is None else self.bucket.units[0]

    @property
    def units(self) -> list[int]:
        """The units where it is, in the order of intervals."""
        return list(dict.fromkeys(piece.unit for piece in self.pieces))

    @property
    def is_whole(self) -> bool:
        """True if all of it is on one unit."""
        return len(self.of_unit) == 1

    @property
    def total(self) -> int:
        """The number of rows of the divided side."""
        return self.counts.stored if self.divides == "shares" else self.counts.probes

    def load_of(self, count: int, measure: Measure) -> int:
        """Return the load that `count` rows of the divided side make on a unit."""
        stored, probes, pairs = self.counts
        if self.divides == "shares":
            return count if measure == "stored" else count + probes + _part(pairs, count, stored)
        return stored if measure == "stored" else stored + count + _part(pairs, count, probes)

    def grid(self) -> Grid:
        """Return where it is, as a grid."""
        ends = [piece.end for piece in self.pieces]
        units = [piece.unit for piece in self.pieces]
        if self.divides == "shares":
            return Grid.split(units, ends)
        return Grid((tuple(units),), (HASH_MAX,), tuple(ends))


def _part(whole: int, count: int, of: int) -> int:
    return whole * count // of if of else 0


class RoutingDraft:
    """Where all items are.

    Args:
        table: where everything is now.
        first: the table in which everything is at home.
        loads: the counts.
        measure: what a load is.
        is_cells: both sides of a key are together, in the half of the table for side 0; rows of side 1 count
            as those that look.
        units: how many there will be, if more.
    """

    def __init__(
        self,
        table: RoutingTable,
        first: RoutingTable,
        loads: Loads,
        measure: Measure,
        is_cells: bool = False,
        units: int = 0,
    ) -> None:
        self.table = table
        self.units = max(units, table.units)
        self.is_cells = is_cells
        self.measure: Measure = "work" if is_cells else measure
        self.traffic = loads.traffic
        self.loads = [0] * self.units
        self.items: dict[RoutingCell, Item] = {}
        self._on: list[dict[RoutingCell, Item]] = [{} for _ in range(self.units)]
        if is_cells and measure == "stored":  # rows of both sides are stored here, and pairs do not count
            counts = {cell: each._replace(pairs=0) for cell, each in loads.counts.items()}
            loads = Loads(counts, loads.traffic, loads.hashes)
        for side in (0,) if is_cells else SIDES:
            for number in range(BUCKETS):
                home = first.buckets[side][number].units[0][0]
                self._enter(RoutingCell(BUCKET, side, number), table.buckets[side][number], home, loads)
            counted = {cell for cell in loads.counts if cell[:2] == (KEY, side)}
            for cell in sorted(counted | {RoutingCell(KEY, side, key) for key in table.exceptions[side]}):
                self._enter_key(cell, loads)

    # Questions

    def on(self, unit: int) -> list[Item]:
        """Return the items that are on a unit in whole or in part, the heaviest first.

        Followers are items of their own here, beside their bucket.
        """
        return sorted(self._on[unit].values(), key=lambda item: (-self.load_on(item, unit), item.cell))

    def load_on(self, item: Item, unit: int) -> int:
        """Return the load that an item and its followers contribute to a unit."""
        own = item.load_of(item.of_unit[unit], self.measure) if unit in item.of_unit else 0
        return own + sum(self.load_on(follower, unit) for follower in item.followers)

    def stored_on(self, item: Item, unit: int) -> int:
        """Return how many rows of an item and its followers are stored on a unit."""
        if unit not in item.of_unit:
            return 0
        own = item.of_unit[unit] if item.divides == "shares" else item.counts.stored
        return own + sum(self.stored_on(follower, unit) for follower in item.followers)

    def load_if(self, item: Item, unit: int, count: int) -> int:
        """Return the load that an item would contribute to a unit that had `count` more rows of it."""
        return item.load_of(item.of_unit.get(unit, 0) + count, self.measure)

    def excepted(self) -> list[Item]:
        """Return the keys that are exceptions now."""
        return [item for item in self.items.values() if item.bucket is not None and not item.is_follower]

    # Changes

    def move(self, item: Item, source: int, target: int, count: int | None = None) -> None:
        """Move `count` rows of the divided side of an item from one unit to another.

        Without a number, move all rows that are there, and the item's followers.
        """
        assert source != target and source in item.of_unit, (item, source, target)
        if count is None:
            for follower in item.followers:
                self.move(follower, source, target)
            count = item.of_unit[source]
        else:
            self.free(item)
        assert 0 <= count <= item.of_unit[source], (count, item.of_unit[source])
        is_all = count == item.of_unit[source]
        self._forget(item)
        for piece in [piece for piece in reversed(item.pieces) if piece.unit == source]:
            if not is_all and count == 0:
                break
            count -= self._move_piece(item, piece, target, piece.count if is_all else count)
        item.pieces = _joined(item.pieces)
        self._note(item)

    def free(self, item: Item) -> None:
        """Make an exception of a key that follows its bucket, and of all keys that follow a bucket."""
        for follower in list(item.followers):
            self.free(follower)
        if item.is_follower:
            assert item.bucket is not None
            item.bucket.followers.remove(item)
            item.is_follower = False

    def call_home(self, item: Item) -> None:
        """Move all of an item to its home; a key follows its bucket again."""
        home = item.home
        assert item.bucket is None or item.bucket.is_whole, item.bucket
        for follower in item.followers:
            self._forget(follower)
            follower.pieces = [HashRange(home, HASH_MAX, follower.counts.stored)]
            self._note(follower)
        self._forget(item)
        item.divides = "shares"
        item.pieces = [HashRange(home, HASH_MAX, item.counts.stored)]
        self._note(item)
        if item.bucket is not None and not item.is_follower:
            item.is_follower = True
            item.bucket.followers.append(item)

    def divide_by(self, item: Item, divides: Literal["shares", "copies"]) -> None:
        """Set how an item that is whole will be divided."""
        if item.divides != divides:
            assert item.is_whole, item
            self._forget(item)
            item.divides = divides
            item.pieces = [HashRange(item.units[0], HASH_MAX, item.total)]
            self._note(item)

    def changes(self, units: int | None = None) -> RoutingChanges:
        """Return the changes that make the table equal to the draft, and the number of units `units`."""
        grids: dict[RoutingCell, Grid | None] = {}
        for cell, item in self.items.items():
            now = item.grid()
            if cell.scope == BUCKET:
                if now != self.table.buckets[cell.side][cell.key]:
                    grids[cell] = now
            elif item.is_follower:
                if cell.key in self.table.exceptions[cell.side]:
                    grids[cell] = None
            elif now != self.table.exceptions[cell.side].get(cell.key):
                grids[cell] = now
        return RoutingChanges(None if units == self.table.units else units, grids)

    def duplicates(self) -> int:
        """Return how many rows shares and copies send more than once, over all that was counted."""
        return sum(
            (len(item.of_unit) - 1) * (item.counts.probes if item.divides == "shares" else item.counts.stored)
            for item in self.items.values()
        )

    # Internals

    def _enter(self, cell: RoutingCell, grid: Grid, home: int, loads: Loads) -> Item:
        if grid.shares > 1 and grid.copies > 1:
            raise MisuseError(f"{cell}: no plan is made for what is divided into shares and copies both")
        divides: Literal["shares", "copies"] = "copies" if grid.copies > 1 else "shares"
        item = Item(cell, loads.counts.get(cell, LoadCounts(0)), home, [], divides)
        item.hashes = loads.hashes.get(cell)
        units = [line[0] for line in grid.units] if divides == "shares" else list(grid.units[0])
        ends = grid.share_ends if divides == "shares" else grid.copy_ends
        before = 0
        for unit, end in zip(units, ends, strict=True):
            upto = _rows_upto(item, end)
            item.pieces.append(HashRange(unit, end, upto - before))
            before = upto
        self.items[cell] = item
        self._note(item)
        return item

    def _enter_key(self, cell: RoutingCell, loads: Loads) -> None:
        bucket = self.items[RoutingCell(BUCKET, cell.side, cell.key % BUCKETS)]
        excepted = self.table.exceptions[cell.side].get(cell.key)
        item = self._enter(cell, bucket.grid() if excepted is None else excepted, bucket.units[0], loads)
        item.bucket = bucket
        if excepted is None:
            item.is_follower = True
            bucket.followers.append(item)

    def _forget(self, item: Item) -> None:
        """Remove an item from the loads."""
        for unit, count in item.of_unit.items():
            self.loads[unit] -= item.load_of(count, self.measure)
            del self._on[unit][item.cell]
        item.of_unit = {}

    def _note(self, item: Item) -> None:
        """Enter an item into the loads."""
        for piece in item.pieces:
            item.of_unit[piece.unit] = item.of_unit.get(piece.unit, 0) + piece.count
        for unit, count in item.of_unit.items():
            self.loads[unit] += item.load_of(count, self.measure)
            self._on[unit][item.cell] = item

    def _move_piece(self, item: Item, piece: HashRange, target: int, count: int) -> int:
        """Move about the last `count` rows of a piece to another unit; return how many these are in the end.

        Rows of equal hash cannot be told apart, so these may be fewer, and none.
        """
        if count >= piece.count:
            piece.unit = target
            return piece.count
        at = item.pieces.index(piece)
        start = item.pieces[at - 1].end + 1 if at else 0
        if count == 0 or start == piece.end:
            return 0
        cut, staying = _cut(item, start, piece, piece.count - count)
        item.pieces[at : at + 1] = [
            HashRange(piece.unit, cut, staying),
            HashRange(target, piece.end, piece.count - staying),
        ]
        return piece.count - staying


def _rows_upto(item: Item, end: int) -> int:
    """Return the number of rows of the divided side with hashes up to `end`."""
    if item.hashes is not None and item.divides == "shares":
        return int(np.searchsorted(item.hashes, end, side="right"))
    return _evenly(item.total, end)


def _evenly(rows: int, end: int) -> int:
    """Return how many of `rows` rows have hashes up to `end` if they are spread evenly, to the nearest."""
    return (2 * rows * (end + 1) + HASH_MAX + 1) // (2 * (HASH_MAX + 1))


def _cut(item: Item, start: int, piece: HashRange, keep: int) -> tuple[int, int]:
    """Return where to cut a piece so that about its first `keep` rows stay, one at least; and
    how many stay.
    """
    if item.hashes is None or item.divides == "copies":
        length = piece.end - start + 1
        return min(max(start + length * keep // piece.count - 1, start), piece.end - 1), keep
    before = int(np.searchsorted(item.hashes, start, side="left"))
    cut = min(int(item.hashes[before + keep - 1]), piece.end - 1)
    return cut, _rows_upto(item, cut) - before


def _joined(pieces: Iterable[HashRange]) -> list[HashRange]:
    """Return the pieces with neighbours on one unit joined."""
    joined: list[HashRange] = []
    for piece in pieces:
        if joined and joined[-1].unit == piece.unit:
            joined[-1] = HashRange(piece.unit, piece.end, joined[-1].count + piece.count)
        else:
            joined.append(piece)
    return joined


def _stored_upto(item: Item, end: int) -> int:
    if item.hashes is not None:
        return int(np.searchsorted(item.hashes, end, side="right"))
    return _evenly(item.counts.stored, end)


def _migrated(item: Item, old: Grid, new: Grid, is_cells: bool) -> int:
    """Return how many rows of an item `new` stores on a unit on which `old` does not."""
    arriving = len(new.all_units - old.all_units)
    lookers = arriving * item.counts.probes if is_cells and item.divides == "shares" else 0
    if new.copies > 1 or old.copies > 1:
        return arriving * item.counts.stored + lookers
    rows, before = 0, 0
    for end in sorted({*old.share_ends, *new.share_ends}):
        upto = _stored_upto(item, end)
        if old.kept_on[old.share_of(end)] != new.kept_on[new.share_of(end)]:
            rows += upto - before
        before = upto
    return rows + lookers


def costs_of(draft: RoutingDraft, duplicates_before: int) -> Costs:
    """Return what it costs to make the table equal to the draft."""
    migrated = 0
    for cell, item in draft.items.items():
        half = draft.table.buckets[cell.side]
        old = half[cell.key] if cell.scope == BUCKET else draft.table.grid_of(cell.side, cell.key)
        new = item.bucket.grid() if item.is_follower and item.bucket is not None else item.grid()
        if old != new:
            migrated += _migrated(item, old, new, draft.is_cells)
    announcements = len(draft.changes().announcements())
    return Costs(announcements, draft.duplicates() - duplicates_before, migrated)
