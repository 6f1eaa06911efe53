"""Hash: one unit for every row, whatever its side."""

from __future__ import annotations

import pytest
from hypothesis import given
from strategies_routing import row_columns

from differential.skew.placements.hash import hash_placement, home_table
from differential.skew.placements.placement import SideRows
from timely.errors import MisuseError


@given(row_columns())
def test_a_row_is_kept_and_visits_where_its_bucket_is(rows: SideRows) -> None:
    placement = hash_placement(6)
    for visits in (placement.stores(rows, placement.first), placement.probes(rows, placement.first)):
        assert visits.row.tolist() == list(range(len(rows.side)))
        assert visits.unit.tolist() == (rows.key_hash % 1_024 % 6).tolist()


@pytest.mark.parametrize("units", [0, 257])
def test_no_units_or_too_many_are_refused(units: int) -> None:
    with pytest.raises(MisuseError, match=f"1 to 256 units, not {units}"):
        home_table(units)
