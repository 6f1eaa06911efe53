"""Which values does a cast make of others, and which have none?

Between numbers and times a cast works on whole columns. With text or values of type any on one side it works
on each different value. Where there is no value, `cast` fails on the row, `try_cast` returns null.

    to int        from float and decimal: towards zero; from text: digits with a sign
    to float      the nearest double
    to decimal    rounded to its digits, halves away from zero; a float by the digits with which it is
                  printed; more digits before the point do not fit
    to bool       from text: true, false, t, f, yes, no, y, n, 1, 0
    to date       from a timestamp: its day in UTC; from text: 2024-02-29
    to timestamp  from a date: its midnight; from an int: microseconds; from text: ISO 8601, without zone: UTC
    to string     as Python writes it, but true and false; a timestamp without zone; bytes: as UTF-8
    any           from everything; to the type of its value, only if it is exactly that
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final, TypeAlias, cast

import numpy as np

from differential.columns.column_types import Bools, ColumnType, Floats, Int64s
from differential.columns.foreign.type_names import Kind
from differential.columns.nested.fitting import fitting
from differential.columns.wide.wide_words import of_integers
from differential.expressions.arithmetic.rounding import quotients, units_of
from differential.expressions.arithmetic.wide_numbers import Numbers, rescaled
from differential.expressions.functions.function import NESTED_KINDS, Values
from differential.expressions.functions.times import DAY_MICROS

__all__ = ["COLUMN_CASTS", "VALUE_CASTS", "OfColumns", "OfValues", "has_room", "never_fails"]

OfColumns: TypeAlias = Callable[[Values, ColumnType, ColumnType], tuple[Values, Bools | None]]
"""From values and the types from and to, to values, and where there are any (None: everywhere)."""

OfValues: TypeAlias = Callable[[object, ColumnType], object]
"""From one value and the target type to a value, or None."""

_INT: Final = re.compile(r"\s*[+-]?[0-9]+\s*")
_FLOAT: Final = re.compile(r"\s*[+-]?(nan|inf(inity)?|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?)\s*", re.I)
_DAY: Final = re.compile(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*")
_TIME: Final = re.compile(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}.*", re.DOTALL)
_BOOLS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
_EXACT: Final = Context(prec=90, traps=[InvalidOperation])
_LONG: Final = Context(prec=800, Emin=-2000, Emax=2000)
_DIGITS_SHOWN_MAX: Final = 400
_INT_DIGITS: Final = 19
"""The most digits of a whole number of 64 bits."""


def _same(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    return values, None


def _to_float(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    return quotients(cast("Int64s", values), source.scale), None


def _float_to_int(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    fits = (values >= -(2.0**63)) & (values < 2.0**63)  # false for NaN
    return np.where(fits, values, 0.0).astype(np.int64), fits


def _decimal_to_int(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    numbers = Numbers(cast("Int64s", values), source.scale, source.is_wide)
    words, failing = rescaled(numbers, to, toward_zero=True)
    return words, None if failing is None else ~failing


def _to_whole(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    return values.astype(np.int64), None


def _to_bool(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    return values != 0, None


def _to_decimal(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    words = cast("Int64s", values) if source.is_wide else values.astype(np.int64)
    moved, failing = rescaled(Numbers(words, source.scale, source.is_wide), to)
    return moved, None if failing is None else ~failing


def _float_to_decimal(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    if to.is_wide:
        return _floats_to_wide(cast("Floats", values), to)
    words, fits = units_of(cast("Floats", values), to.scale)
    largest = 10**to.precision - 1
    return words, fits & (words <= largest) & (words >= -largest)


def _floats_to_wide(values: Floats, to: ColumnType) -> tuple[Values, Bools | None]:
    """Return the digits of floats as Python prints them: numpy's numbers of one word have too few."""
    place, (different, index) = 10**to.precision, np.unique(values, return_inverse=True)
    numbers = [_number_of(value, to) for value in different.tolist()]
    fits = np.array([number is not None and abs(number) < place for number in numbers], np.bool_)
    exact = np.array([number if fit else 0 for number, fit in zip(numbers, fits, strict=True)], object)
    return of_integers(exact)[:, index.reshape(-1)], fits[index.reshape(-1)]


def _number_of(value: float, to: ColumnType) -> int | None:
    """Return a float, rounded to the digits of a decimal, without the point; None if it has no digits."""
    exact = Decimal(repr(value))
    return int(exact.scaleb(to.scale, _LONG).to_integral_value(ROUND_HALF_UP)) if exact.is_finite() else None


def _date_to_timestamp(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    words = cast("Int64s", values)
    fits = np.abs(words) <= ((1 << 63) - 1) // DAY_MICROS
    return np.where(fits, words, 0) * DAY_MICROS, fits


def _timestamp_to_date(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    return cast("Int64s", values) // DAY_MICROS, None


def _int_to_date(values: Values, source: ColumnType, to: ColumnType) -> tuple[Values, Bools | None]:
    words = cast("Int64s", values)
    return words, (words >= -(1 << 31)) & (words < 1 << 31)


def _text_to_int(value: object, to: ColumnType) -> object:
    text = cast("str", value)
    if len(text) > _DIGITS_SHOWN_MAX or not _INT.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _text_to_float(value: object, to: ColumnType) -> object:
    return float(cast("str", value)) if _FLOAT.fullmatch(cast("str", value)) else None


def _text_to_bool(value: object, to: ColumnType) -> object:
    return _BOOLS.get(cast("str", value).strip().lower())


def _text_to_decimal(value: object, to: ColumnType) -> object:
    text = cast("str", value).strip()
    if len(text) > _DIGITS_SHOWN_MAX or not _FLOAT.fullmatch(text):
        return None
    try:
        exact = Decimal(text).quantize(Decimal(1).scaleb(-to.scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:  # nan, infinity, or far too many digits
        return None
    return exact if exact.is_finite() and abs(exact) < 10 ** (to.precision - to.scale) else None


def _text_to_date(value: object, to: ColumnType) -> object:
    text = cast("str", value)
    try:
        return dt.date.fromisoformat(text.strip()) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _text_to_timestamp(value: object, to: ColumnType) -> object:
    text = cast("str", value)
    try:
        return dt.datetime.fromisoformat(text.strip()) if _TIME.fullmatch(text) else None
    except ValueError:
        return None


def _text_to_bytes(value: object, to: ColumnType) -> object:
    return cast("str", value).encode()


def _to_text(value: object, to: ColumnType) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(value, dt.datetime):
        value = value.replace(tzinfo=None)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _from_any(value: object, to: ColumnType) -> object:
    if to.is_nested:
        return value if fitting(to.not_null())(value) else None
    held = {"int": int, "float": float, "bool": bool, "string": str, "bytes": bytes, "timestamp": dt.datetime}
    return value if type(value) is held[to.kind] else None


def _to_any(value: object, to: ColumnType) -> object:
    return value


COLUMN_CASTS: Final[dict[tuple[Kind, Kind], OfColumns]] = {
    ("int", "float"): _to_float,
    ("decimal", "float"): _to_float,
    ("bool", "float"): _to_float,
    ("float", "int"): _float_to_int,
    ("decimal", "int"): _decimal_to_int,
    ("bool", "int"): _to_whole,
    ("int", "bool"): _to_bool,
    ("int", "decimal"): _to_decimal,
    ("bool", "decimal"): _to_decimal,
    ("decimal", "decimal"): _to_decimal,
    ("float", "decimal"): _float_to_decimal,
    ("int", "timestamp"): _same,
    ("timestamp", "int"): _same,
    ("date", "timestamp"): _date_to_timestamp,
    ("timestamp", "date"): _timestamp_to_date,
    ("date", "int"): _same,
    ("int", "date"): _int_to_date,
}
"""Casts of whole columns, by (kind from, kind to)."""

VALUE_CASTS: Final[dict[tuple[Kind, Kind], OfValues]] = {
    ("string", "int"): _text_to_int,
    ("string", "float"): _text_to_float,
    ("string", "bool"): _text_to_bool,
    ("string", "decimal"): _text_to_decimal,
    ("string", "date"): _text_to_date,
    ("string", "timestamp"): _text_to_timestamp,
    ("string", "bytes"): _text_to_bytes,
    ("int", "string"): _to_text,
    ("float", "string"): _to_text,
    ("bool", "string"): _to_text,
    ("decimal", "string"): _to_text,
    ("date", "string"): _to_text,
    ("timestamp", "string"): _to_text,
    ("bytes", "string"): _to_text,
    ("any", "int"): _from_any,
    ("any", "float"): _from_any,
    ("any", "bool"): _from_any,
    ("any", "string"): _from_any,
    ("any", "bytes"): _from_any,
    ("any", "timestamp"): _from_any,
    ("int", "any"): _to_any,
    ("float", "any"): _to_any,
    ("bool", "any"): _to_any,
    ("string", "any"): _to_any,
    ("bytes", "any"): _to_any,
    ("timestamp", "any"): _to_any,
    **{("any", kind): _from_any for kind in NESTED_KINDS},
    **{(kind, "any"): _to_any for kind in NESTED_KINDS},
}
"""Casts of each different value, by (kind from, kind to)."""


def has_room(source: ColumnType, to: ColumnType) -> bool:
    """True for a cast to a decimal that has all digits, of numbers that have as many behind the point."""
    before = {"int": _INT_DIGITS, "decimal": source.precision}.get(source.kind)
    return to.kind == "decimal" and before is not None and to.scale == source.scale and to.precision >= before


def never_fails(source: ColumnType, to: ColumnType) -> bool:
    """True for a cast that has a value for every operand."""
    kinds = (source.kind, to.kind)
    if kinds == ("decimal", "int"):
        return source.precision - source.scale < _INT_DIGITS
    if kinds == ("decimal", "decimal"):
        return to.scale >= source.scale and to.precision - to.scale >= source.precision - source.scale
    if kinds == ("int", "decimal"):
        return to.precision - to.scale >= _INT_DIGITS
    return kinds in _NEVER_FAIL


_NEVER_FAIL: Final = frozenset(
    {
        ("int", "float"),
        ("decimal", "float"),
        ("bool", "float"),
        ("bool", "int"),
        ("int", "bool"),
        ("int", "timestamp"),
        ("timestamp", "int"),
        ("timestamp", "date"),
        ("date", "int"),
        ("string", "bytes"),
        ("int", "string"),
        ("float", "string"),
        ("bool", "string"),
        ("decimal", "string"),
        ("int", "any"),
        ("float", "any"),
        ("bool", "any"),
        ("string", "any"),
        ("bytes", "any"),
        *((kind, "any") for kind in NESTED_KINDS),
    }
)
"""Casts that have a value for every operand, whatever its digits."""
