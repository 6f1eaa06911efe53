"""Columns of a table: every number leads where the table says."""

from __future__ import annotations

from hypothesis import given
from strategies_routing import KEYS, tables

from timely.routing.grid import Grid
from timely.routing.table import SIDES, RoutingTable


@given(tables(7))
def test_columns_say_what_the_table_says(table: RoutingTable) -> None:
    bucket_grid, keys, keys_from, key_grid, lines_from, line_ends, units_from, units, only_unit = (
        column.tolist() for column in table.columns
    )
    grids = (len(lines_from) - 1) // 2

    def lines(first: int) -> list[tuple[int, tuple[int, ...]]]:
        return [
            (line_ends[line], tuple(units[units_from[line] : units_from[line + 1]]))
            for line in range(lines_from[first], lines_from[first + 1])
        ]

    def assert_is(number: int, grid: Grid) -> None:
        assert lines(number) == list(zip(grid.share_ends, grid.kept_on, strict=True))
        assert lines(number + grids) == list(zip(grid.copy_ends, grid.visited, strict=True))

    for side in SIDES:
        mine = keys[keys_from[side] : keys_from[side + 1]]
        assert mine == sorted(table.exceptions[side])
        for at, key in enumerate(mine, start=keys_from[side]):
            assert_is(key_grid[at], table.exceptions[side][key])
        for bucket in {key % 1_024 for key in KEYS} | {2, 1_023}:
            grid = table.buckets[side][bucket]
            assert_is(bucket_grid[side * 1_024 + bucket], grid)
            is_divided = any(key % 1_024 == bucket for key in mine)
            for takes_copy, of_grid in enumerate((grid.kept_on, grid.visited)):
                is_alone = len(of_grid) == 1 and len(of_grid[0]) == 1 and not is_divided
                only = only_unit[(2 * side + takes_copy) * 1_024 + bucket]
                assert only == (of_grid[0][0] if is_alone else -1)


def test_columns_have_equal_grids_once() -> None:
    table = RoutingTable.of(4, [Grid.alone(unit) for unit in range(4)], [Grid.alone(0)])
    assert len(table.columns[4]) == 2 * 4 + 1
