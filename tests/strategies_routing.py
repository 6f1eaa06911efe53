"""Random routing to units: grids, tables, absurd changes of tables, and columns of rows.

Few keys and few buckets are used, so that rows meet and exceptions matter; the intervals of grids are cut
where some row hash lies, since an end that is one off is what goes wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from differential.skew.placements.placement import SideRows
from timely.routing.announcement import BUCKET, EVERY, KEY, RoutingCell, RoutingChanges
from timely.routing.grid import HASH_MAX, Grid
from timely.routing.table import RoutingTable

KEYS = (0, 1, 1_024, 5, HASH_MAX, 77 * 1_024 + 1)
"""Hashes of keys: three of them in one bucket, and the greatest that there is."""

ROW_HASHES = (0, 1, HASH_MAX // 3, HASH_MAX // 2, HASH_MAX // 2 + 1, HASH_MAX - 1, HASH_MAX)


def ends(count: int) -> st.SearchStrategy[tuple[int, ...]]:
    """The ends of `count` intervals."""
    inner = st.sampled_from([end for end in ROW_HASHES if end < HASH_MAX]) | st.integers(0, HASH_MAX - 1)
    cuts = st.lists(inner, min_size=count - 1, max_size=count - 1, unique=True)
    return cuts.map(lambda cuts: (*sorted(cuts), HASH_MAX))


@st.composite
def grids(draw: st.DrawFn, units: int) -> Grid:
    """Any grid; of one share or one copy with units several times in it."""
    shares, copies = draw(st.sampled_from([(1, 1), (1, 1), (3, 1), (1, 3), (5, 1), (2, 2), (3, 2), (1, 5)]))
    if shares > 1 and copies > 1:
        if shares * copies > units:
            shares, copies = 1, 1
        flat = draw(st.permutations(range(units)))[: shares * copies]
    else:
        flat = draw(st.lists(st.integers(0, units - 1), min_size=shares * copies, max_size=shares * copies))
    cells = tuple(tuple(flat[share * copies : (share + 1) * copies]) for share in range(shares))
    return Grid(cells, draw(ends(shares)), draw(ends(copies)))


@st.composite
def changes(draw: st.DrawFn, units: int) -> RoutingChanges:
    """Changes of buckets and keys, whatever sense they make."""
    said: dict[RoutingCell, Grid | None] = {}
    for side in (0, 1):
        for bucket in draw(st.lists(st.sampled_from([key % 1_024 for key in KEYS]), unique=True, max_size=2)):
            said[RoutingCell(BUCKET, side, bucket)] = draw(grids(units))
        for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3)):
            said[RoutingCell(KEY, side, key)] = draw(st.none() | grids(units))
        if not any(place.scope == BUCKET and place.side == side for place in said) and draw(st.booleans()):
            said[RoutingCell(EVERY, side, 0)] = draw(grids(units))
    return RoutingChanges(draw(st.sampled_from([None, units])), said)


@st.composite
def tables(draw: st.DrawFn, units: int) -> RoutingTable:
    """Any table, after one or two changes."""
    start = [draw(st.lists(grids(units), min_size=1, max_size=4)) for _ in range(2)]
    table = RoutingTable.of(units, start[0], start[1])
    for _ in range(draw(st.integers(0, 2))):
        table = table.changed(draw(changes(units)).announcements())
    return table


def row_columns(sides: Sequence[int] = (0, 1)) -> st.SearchStrategy[SideRows]:
    """Some rows of the `sides`."""
    hashes = st.sampled_from(ROW_HASHES) | st.integers(0, HASH_MAX)
    row = st.tuples(st.sampled_from(KEYS), hashes, st.sampled_from(sides))
    return st.lists(row, max_size=30).map(as_rows)


def as_rows(listed: Sequence[tuple[int, int, int]]) -> SideRows:
    """Columns of (key hash, row hash, side)."""
    columns = np.array(listed, dtype=np.int64).reshape(len(listed), 3)
    return SideRows(*(np.ascontiguousarray(columns[:, column]) for column in range(3)))
