"""The kernel that finds the units of rows, against looking each of them up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies_routing import row_columns, tables

from differential.kernels.rows.hashing import hashes_of
from differential.kernels.visits import TableColumns, first_not_below, placed_rows, visits_of
from differential.skew.placements.placement import SideRows
from timely.routing.grid import Grid
from timely.routing.table import RoutingTable
from timely.wire.routing import BUCKETS


@given(tables(7), row_columns(), st.data())
def test_visits_are_those_that_the_table_says_row_by_row(
    table: RoutingTable, rows: SideRows, data: st.DataObject
) -> None:
    takes = data.draw(st.lists(st.integers(0, 1), min_size=len(rows.side), max_size=len(rows.side)))
    row, unit = visits_of(*rows, np.array(takes, np.int64), TableColumns(*table.columns))
    expected = []
    for index, (key, row_hash, side) in enumerate(zip(*(column.tolist() for column in rows), strict=True)):
        grid = table.grid_of(side, key)
        if takes[index]:
            units = grid.visited[grid.copy_of(row_hash)]
        else:
            units = grid.kept_on[grid.share_of(row_hash)]
        expected += [(index, each) for each in units]
    assert list(zip(row.tolist(), unit.tolist(), strict=True)) == expected


@given(tables(7), st.sampled_from([1, 2]), st.integers(0, 1), st.integers(0, 1), st.data())
def test_placed_is_each_row_once_for_each_unit_that_it_visits(
    table: RoutingTable, keys: int, side: int, takes_copy: int, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.tuples(*[st.integers(-3, 3)] * 4, st.integers(-2, 2)), max_size=12))
    hot = data.draw(st.lists(st.sampled_from(rows), max_size=2) if rows else st.just([]))
    words = np.array(rows, np.int64).reshape(-1, 5).T.copy()
    key, whole = hashes_of(words, np.arange(keys)), hashes_of(words, np.arange(3))
    for one in hot:  # keys that do not follow their bucket
        grid = Grid.even([[0, 1], [2, 3]]) if data.draw(st.booleans()) else Grid.copied([4, 5, 6])
        exceptions = dict(table.exceptions[side]) | {int(key[rows.index(one)]): grid}
        both = (exceptions, table.exceptions[1]) if side == 0 else (table.exceptions[0], exceptions)
        table = RoutingTable(table.units, table.buckets, both)
    columns = TableColumns(*table.columns)
    made = placed_rows(words, np.arange(keys), side, takes_copy, 0, columns)
    row, unit = visits_of(key, whole, np.full_like(key, side), np.full_like(key, takes_copy), columns)
    assert made.tolist() == [unit.tolist(), *words.take(row, 1).tolist()]
    assert made.flags.c_contiguous
    spots = placed_rows(words, np.arange(keys), side, takes_copy, 1, columns)
    assert spots[0].tolist() == ((key.take(row) % BUCKETS) * BUCKETS + unit).tolist()
    assert spots[1:].tolist() == made[1:].tolist()


@given(st.lists(st.integers(0, 20)).map(sorted), st.integers(0, 21))
def test_search_finds_the_first_that_is_not_below(words: list[int], word: int) -> None:
    found = first_not_below(np.array(words, np.int64), 0, len(words), word)
    assert found == sum(each < word for each in words)
