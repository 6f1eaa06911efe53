"""composing.py: registers for an error, and the estimate that is made of them."""

from __future__ import annotations

import math

import pytest
from expression_values import values_of

from differential import Schema, col
from differential.aggregates import Aggregate
from differential.plan.grouping.composing import estimate, flattened, registers_bits


@pytest.mark.parametrize(("error", "bits"), [(0.4, 3), (0.05, 9), (0.01, 14), (0.005, 16)])
def test_registers_are_as_many_as_the_error_needs(error: float, bits: int) -> None:
    assert registers_bits(error) == bits
    assert 1.04 / math.sqrt(2**bits) <= error < 1.04 / math.sqrt(2 ** (bits - 1))


def test_estimate_of_no_register_is_0_and_of_one_1_and_of_all_that_of_a_hyperloglog() -> None:
    schema = Schema.of("filled: int, weights: int")
    half = 1 << 38  # of a register whose lowest bit is the second
    rows: list[tuple[object, ...]] = [(0, 0), (1, half), (2, 2 * half), (512, 512 * (half >> 9))]
    found = values_of(estimate(col.filled, col.weights, 0.05), rows, schema)  # type: ignore[arg-type]
    assert found == [0, 1, 2, round(512 * 2**11 / (2 * math.log(2)))]


def test_only_what_is_computed_of_others_is_taken_apart() -> None:
    named = {"n": Aggregate("count"), "r": Aggregate("corr", "x", second="y")}
    flat, finals = flattened(named)
    assert [each.kind for each in flat.values()] == ["count", "covar_samp", "stddev", "stddev"]
    assert list(finals) == ["r"]
