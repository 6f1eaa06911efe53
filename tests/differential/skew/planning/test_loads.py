"""θ, imbalance and excess of loads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.skew.planning.loads import excess, imbalance, thetas

LOADS = st.lists(st.integers(0, 1_000), min_size=1, max_size=6)


def test_theta_is_the_distance_from_the_mean_over_the_mean() -> None:
    assert thetas([30, 10]) == [0.5, 0.5]
    assert thetas([10, 10, 30, 30]) == [0.5] * 4
    assert imbalance([30, 10]) == 1.5


def test_no_load_is_balanced() -> None:
    assert thetas([0, 0]) == [0.0, 0.0]
    assert imbalance([0, 0]) == 1.0
    assert excess([0, 0], 0.0) == 0.0


@pytest.mark.parametrize(
    ("loads", "theta_max", "rows"),
    [
        ([30, 10], 0.0, 10),
        ([30, 10], 0.25, 5),
        ([30, 10], 0.5, 0),
        ([0, 30, 30], 0.5, 10),
        ([60, 0, 0], 0.2, 36),
    ],
)
def test_excess_is_what_must_move_at_least(loads: list[int], theta_max: float, rows: float) -> None:
    assert excess(loads, theta_max) == pytest.approx(rows)


@given(LOADS, st.sampled_from([0.0, 0.2, 0.5]))
def test_excess_is_nothing_exactly_where_loads_are_balanced(loads: list[int], theta_max: float) -> None:
    assert (excess(loads, theta_max) < 1e-9) == (max(thetas(loads)) <= theta_max + 1e-12)
