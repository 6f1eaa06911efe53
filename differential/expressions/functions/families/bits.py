"""Functions of angles, of bits, and rounding to even: numbers in, numbers out.

Floats follow IEEE's rules: outside of its range a function is nan, not null. Bits are the 64 of an int; a
shift by 64 is one by 0, as in Java.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final, TypeAlias, cast

import numpy as np

from differential.columns.column_types import Bools, ColumnType, Floats, Int64s, floating, integer
from differential.expressions.functions.function import NUMBERS, Function, Param, Values, always
from differential.expressions.functions.numbers import (
    float_function,
    power_of_ten,
    rounded_decimals,
    rounding_type,
)

__all__ = ["BITS"]

_Of: TypeAlias = Callable[[Int64s, Int64s], Int64s]
_TIE_OF_19: Final = 5 * 10**18
_WIDE: Final = Context(prec=700)
"""Digits enough for every float, rounded to any place."""


def _two_floats(function: Callable[[Floats, Floats], Floats], name: str, says: str) -> Function:
    def run(
        columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
    ) -> tuple[Values, Bools | None]:
        with np.errstate(all="ignore"):
            return function(columns[0].astype(np.float64), columns[1].astype(np.float64)), None

    params = (Param("y", ("int", "float")), Param("x", ("int", "float")))
    polars = "arctan2" if name == "atan2" else ""
    return Function(name=name, family="numbers", accessor=None, params=params, gives=always(floating),
                    says=says, spark=name, polars=polars, numpy=run)  # fmt: skip


def _bits(name: str, other: str | None, function: _Of, says: str, spark: str, polars: str = "") -> Function:
    def run(
        columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
    ) -> tuple[Values, Bools | None]:
        return function(cast("Int64s", columns[0]), cast("Int64s", columns[-1])), None

    params = (Param("x", ("int",)), *((Param(other, ("int",)),) if other else ()))
    return Function(name=name, family="numbers", accessor="", params=params, gives=always(integer), says=says,
                    spark=spark, polars=polars, numpy=run)  # fmt: skip


def _unsigned_shift(x: Int64s, count: Int64s) -> Int64s:
    return (np.ascontiguousarray(x).view(np.uint64) >> (count & 63).astype(np.uint64)).view(np.int64)


def _bround(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    digits = cast("int", constants[0]) if constants else 0
    values, type_ = columns[0], types[0]
    if type_.kind == "float":
        return _round_floats_to_even(cast("Floats", values), digits), None
    if type_.kind == "decimal":
        return rounded_decimals(values, type_, digits, to_even=True)
    words, drop = cast("Int64s", values), -digits
    if drop <= 0:
        return words, None
    if drop > 18:
        # Among 64-bit numbers only those beyond 5·10^18 would become ±10^19, which 64 bits do not hold.
        fits = (words <= _TIE_OF_19) & (words >= -_TIE_OF_19) if drop == 19 else None
        return np.zeros_like(words), fits
    factor = power_of_ten(drop)
    quotient, rest = np.divmod(words, factor)
    above = factor - rest
    whole = quotient + ((rest > above) | ((rest == above) & (quotient % 2 == 1)))
    return whole * factor, np.abs(whole) <= ((1 << 63) - 1) // factor


def _round_floats_to_even(values: Floats, digits: int) -> Floats:
    """Return the floats rounded by the digits with which Python prints them.

    Python's own `round` takes the binary value, which is a little less for 2.675.
    """
    distinct, places = np.unique(values, return_inverse=True)
    rounded = np.array([_round_to_even(value, digits) for value in distinct.tolist()], dtype=np.float64)
    spread: Floats = rounded[places.reshape(values.shape)]
    return spread


def _round_to_even(value: float, digits: int) -> float:
    if not np.isfinite(value) or digits > 330:
        return value
    if digits < -330:
        return 0.0
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN, _WIDE)) + 0.0


_ANGLES: Final[tuple[tuple[str, Callable[[Floats], Floats], str], ...]] = (
    ("sin", np.sin, "The sine of an angle in radians."),
    ("cos", np.cos, "The cosine of an angle in radians."),
    ("tan", np.tan, "The tangent of an angle in radians."),
    ("asin", np.arcsin, "The angle, in radians, with this sine."),
    ("acos", np.arccos, "The angle, in radians, with this cosine."),
    ("atan", np.arctan, "The angle, in radians, with this tangent."),
    ("sinh", np.sinh, "The hyperbolic sine."),
    ("cosh", np.cosh, "The hyperbolic cosine."),
    ("tanh", np.tanh, "The hyperbolic tangent."),
    ("degrees", np.degrees, "An angle of radians in degrees."),
    ("radians", np.radians, "An angle of degrees in radians."),
    ("cbrt", np.cbrt, "The cube root."),
    ("expm1", np.expm1, "e to this power, less 1: exact for small numbers, too."),
    ("log1p", np.log1p, "The logarithm of 1 more: exact for small numbers, too."),
)
_POLARS: Final = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "expm1": ""}

BITS: Final = (
    *(float_function(name, function, says, _POLARS.get(name)) for name, function, says in _ANGLES),
    _two_floats(np.arctan2, "atan2", "The angle, in radians, of the point (x, y), seen from (0, 0)."),
    _two_floats(np.hypot, "hypot", "The distance of the point (x, y) from (0, 0)."),
    Function(name="bround", family="numbers", accessor="", numpy=_bround, gives=lambda types: types[0],
             gives_by=rounding_type,
             params=(Param("x", NUMBERS), Param("digits", ("int",), is_constant=True, is_optional=True)),
             may_lack=True, failure="leaves the digits that its type has", spark="bround",
             polars="round(mode='half_to_even')",
             says="Rounded as by `round`, but halves go to the even digit."),
    _bits("bit_count", None, lambda x, _: np.bitwise_count(x.view(np.uint64)).astype(np.int64),
          "The number of bits that are 1, of 64.", "bit_count", "bitwise_count_ones"),
    _bits("bitwise_not", None, lambda x, _: ~x, "Each bit the other one.", "bitwise_not"),
    _bits("bitwise_and", "other", lambda x, y: x & y, "The bits that are 1 in both.", "bitwiseAND", "and_"),
    _bits("bitwise_or", "other", lambda x, y: x | y, "The bits that are 1 in one or both.", "bitwiseOR",
          "or_"),
    _bits("bitwise_xor", "other", lambda x, y: x ^ y, "The bits that are 1 in one of both.", "bitwiseXOR",
          "xor"),
    _bits("shiftleft", "count", lambda x, n: x << (n & 63), "The bits moved left by `count`.", "shiftleft"),
    _bits("shiftright", "count", lambda x, n: x >> (n & 63),
          "The bits moved right by `count`; a negative number stays negative.", "shiftright"),
    _bits("shiftrightunsigned", "count", _unsigned_shift,
          "The bits moved right by `count`, with zeros before them.", "shiftrightunsigned"),
)  # fmt: skip
"""The functions that this file defines."""
