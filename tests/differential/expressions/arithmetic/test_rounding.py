"""Rounding of floats: each double, to each number of digits, is what its printed digits round to."""

from __future__ import annotations

import math
import sys
from decimal import Decimal

import numpy as np
import pytest
from expression_values import values_of
from hypothesis import example, given
from hypothesis import strategies as st
from reference.expressions import as_quotient, as_units, rounded_as_printed

from differential import Schema, col
from differential.columns.rows import Row
from differential.expressions.arithmetic.rounding import quotients, round_floats, units_of

FLOATS = Schema.of("f: float, n: float?")


@st.composite
def near_a_half(draw: st.DrawFn) -> tuple[float, int]:
    """A double at, or next to, the middle between two results, and the digits of these."""
    digits = draw(st.integers(-25, 40))
    length = draw(st.integers(1, 18))
    number = float(
        f"{draw(st.integers(0, 10**length))}{draw(st.sampled_from(['', '5', '49', '51']))}e{-digits - 1}"
    )
    sign = draw(st.sampled_from([1.0, -1.0]))
    return sign * math.nextafter(number, draw(st.sampled_from([-math.inf, number, math.inf]))), digits


every_double = st.tuples(st.floats(), st.integers(-400, 400))


@given(st.lists(near_a_half() | every_double, min_size=1, max_size=20))
@example([(105.99000000000001, 2), (2.675, 12), (2.675, 2), (-0.5, 0), (1.797e308, 2), (1.797e308, -308)])
@example([(0.285, 2), (1.005, 2), (8.345, 2), (5e-324, 323), (1e22, -22), (123456789012345.67, 1)])
def test_the_printed_digits_are_rounded(pairs: list[tuple[float, int]]) -> None:
    for digits in {digits for _, digits in pairs}:
        values = [value for value, _ in pairs]  # of many sizes in one column
        expected = [rounded_as_printed(value, digits) for value in values]
        assert list(map(repr, round_floats(np.array(values), digits).tolist())) == list(map(repr, expected))


@given(st.lists(st.integers(0, 99_999), min_size=1, max_size=40))
def test_a_sum_of_prices_rounds_to_the_price(cents: list[int]) -> None:
    total = 0.0
    for each in cents:
        total += each / 100
    assert round_floats(np.array([total]), 2).tolist() == [sum(cents) / 100]


@given(st.floats(allow_nan=False), st.integers(-30, 30))
def test_what_is_rounded_stays_when_rounded_again(value: float, digits: int) -> None:
    once = round_floats(np.array([value]), digits)
    assert round_floats(once, digits).tolist() == once.tolist()


@given(st.lists(near_a_half().map(lambda pair: pair[0]) | st.floats(), min_size=1), st.integers(0, 18))
def test_units_are_those_of_a_decimal(values: list[float], digits: int) -> None:
    words, fits = units_of(np.array(values), digits)
    found = [word if fit else None for word, fit in zip(words.tolist(), fits.tolist(), strict=True)]
    assert found == [as_units(value, digits) for value in values]


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(2**52, 2**56), min_size=1), st.integers(0, 18))
def test_a_quotient_is_the_nearest_double(words: list[int], digits: int) -> None:
    expected = [as_quotient(word, digits) for word in words]
    assert quotients(np.array(words), digits).tolist() == expected
    assert quotients(np.array(words[0]), digits).tolist() == expected[0]


def test_rounding_in_a_query_takes_floats_as_they_come() -> None:
    values = [105.99000000000001, 2.675, -2.675, math.nan, math.inf, 1.797e308, 0.0]
    rows: list[Row] = [(value, None) for value in values]
    found = values_of(col.f.round(2), rows, FLOATS)
    assert list(map(repr, found)) == ["105.99", "2.68", "-2.68", "nan", "inf", "1.797e+308", "0.0"]
    assert values_of(col.n.round(2), rows, FLOATS) == [None] * len(rows)
    assert values_of(col.f.round(-308), [(1.797e308, None)], FLOATS) == [math.inf]


def test_decimals_become_the_nearest_floats_and_come_back() -> None:
    schema = Schema.of("p: decimal(18, 1), q: decimal(18, 17)?")
    rows: list[Row] = [
        (Decimal("90071992547409931.9"), Decimal("9.00719925474099319")),
        (Decimal("-1.5"), None),
    ]
    assert values_of(col.p.cast("float"), rows, schema) == [90071992547409931.9, -1.5]
    assert values_of(col.q.cast("float"), rows, schema) == [9.00719925474099319, None]
    assert values_of(col.p / 1.0, rows, schema) == [90071992547409931.9, -1.5]
    back = values_of(col.q.cast("float").cast("decimal(18, 15)"), rows, schema)
    assert back == [Decimal("9.007199254740993"), None]


@pytest.mark.parametrize("number", [1.005, 2.675, -1.115, 8.345, 123456789012345.67, 0.1 + 0.2])
def test_a_float_becomes_a_decimal_by_its_printed_digits(number: float) -> None:
    (found,) = values_of(col.f.cast("decimal(18, 2)"), [(number, None)], FLOATS)
    assert found == Decimal(str(as_units(number, 2))).scaleb(-2)


def test_of_many_numbers_none_is_rounded_by_python() -> None:
    values = np.random.default_rng(0).random(100_000) * 1000
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        for digits in (0, 2, 12, 15, -1):
            round_floats(values, digits)
    finally:
        sys.setprofile(None)
    assert calls < 1000
