"""DYNAMIC: cells, and the grid that fits the sizes of both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_routing import row_columns

from differential.skew.placements.matrix import fitting_grid, input_load, matrix, matrix_table
from differential.skew.placements.placement import SideRows
from timely.errors import MisuseError


@given(st.sampled_from([1, 2, 4, 8]), row_columns())
def test_a_row_is_kept_once_per_cell_of_its_row_or_column(shares: int, rows: SideRows) -> None:
    placement = matrix(8, shares)
    kept = placement.stores(rows, placement.first)
    left, right = int((rows.side == 0).sum()), int((rows.side == 1).sum())
    assert kept.row.size == left * (8 // shares) + right * shares


@given(st.integers(1, 64), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_fitting_grid_gives_a_cell_least(units: int, left: int, right: int) -> None:
    cells = max(power for power in (1, 2, 4, 8, 16, 32, 64) if power <= units)
    chosen = fitting_grid(units, left, right)
    assert cells % chosen == 0
    for shares in (1, 2, 4, 8, 16, 32, 64):
        if shares <= cells:
            assert input_load(cells, chosen, left, right) <= input_load(cells, shares, left, right)


def test_units_beyond_the_largest_power_of_two_have_nothing() -> None:
    """What the third seed holds against matrices."""
    assert {unit for grid in matrix_table(12, 2).buckets[0] for unit in grid.all_units} == set(range(8))


@pytest.mark.parametrize("shares", [0, 3, 16])
def test_a_grid_that_is_no_power_of_two_is_refused(shares: int) -> None:
    with pytest.raises(MisuseError, match=f"1, 2, 4 … 8 rows of them, not {shares}"):
        matrix(8, shares)
