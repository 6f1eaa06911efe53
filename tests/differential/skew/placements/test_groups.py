"""JB6: a row visits the group of its key on the other side."""

from __future__ import annotations

import numpy as np
import pytest

from differential.skew.placements.biclique import biclique
from differential.skew.placements.groups import grouped
from differential.skew.placements.placement import SideRows
from timely.errors import MisuseError


def _of_all_buckets(side: int) -> SideRows:
    """One row for each bucket, so that an average over keys is exact."""
    return SideRows(np.arange(1_024), np.arange(1_024) << 52, np.full(1_024, side))


@pytest.mark.parametrize("units", [12, 16, 24, 32, 48, 64, 72])
@pytest.mark.parametrize("side", [0, 1])
def test_a_row_costs_one_message_and_a_twelfth_of_all_units_on_average(units: int, side: int) -> None:
    """1 + J/12; to a half per cent, since six does not divide 1,024 buckets."""
    placement = grouped(units)
    rows = _of_all_buckets(side)
    assert placement.stores(rows, placement.first).row.size == 1_024
    assert placement.probes(rows, placement.first).row.size / 1_024 == pytest.approx(units / 12, rel=0.005)


def test_a_group_visits_a_sixth_exactly_where_six_divides_the_half() -> None:
    placement = grouped(24)
    visits = placement.probes(_of_all_buckets(0), placement.first)
    assert (np.bincount(visits.row) == 2).all()


def test_groups_are_as_many_as_a_half_has_units_at_most() -> None:
    placement = grouped(4)
    assert placement.name == "JB6"
    assert (np.bincount(placement.probes(_of_all_buckets(0), placement.first).row) == 1).all()


def test_one_group_is_jb() -> None:
    one = grouped(8, groups=1)
    assert one.first == biclique(8).first
    assert one.meets_all
    assert not grouped(8, groups=2).meets_all


@pytest.mark.parametrize("groups", [0, 1_025])
def test_no_groups_or_too_many_are_refused(groups: int) -> None:
    with pytest.raises(MisuseError, match=f"1 to 1024 groups, not {groups}"):
        grouped(8, groups)
