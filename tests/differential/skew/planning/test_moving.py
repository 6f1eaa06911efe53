"""H1, H2 and H3 one by one.

bounds_*   what a unit may have
h1_* h2_* h3_* pull_* retire_*   what each rule does
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.skew.placements.hash import home_table
from differential.skew.planning.cost import Weights
from differential.skew.planning.draft import RoutingDraft
from differential.skew.planning.loads import LoadCounts, Loads, Measure
from differential.skew.planning.moving import Bounds, Mover, bounds_of
from timely.routing.announcement import KEY, RoutingCell, RoutingChanges
from timely.routing.grid import Grid

FIRST = home_table(4)
WEIGHTS = Weights()


def key(number: int) -> RoutingCell:
    return RoutingCell(KEY, 0, number)


def mover(
    counts: dict[int, LoadCounts],
    grids: dict[int, Grid] | None = None,
    measure: Measure = "stored",
    weights: Weights = WEIGHTS,
) -> Mover:
    changes = RoutingChanges(None, {key(number): grid for number, grid in (grids or {}).items()})
    table = FIRST.changed(changes.announcements())
    loads = Loads({key(number): each for number, each in counts.items()}, 100)
    return Mover(RoutingDraft(table, FIRST, loads, measure), weights)


@given(st.integers(0, 10_000), st.integers(1, 64), st.floats(0, 2), st.floats(0, 1))
def test_bounds_are_in_order_and_around_the_mean(
    total: int, units: int, theta_max: float, aim: float
) -> None:
    bounds = bounds_of(total, units, theta_max, aim)
    assert bounds.low_aim <= bounds.high_aim <= bounds.high
    assert total <= bounds.high_aim * units
    if bounds.low * units <= total:
        assert bounds.low <= bounds.low_aim
        assert bounds.low_aim * units <= total


def test_h1_moves_whole_keys_if_these_are_enough() -> None:
    moved = mover({4: LoadCounts(10), 8: LoadCounts(10), 12: LoadCounts(10), 1: LoadCounts(10)})
    moved.move_out(0, [0, 1, 2, 3], bounds_of(40, 4, 0.0, 0.5))
    assert moved.draft.loads == [10, 10, 10, 10]
    assert [line[:2] for line in moved.log] == ["H1", "H1"]


def test_h2_splits_the_heaviest_key_and_leaves_the_light_ones() -> None:
    moved = mover({4: LoadCounts(25), 8: LoadCounts(5), 1: LoadCounts(10)})
    moved.move_out(0, [0, 1], bounds_of(40, 2, 0.0, 0.5))
    assert moved.log == ["H2: 10 of 25 of key 4 of side 0 from unit 0 to 1"]


def test_h2_copies_where_a_single_row_takes_all_probes() -> None:
    moved = mover({4: LoadCounts(1, 100, 100)}, measure="work")
    moved.move_out(0, [0, 1, 2, 3], bounds_of(201, 4, 0.2, 0.5))
    assert max(moved.draft.loads) <= 61
    grid = moved.draft.changes().grids[key(4)]
    assert grid is not None
    assert (grid.shares, set(grid.kept_on[0])) == (1, {0, 1, 2, 3})


@pytest.mark.parametrize(("probes", "rule"), [(100, "H1"), (0, "H2")])
def test_h1_or_h2_whichever_costs_less(probes: int, rule: str) -> None:
    """Three light keys leave, which is announced three times, or a part of the heavy one, announced twice."""
    counts = {
        4: LoadCounts(30, probes),
        8: LoadCounts(4),
        12: LoadCounts(3),
        16: LoadCounts(3),
        1: LoadCounts(20),
    }
    moved = mover(counts, weights=Weights(0.5, 0.5, 0))
    moved.move_out(0, [0, 1], Bounds(30, 30, 30, 30))
    assert moved.draft.loads[:2] == [30, 30]
    assert {line[:2] for line in moved.log} == {rule}


def test_h3_brings_home_what_belongs_there_before_anything_is_split() -> None:
    moved = mover({4: LoadCounts(25), 1: LoadCounts(50)}, {4: Grid.split([0, 1])})
    before = list(moved.draft.loads)
    assert before[0] < 25
    moved.move_in(0, [0, 1], bounds_of(75, 2, 0.4, 1.0))
    assert moved.log[0].startswith("H3: key 4 of side 0 comes home to unit 0")
    assert moved.draft.changes().grids == {key(4): None}


def test_h3_leaves_away_what_would_be_too_much_at_home() -> None:
    moved = mover({4: LoadCounts(80), 8: LoadCounts(10), 1: LoadCounts(10)}, {4: Grid.alone(1)})
    moved.call_home(0, Bounds(0, 50, 50, 50))
    assert moved.log == []


def test_h3_leaves_away_what_another_unit_would_then_have_too_little_of() -> None:
    moved = mover({4: LoadCounts(40), 8: LoadCounts(10), 1: LoadCounts(10)}, {4: Grid.alone(1)})
    moved.call_home(0, Bounds(20, 60, 60, 60))
    assert moved.log == []
    moved.call_home(0, Bounds(10, 60, 60, 60))
    assert moved.draft.loads[:2] == [50, 10]


def test_pull_fills_a_unit_that_nobody_else_would() -> None:
    """Nobody has too much, one has nothing: the seed's MoveIn would leave it so."""
    moved = mover({4: LoadCounts(12), 1: LoadCounts(12), 2: LoadCounts(12)})
    bounds = bounds_of(36, 4, 0.4, 1.0)
    assert max(moved.draft.loads) <= bounds.high
    moved.move_in(3, range(4), bounds)
    assert moved.draft.loads[3] >= bounds.low
    assert min(moved.draft.loads) >= bounds.low


def test_retire_takes_everything_from_a_unit() -> None:
    moved = mover(
        {4: LoadCounts(12), 8: LoadCounts(3), 1: LoadCounts(2), 2: LoadCounts(9)}, {4: Grid.split([0, 1])}
    )
    moved.empty(0, [1, 2, 3])
    assert moved.draft.loads[0] == 0
    assert moved.draft.on(0) == []
    assert sum(moved.draft.loads) == 26


@pytest.mark.parametrize("measure", ["stored", "work"])
def test_nobody_has_room_and_nothing_happens(measure: Measure) -> None:
    moved = mover({4: LoadCounts(10, 5, 5)}, measure=measure)
    moved.move_out(0, [0], bounds_of(40, 4, 0.0, 0.5))
    assert moved.log == []
