"""The kernel that finds the units of rows, against looking each of them up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies_routing import row_columns, tables

from differential.kernels.visits import TableColumns, first_not_below, visits_of
from differential.skew.placements.placement import Rows
from timely.routing.table import RoutingTable


@given(tables(7), row_columns(), st.data())
def test_visits_are_those_that_the_table_says_row_by_row(
    table: RoutingTable, rows: Rows, data: st.DataObject
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


@given(st.lists(st.integers(0, 20)).map(sorted), st.integers(0, 21))
def test_search_finds_the_first_that_is_not_below(words: list[int], word: int) -> None:
    found = first_not_below(np.array(words, np.int64), 0, len(words), word)
    assert found == sum(each < word for each in words)
