"""Angles and bits against DuckDB and Python; rounding to even against Python's decimals."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from duckdb_values import against_duckdb
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.columns.rows import Row
from differential.errors import RowError
from differential.expressions.expression import Expr

FLOATS = [
    None,
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    -1.0,
    1e-300,
    1e-9,
    -1e-9,
    700.0,
    *(n * 0.37 - 9 for n in range(60)),
]
NUMBERS = [
    None,
    0,
    1,
    -1,
    255,
    2**63 - 1,
    -(2**63),
    *(3**n for n in range(39)),
    *(-(7**n) for n in range(22)),
]
LOW, HIGH = -(2**63), 2**63 - 1


def of(expr: Expr, *values: object, type_: str) -> list[object]:
    """The values of an expression over `v`."""
    return values_of(expr, [(value,) for value in values], Schema.of(f"v: {type_}"))


def test_angles_are_those_of_duckdb() -> None:
    v, names = col.v, ("sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "degrees", "radians", "cbrt")
    claims = [(getattr(dd, name)(v), f"{name}(v)") for name in names]
    claims += [(dd.atan2(v, 2), "atan2(v, 2)"), (dd.atan2(-1, v), "atan2(-1, v)")]
    against_duckdb("float?", FLOATS, claims)
    within = [value for value in FLOATS if value is None or abs(value) <= 1]
    against_duckdb("float?", within, [(v.asin(), "asin(v)"), (v.acos(), "acos(v)")])


def test_functions_that_duckdb_lacks_are_those_of_python() -> None:
    floats = [value for value in FLOATS if value is not None and -1 < value < 600]
    for name, plain in (("expm1", math.expm1), ("log1p", math.log1p)):
        have = of(getattr(col.v, name)(), *floats, type_="float")
        assert have == [pytest.approx(plain(value), rel=1e-14) for value in floats]
    assert of(dd.hypot(col.v, 4), 3, None, type_="int?") == [5.0, None]
    assert math.isnan(float(str(of(dd.asin(col.v), 2.0, type_="float")[0]))), "no error, and no null"


def test_bits_are_those_of_duckdb_and_of_python() -> None:
    v = col.v
    claims = [
        (v.bit_count(), "bit_count(v)"), (v.bitwise_not(), "~v"), (v.bitwise_and(0xF0F0), "v & 61680"),
        (v.bitwise_or(-2), "v | -2"), (v.bitwise_xor(v.shiftright(3)), "xor(v, v >> 3)"),
    ]  # fmt: skip
    against_duckdb("int?", NUMBERS, [*claims, *((v.shiftright(n), f"v >> {n}") for n in (0, 1, 63))])


def test_shifts_go_round_at_64_and_drop_bits_as_in_java() -> None:
    numbers = [value for value in NUMBERS if value is not None]
    for count in (0, 1, 31, 63, 64, 65, -1):
        by = count % 64
        shifted = [(value << by) & (2**64 - 1) for value in numbers]
        assert of(col.v.shiftleft(count), *numbers, type_="int") == [
            value - 2**64 if value > HIGH else value for value in shifted
        ]
        assert of(col.v.shiftright(count), *numbers, type_="int") == [value >> by for value in numbers]
        unsigned = [(value & (2**64 - 1)) >> by for value in numbers]
        assert of(col.v.shiftrightunsigned(count), *numbers, type_="int") == [
            value - 2**64 if value > HIGH else value for value in unsigned
        ]
    rows: list[Row] = [(1, 3), (-8, 1)]
    assert values_of(dd.shiftleft(col.a, col.b), rows, Schema.of("a: int, b: int")) == [8, -16]


@pytest.mark.parametrize("digits", [-19, -18, -3, -1, 0, 1, 2, 5])
def test_halves_are_rounded_to_even_in_each_type(digits: int) -> None:
    def plain(value: object) -> Decimal:
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)

    halves = [n * 0.125 for n in range(-40, 40)] + [2.675, 1.005, 25.0, 35.0, 1e17, -2.5]
    assert of(col.v.bround(digits), *halves, type_="float") == [float(plain(value)) for value in halves]
    whole = [n * 5 for n in range(-30, 30)] + [2500, 3500, -1500]
    assert of(col.v.bround(digits), *whole, type_="int") == [
        int(plain(v)) if digits < 0 else v for v in whole
    ]
    exact = [Decimal(n * 25).scaleb(-3) for n in range(-60, 60)]
    assert of(col.v.bround(digits), *exact, type_="decimal(12, 3)") == [
        plain(value) if digits < 3 else value for value in exact
    ]


def test_a_number_that_leaves_its_digits_fails_its_row() -> None:
    for expr, value, type_ in (
        (col.v.bround(-1), HIGH, "int"),
        (col.v.bround(-19), 6 * 10**18, "int"),
        (col.v.bround(-1), Decimal("9" * 38), "decimal(38, 0)"),
    ):
        with pytest.raises(RowError, match="leaves the digits"):
            of(expr, value, type_=type_)
    assert of(col.v.bround(-19), 5 * 10**18, LOW + 2**62, type_="int") == [0, 0]
