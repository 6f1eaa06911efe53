"""JB: one message to keep a row, and one for each unit of the other side."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_routing import row_columns

from differential.skew.placements.biclique import biclique, halves
from differential.skew.placements.placement import SideRows
from timely.errors import MisuseError
from timely.routing.grid import HASH_MAX


@given(st.integers(1, 128).map(lambda half: 2 * half), row_columns())
def test_a_row_costs_one_message_and_half_of_all_units(units: int, rows: SideRows) -> None:
    """1 + J/2, exactly and for each row."""
    placement = biclique(units)
    count = len(rows.side)
    assert placement.stores(rows, placement.first).row.size == count
    assert placement.probes(rows, placement.first).row.size == count * units // 2


def test_an_odd_unit_is_the_left_sides() -> None:
    assert halves(7) == (range(4), range(4, 7))


def test_rows_of_one_key_are_spread_evenly_over_their_half() -> None:
    placement = biclique(16)
    rows = SideRows(
        np.zeros(8_000, np.int64),
        np.random.default_rng(1).integers(0, HASH_MAX, 8_000),
        np.ones(8_000, np.int64),
    )
    kept = np.bincount(placement.stores(rows, placement.first).unit, minlength=16)
    assert kept[:8].sum() == 0
    assert kept[8:].min() > 900


@pytest.mark.parametrize(("units", "said"), [(1, "two units or more"), (0, "1 to 256"), (257, "1 to 256")])
def test_too_few_or_too_many_units_are_refused(units: int, said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        biclique(units)
