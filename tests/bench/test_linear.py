"""The benchmark of linear costs measures what it says, at its smallest sizes."""

from __future__ import annotations

import pytest

from bench.timely.linear import SIZES, measure


@pytest.mark.parametrize("shape", list(SIZES))
def test_every_shape_is_measured(shape: str) -> None:
    figures = measure(shape, 20)
    assert figures["µs"] > 0 and figures["MiB"] >= 0
