"""The controller as a function: loads in, announcements out.

plan_*      when there is a plan, and that its announcements make it so
units_*     units that join and retire
grid_*      the matrix
refused_*   settings that cannot be
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.skew.placements.biclique import biclique
from differential.skew.placements.groups import grouped
from differential.skew.placements.hash import hash_placement
from differential.skew.placements.hybrid import hybrid
from differential.skew.placements.matrix import input_load, matrix
from differential.skew.placements.placement import Placement
from differential.skew.planning.controller import PlanSettings, RoutingPlan, halves_of, plan, plan_grid
from differential.skew.planning.draft import RoutingDraft
from differential.skew.planning.loads import LoadCounts, Loads, imbalance
from timely.errors import MisuseError
from timely.routing.announcement import BUCKET, KEY, RoutingCell
from timely.routing.table import RoutingTable


def some_loads(seed: int = 3) -> Loads:
    """A few rows in each bucket, and some heavy keys."""
    generator = np.random.default_rng(seed)
    counts = {
        RoutingCell(BUCKET, side, bucket): LoadCounts(int(rows), 3, 5)
        for side in (0, 1)
        for bucket, rows in enumerate(generator.integers(0, 20, 1_024))
    }
    for key in range(5):
        counts[RoutingCell(KEY, 0, key)] = LoadCounts(6_000 // (key + 1), 50, 3_000)
    return Loads(counts, 1_000)


def loads_of(placement: Placement, table: RoutingTable, loads: Loads, settings: PlanSettings) -> list[int]:
    return RoutingDraft(table, placement.first, loads, settings.measure, placement.is_cells).loads


@pytest.mark.parametrize("make", [hybrid, hash_placement])
@pytest.mark.parametrize("measure", ["stored", "work"])
@pytest.mark.parametrize("units", [4, 9, 32])
def test_plan_says_what_its_announcements_do(
    make: Callable[[int], Placement], measure: str, units: int
) -> None:
    placement, loads = make(units), some_loads()
    settings = PlanSettings(measure="work" if measure == "work" else "stored")
    made = plan(placement, placement.first, loads, settings)
    assert made is not None
    assert made.before == loads_of(placement, placement.first, loads, settings)
    table = placement.changed(placement.first, made.changes.announcements())
    rounded = pytest.approx(made.after, abs=100)  # where hashes are not known, by a row per share
    assert loads_of(placement, table, loads, settings) == rounded
    assert imbalance(made.before) > 1.2 >= imbalance(made.after)
    assert made.log
    assert made.costs.migrated > 0
    assert plan(placement, table, loads, settings) is None


def test_plan_is_the_same_for_the_same_loads() -> None:
    def once() -> RoutingPlan | None:
        return plan(hybrid(8), hybrid(8).first, some_loads(), PlanSettings())

    assert once() == once()


def test_plan_of_balanced_loads_is_none() -> None:
    even = {RoutingCell(BUCKET, side, bucket): LoadCounts(10) for side in (0, 1) for bucket in range(1_024)}
    assert plan(hybrid(8), hybrid(8).first, Loads(even, 10), PlanSettings()) is None
    assert plan(hybrid(8), hybrid(8).first, Loads({}, 10), PlanSettings()) is None


@given(st.integers(2, 12), st.integers(1, 12))
def test_units_join_and_retire_and_everybody_has_his_part(now: int, then: int) -> None:
    placement, loads = hybrid(now), some_loads()
    table = placement.first
    for units in (now, then):
        made = plan(placement, table, loads, PlanSettings(), units)
        if made is not None:
            table = placement.changed(table, made.changes.announcements())
    assert table.units == then
    kept = loads_of(placement, table, loads, PlanSettings())
    assert len(kept) == then
    assert imbalance(kept) <= 1.2 + 1e-9


def test_units_from_8_to_12_move_little_more_than_the_third_that_must() -> None:
    placement, loads, settings = hybrid(8), some_loads(), PlanSettings()
    first = plan(placement, placement.first, loads, settings)
    assert first is not None
    table = placement.changed(placement.first, first.changes.announcements())
    second = plan(placement, table, loads, settings, 12)
    assert second is not None
    rows = sum(counts.stored for counts in loads.counts.values())
    assert second.changes.units == 12
    assert 0.8 * rows / 3 <= second.costs.migrated <= 1.2 * rows / 3


def test_units_of_a_side_are_those_it_began_with_and_every_other_new_one() -> None:
    first = hybrid(8).first
    assert halves_of(first, 8) == ([0, 1, 2, 3], [4, 5, 6, 7])
    assert halves_of(first, 11) == ([0, 1, 2, 3, 8, 10], [4, 5, 6, 7, 9])
    assert halves_of(first, 6) == ([0, 1, 2, 3], [4, 5])
    assert halves_of(first, 3) == ([0, 1], [2])


@pytest.mark.parametrize("units", [0, 257])
def test_units_that_cannot_be_are_refused(units: int) -> None:
    with pytest.raises(MisuseError, match=f"1 to 256 units, not {units}"):
        plan(hybrid(8), hybrid(8).first, some_loads(), PlanSettings(), units)


@given(st.lists(st.tuples(st.integers(0, 10**5), st.integers(0, 10**5)), min_size=1, max_size=8))
def test_grid_follows_the_sizes_and_is_the_best_behind_each_check(growth: list[tuple[int, int]]) -> None:
    placement = matrix(32)
    table, left, right = placement.first, 0, 0
    for more_left, more_right in growth:
        left, right = left + more_left, right + more_right
        changes = plan_grid(table, left, right)
        if changes is not None:
            table = placement.changed(table, changes.announcements())
        best = min(input_load(32, shares, left, right) for shares in (1, 2, 4, 8, 16, 32))
        assert input_load(32, table.buckets[0][0].shares, left, right) == best
        assert plan_grid(table, left, right) is None


@pytest.mark.parametrize("make", [biclique, grouped, matrix])
def test_refused_plans_for_rows_that_are_spread_by_chance(make: Callable[[int], Placement]) -> None:
    with pytest.raises(MisuseError, match="no plan is made for rows that are spread by chance"):
        plan(make(16), make(16).first, some_loads(), PlanSettings())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"theta_max": -0.1}, "theta_max is a finite number from 0 on, not -0.1"),
        ({"theta_max": math.nan}, "theta_max is a finite number from 0 on, not nan"),
        ({"period": 0}, "from 1 on, not 0"),
        ({"measure": "time"}, "'stored' or 'work', not 'time'"),
        ({"aim": 1.5}, "from 0 to 1, not 1.5"),
    ],
)
def test_refused_settings_that_make_no_sense(settings: dict[str, object], said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        PlanSettings(**settings)  # type: ignore[arg-type]
