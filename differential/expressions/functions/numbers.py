"""Functions of numbers: exact for whole numbers and decimals, by IEEE's rules for floats.

A float has a result for everything: the square root of -1 is nan, the logarithm of 0 is -inf. Rounding is to
the nearest, halves away from zero, as in SQL; for a float, the digits that count are those with which it is
printed (`arithmetic/rounding.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

import numpy as np

from differential.columns.column_types import (
    DECIMAL_DIGITS_MAX,
    WORD_DIGITS_MAX,
    Bools,
    ColumnType,
    Floats,
    Int64s,
    boolean,
    decimal,
    floating,
    integer,
)
from differential.columns.float_words import floats_to_words
from differential.columns.wide.digits import of_rounding
from differential.expressions.arithmetic.rounding import round_floats
from differential.expressions.arithmetic.wide_numbers import Numbers, rescaled, whole_parts
from differential.expressions.functions.function import (
    ANY_KIND,
    NUMBERS,
    Function,
    Numpy,
    Param,
    Values,
    always,
)

__all__ = ["NUMERIC", "float_function", "power_of_ten", "rounded", "rounded_decimals", "rounding_type"]

_X: Final = Param("x", NUMBERS)
_FLOAT: Final = Param("x", ("int", "float"))
_HALF_OF_NEXT: Final = 5 * 10**18
_GOLDEN: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


def power_of_ten(digits: int) -> int:
    """Return 10^digits, for 0 ≤ digits ≤ 18."""
    return int(10**digits)


def rounded(words: Int64s, factor: int) -> Int64s:
    """Return words / factor to the nearest whole number, halves away from zero.

    There is no overflow for |words| < 2^63.
    """
    if factor == 1:
        return words
    quotient, rest = np.divmod(words, factor)
    # divmod rounds down: a rest of one half rounds up for positive words, and stays down for negative ones.
    up = np.where(words >= 0, rest >= factor - rest, rest > factor - rest)
    result: Int64s = quotient + up
    return result


def _round(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    digits = cast("int", constants[0]) if constants else 0
    values, type_ = columns[0], types[0]
    if type_.kind == "float":
        return round_floats(cast("Floats", values), digits), None
    if type_.kind == "decimal":
        return rounded_decimals(values, type_, digits, to_even=False)
    drop = -digits
    if drop <= 0:
        return values, None
    if drop > 18:
        # Among 64-bit numbers only those from 5·10^18 on would become ±10^19, which 64 bits do not hold.
        words = cast("Int64s", values)
        fits = (words < _HALF_OF_NEXT) & (words > -_HALF_OF_NEXT) if drop == 19 else None
        return np.zeros_like(values), fits
    factor = power_of_ten(drop)
    whole = rounded(cast("Int64s", values), factor)
    return whole * factor, np.abs(whole) <= ((1 << 63) - 1) // factor


def rounded_decimals(
    values: Values, type_: ColumnType, digits: int, *, to_even: bool
) -> tuple[Values, Bools | None]:
    """Return decimals with `digits` digits behind the point, in the type of `rounding_type`."""
    to, numbers = of_rounding(type_, digits), Numbers(cast("Int64s", values), type_.scale, type_.is_wide)
    if digits >= 0:
        words, failing = rescaled(numbers, to, to_even=to_even)
        return words, None if failing is None else ~failing
    # In units of 10^-digits, and then in units of 1 again.
    in_units, _ = rescaled(numbers._replace(scale=type_.scale - digits), to, to_even=to_even)
    words, failing = rescaled(Numbers(in_units, digits, to.is_wide), to)
    return words, None if failing is None else ~failing


def rounding_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    """Return the type of a rounded number."""
    digits = cast("int", constants[0]) if constants else 0
    return of_rounding(types[0], digits) if types[0].kind == "decimal" else types[0]


def _whole(up: bool) -> Numpy:
    def run(
        columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
    ) -> tuple[Values, Bools | None]:
        values, type_ = columns[0], types[0]
        if type_.kind == "float":
            return (np.ceil if up else np.floor)(values), None
        if type_.kind == "int":
            return values, None
        to = _whole_type(types)
        if type_.is_wide:
            return whole_parts(cast("Int64s", values), type_.scale, to, up=up), None
        words, factor = cast("Int64s", values), power_of_ten(type_.scale)
        return (-(-words // factor) if up else words // factor), None

    return run


def _whole_type(types: Sequence[ColumnType]) -> ColumnType:
    """Return the type of a whole part: an int where it always fits, as for all decimals of one word."""
    type_ = types[0]
    if type_.kind == "float":
        return floating
    before = type_.precision - type_.scale
    return decimal(min(before + 1, DECIMAL_DIGITS_MAX)) if before > WORD_DIGITS_MAX else integer


def _sign_type(types: Sequence[ColumnType]) -> ColumnType:
    return floating if types[0].kind == "float" else integer


def _sign(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    if types[0].is_wide:
        high, low = cast("Int64s", columns[0])
        return np.sign(np.where(high == 0, low, high)), None
    return np.sign(columns[0]), None


def _by_ieee(function: Callable[[Floats], Floats]) -> Numpy:
    def run(
        columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
    ) -> tuple[Values, Bools | None]:
        with np.errstate(all="ignore"):
            return function(columns[0].astype(np.float64)), None

    return run


def _log(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    with np.errstate(all="ignore"):
        natural = np.log(columns[0].astype(np.float64))
        if constants:
            natural = natural / np.log(float(cast("float", constants[0])))
    return natural, None


def _power(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    with np.errstate(all="ignore"):
        return np.power(columns[0].astype(np.float64), columns[1].astype(np.float64)), None


def _hash(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    """Return the words mixed one after another (splitmix64): the same in every process."""
    mixed = np.zeros(columns[0].shape[-1:], dtype=np.uint64)
    for values, type_ in zip(columns, types, strict=True):
        words = floats_to_words(cast("Floats", values)) if type_.kind == "float" else values.astype(np.int64)
        for line in words if type_.is_wide else (words,):
            mixed = (mixed ^ np.ascontiguousarray(line).view(np.uint64)) + _GOLDEN
            for shift, factor in ((30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
            mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed.view(np.int64), None


def float_function(
    name: str, function: Callable[[Floats], Floats], says: str, polars: str | None = None
) -> Function:
    """Return the function of one float; `polars`: its name there, if that is another (or "", if none)."""
    return Function(
        name=name, family="numbers", accessor="", params=(_FLOAT,), gives=always(floating), says=says,
        spark=name, polars=name if polars is None else polars, numpy=_by_ieee(function),
    )  # fmt: skip


NUMERIC: Final = (
    Function(name="round", family="numbers", accessor="",
             params=(_X, Param("digits", ("int",), is_constant=True, is_optional=True)), numpy=_round,
             gives=lambda types: types[0], gives_by=rounding_type, may_lack=True,
             failure="leaves the digits that its type has",
             says="Rounded to `digits` digits behind the point (0; negative: before it), halves away from "
             "zero, as printed.",
             spark="round", polars="round"),
    Function(name="floor", family="numbers", accessor="", params=(_X,), gives=_whole_type,
    numpy=_whole(False),
             says="The next whole number below; an int for a decimal that fits one.", spark="floor",
             polars="floor"),
    Function(name="ceil", family="numbers", accessor="", params=(_X,), gives=_whole_type, numpy=_whole(True),
             says="The next whole number above; an int for a decimal that fits one.", spark="ceil",
             polars="ceil"),
    Function(name="sign", family="numbers", accessor="", params=(_X,), gives=_sign_type, numpy=_sign,
             says="-1, 0 or 1.", spark="signum", polars="sign", calls=("signum",)),
    float_function("sqrt", np.sqrt, "The square root."),
    float_function("exp", np.exp, "e to this power."),
    Function(name="log", family="numbers", accessor="",
             params=(_FLOAT, Param("base", ("int", "float"), is_constant=True, is_optional=True)),
             gives=always(floating), numpy=_log, says="The logarithm, to base e or another.", spark="log",
             polars="log"),
    float_function("log2", np.log2, "The logarithm to base 2."),
    float_function("log10", np.log10, "The logarithm to base 10."),
    Function(name="power", family="numbers", accessor="", params=(_FLOAT, Param("exponent", ("int",
    "float"))),
             gives=always(floating), numpy=_power, says="To this power, as a float.", spark="pow",
             polars="pow"),
    Function(name="is_nan", family="numbers", accessor="", params=(Param("x", ("float",)),),
    gives=always(boolean),
             numpy=lambda columns, constants, types: (np.isnan(columns[0]), None),
             says="True where it is not a number.", spark="isnan (false for null)", polars="is_nan",
             calls=()),
    Function(name="hash", family="numbers", accessor=None, params=(Param("values", ANY_KIND),), many=True,
             gives=always(integer), numpy=_hash,
             says="64 bits of the values, the same in every process; null if one is null.",
             spark="hash, otherwise",
             polars="hash"),
)  # fmt: skip
"""The functions that this file defines."""
