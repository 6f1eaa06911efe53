"""Costs of plans: three terms that are added, each over the traffic."""

from __future__ import annotations

import math

import pytest

from differential.skew.planning.cost import Costs, Weights
from timely.errors import MisuseError


def test_the_terms_are_added_and_not_multiplied() -> None:
    """Formula (3) of the seed prints × for the first +: without splits, routes would cost nothing."""
    assert Weights(0.2, 0.3, 0.5).cost(Costs(10, 0, 0), 100) == pytest.approx(0.02)
    assert Weights(0.2, 0.3, 0.5).cost(Costs(10, 20, 30), 100) == pytest.approx(0.02 + 0.06 + 0.15)


def test_a_cost_is_measured_by_the_traffic() -> None:
    assert Weights().cost(Costs(1, 2, 3), 1_000) == pytest.approx(Weights().cost(Costs(1, 2, 3), 10) / 100)
    assert Weights().cost(Costs(1, 2, 3), 0) == Weights().cost(Costs(1, 2, 3), 1)


def test_the_weights_of_the_seed_are_weights() -> None:
    for weights in ((0.2, 0.3, 0.5), (0.1, 0.3, 0.6), (0.1, 0.4, 0.5), (1, 0, 0)):
        assert sum(weights) == pytest.approx(1)
        Weights(*weights)
    assert Weights() == Weights(0.2, 0.3, 0.5)


@pytest.mark.parametrize("weights", [(-0.1, 0.6, 0.5), (0.5, math.nan, 0.5), (math.inf, 0, 0)])
def test_negative_weights_are_refused(weights: tuple[float, float, float]) -> None:
    with pytest.raises(MisuseError, match="weights of costs are not negative"):
        Weights(*weights)


@pytest.mark.parametrize("weights", [(0.2, 0.3, 0.6), (0, 0, 0), (1, 1, 1)])
def test_weights_that_are_not_1_together_are_refused(weights: tuple[float, float, float]) -> None:
    with pytest.raises(MisuseError, match="1 together"):
        Weights(*weights)
