"""Functions of numbers: against Python's decimals and floats."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from expression_values import values_of
from hypothesis import example, given
from hypothesis import strategies as st

import differential as dd
from differential import Schema, col
from differential.columns.rows import Row
from differential.errors import RowError
from differential.expressions.functions.numbers import power_of_ten, rounded

NUMBERS = Schema.of("i: int, f: float, p: decimal(9, 3), n: int?")
small = st.integers(-(10**12), 10**12)
exact = st.integers(-(10**9) + 1, 10**9 - 1).map(lambda word: Decimal(word).scaleb(-3))
floats = st.floats(-1e9, 1e9) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 2.5, -0.5])
rows_of_numbers = st.lists(st.tuples(small, floats, exact, st.none() | small), min_size=1, max_size=5)


def half_up(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


@given(rows_of_numbers, st.integers(-3, 2))
def test_whole_numbers_and_decimals_round_halves_away_from_zero(rows: list[Row], digits: int) -> None:
    for column, at in ((col.i, 0), (col.p, 2)):
        expected = [half_up(Decimal(str(row[at])), digits) for row in rows]
        assert values_of(column.round(digits), rows, NUMBERS) == expected


@pytest.mark.parametrize(
    ("digits", "given", "rounded"),
    [
        (0, "1" + "9" * 35 + ".50", "2" + "0" * 35),
        (1, "-" + "9" * 36 + ".95", "-1" + "0" * 36 + ".0"),
        (-36, "5" + "0" * 35 + ".00", "1" + "0" * 36),
        (-36, "4" + "9" * 35 + ".99", "0"),
        (5, "1.25", "1.25"),
    ],
)
def test_decimals_of_two_words_round_in_the_type_that_spark_gives(
    digits: int, given: str, rounded: str
) -> None:
    schema = Schema.of("w: decimal(38, 2)")
    (found,) = values_of(col.w.round(digits), [(Decimal(given),)], schema)
    assert found == Decimal(rounded)
    type_ = {0: "decimal(37, 0)", 1: "decimal(38, 1)", -36: "decimal(37, 0)", 5: "decimal(38, 2)"}[digits]
    assert str(col.w.round(digits).type_in(schema)) == type_
    assert values_of(dd.bround(col.w, -1), [(Decimal(25),), (Decimal(35),)], schema) == [20, 40]


def test_whole_parts_of_decimals_are_ints_where_they_fit() -> None:
    schema = Schema.of("w: decimal(38, 2), n: decimal(19, 1)")
    low = -Decimal("9" * 18 + ".9")
    rows: list[Row] = [(Decimal("9" * 36 + ".01"), low), (Decimal("-0.01"), Decimal("0.5"))]
    assert values_of(col.w.ceil(), rows, schema) == [Decimal(10**36), Decimal(0)]
    assert values_of(col.w.floor(), rows, schema) == [Decimal(10**36 - 1), Decimal(-1)]
    assert values_of(col.n.floor(), rows, schema) == [-(10**18), 0]
    assert values_of(col.w.sign(), rows, schema) == [1, -1]
    assert len(set(values_of(dd.hash(col.w), rows, schema))) == 2


@given(rows_of_numbers)
def test_floor_ceil_and_sign(rows: list[Row]) -> None:
    assert values_of(col.p.floor(), rows, NUMBERS) == [math.floor(Decimal(str(row[2]))) for row in rows]
    assert values_of(col.p.ceil(), rows, NUMBERS) == [math.ceil(Decimal(str(row[2]))) for row in rows]
    assert values_of(col.i.ceil(), rows, NUMBERS) == [row[0] for row in rows]
    for expr, plain in ((col.f.floor(), np.floor), (col.f.ceil(), np.ceil), (col.f.sign(), np.sign)):
        expected = [float(plain(row[1])) + 0.0 for row in rows]
        assert list(map(repr, values_of(expr, rows, NUMBERS))) == list(map(repr, expected))


@given(rows_of_numbers)
def test_floats_have_a_result_for_everything(rows: list[Row]) -> None:
    claims = [
        (col.f.sqrt(), np.sqrt), (col.f.exp(), np.exp), (col.f.log(), np.log), (col.f.log2(), np.log2),
        (col.f.log10(), np.log10), (col.f**2, np.square), (col.f.is_nan(), np.isnan),
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        for expr, plain in claims:
            expected = [plain(row[1]) for row in rows]
            assert np.allclose(np.array(values_of(expr, rows, NUMBERS)), expected, equal_nan=True), expr
        expected = [np.log(row[1]) / np.log(3) for row in rows]
        assert np.allclose(np.array(values_of(col.f.log(3), rows, NUMBERS)), expected, equal_nan=True)


def test_hashes_are_those_of_every_process() -> None:
    rows: list[Row] = [(7, 0.5, Decimal("1.5"), None), (7, 0.5, Decimal("1.5"), 1)]
    found = values_of(dd.hash(col.i, col.f, col.p), rows, NUMBERS)
    assert found == [found[0]] * 2 and found[0] == HASH_OF_THREE
    assert values_of(dd.hash(col.n), rows, NUMBERS)[0] is None
    assert (
        values_of(dd.hash(col.f, col.i), rows, NUMBERS)[0]
        != values_of(dd.hash(col.i, col.f), rows, NUMBERS)[0]
    )


HASH_OF_THREE = -3931069123847382162


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 18))
def test_rounding_words_is_exact(word: int, digits: int) -> None:
    factor = power_of_ten(digits)
    expected = int((Decimal(word) / factor).quantize(Decimal(1), ROUND_HALF_UP))
    assert rounded(np.array([word]), factor).tolist() == [expected]


def test_a_rounded_number_that_leaves_its_range_stops_the_dataflow() -> None:
    row: Row = (2**63 - 1, 0.0, Decimal(0), None)
    with pytest.raises(RowError, match="leaves the digits"):
        values_of(col.i.round(-1), [row], NUMBERS)
    assert values_of(col.i.round(-30), [row], NUMBERS) == [0]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-25, 1))
@example(2**63 - 1, -19)
@example(-(2**63), -19)
@example(5 * 10**18 - 1, -19)
def test_a_whole_number_is_rounded_or_refused(number: int, digits: int) -> None:
    expected = int(half_up(Decimal(number), digits).to_integral_value()) if digits < 0 else number
    row: Row = (number, 0.0, Decimal(0), None)
    if -(2**63) <= expected < 2**63:
        assert values_of(col.i.round(digits), [row], NUMBERS) == [expected]
    else:
        with pytest.raises(RowError, match=f"leaves the digits.*i={number}"):
            values_of(col.i.round(digits), [row], NUMBERS)
