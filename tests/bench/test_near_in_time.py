"""Sessions and as-of joins measured: what is changed is what is near, but in the two shapes made to lose."""

from __future__ import annotations

import pytest

from bench.dataflow.near_in_time import NEAR, SHAPES, measured

ROWS = 400


@pytest.mark.parametrize("name", SHAPES)
def test_a_change_is_of_what_is_near(name: str) -> None:
    cost = measured(SHAPES[name], ROWS, 4)
    assert len(cost.each) == 4 and min(cost.each) > 0 and cost.load > 0
    is_far = "all" in name
    # Each row that stays is taken away as it was and put in again as it is.
    assert cost.rows <= (2 * ROWS if is_far else 2 * NEAR)
    assert cost.rows >= (ROWS if is_far else 1)
