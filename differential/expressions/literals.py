"""Which constants can stand in an expression, and which word is each?

Python                        column type     kept as
bool, numpy bool              bool            bool
int, numpy integer            int             int (64 bits)
float, numpy floating         float           float
str, bytes                    string, bytes   itself
datetime                      timestamp       datetime in UTC (without a zone: read as UTC)
date                          date            date
Decimal                       decimal(p, s)   Decimal with all its digits; p and s are those of the constant
timedelta                     int             microseconds, to be added to timestamps
None with a stated type       that type?      None
list, dict, stated as any     any             its msgpack bytes
the same, stated as array …   array, struct, map  the same
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from types import FunctionType, MethodType
from typing import Final, TypeAlias, cast

import numpy as np

from differential.columns.column_types import (
    DECIMAL_DIGITS_MAX,
    ColumnType,
    binary,
    boolean,
    date,
    decimal,
    floating,
    integer,
    string,
    timestamp,
)
from differential.columns.float_words import float_to_word
from differential.columns.nested.locations import ValueLocation
from differential.columns.rows import (
    checked_values,
    date_to_days,
    datetime_to_micros,
    decimal_to_word,
    word_to_decimal,
)
from differential.columns.symbols.packing import pack, symbol_word, unpack
from differential.columns.symbols.table import SymbolTable
from differential.errors import ExpressionError, SchemaError, shown
from differential.expressions.functions.casts import COLUMN_CASTS, VALUE_CASTS
from differential.expressions.functions.refusals import ExprText
from differential.other_spellings import of_another_library

__all__ = ["Constant", "NoValue", "Scalar", "constant_of", "constant_word", "constants_in"]

Constant: TypeAlias = bool | int | float | str | bytes | dt.datetime | dt.date | Decimal | None
"""A constant in the form in which an expression keeps it."""

_NumpyScalar: TypeAlias = np.int64 | np.int32 | np.float64 | np.float32 | np.bool_

Scalar: TypeAlias = Constant | dt.timedelta | _NumpyScalar
"""A constant as users may write it."""

_OF_PANDAS: Final = ("Timestamp", "Timedelta", "NaTType")
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_TYPES: Final[dict[type, ColumnType]] = {
    bool: boolean,
    int: integer,
    float: floating,
    str: string,
    bytes: binary,
    dt.datetime: timestamp,
    dt.date: date,
}


class NoValue:
    """Base of objects that users write but that have no value in a row; errors say where they belong."""

    def belongs(self) -> str:
        """Return the sentence of the error."""
        raise NotImplementedError


def constant_of(value: object, type_: ColumnType | None, site: object) -> tuple[Constant, ColumnType]:
    """Return the kept form of `value`, and its type: `type_`, if that is not None and holds the value.

    Raises ExpressionError, naming the user's line `site`, if no column type holds it.
    """
    if value is None:
        if type_ is None:
            raise ExpressionError(
                f"a null constant needs a type ({site}): write lit(None, 'int'). Whether x is null is "
                "x.is_null(), and not x == None; when(…).then(…) without otherwise is null."
            )
        return None, type_.or_null()
    if isinstance(value, ExprText):
        value.refuse()
    elsewhere = of_another_library(value)
    if elsewhere is not None:
        raise ExpressionError(f"{shown(value)} ({site}) {elsewhere}.")
    if type_ is not None and type_.metadata is not None:
        try:
            return _packed(value, type_), type_.not_null()
        except SchemaError as error:
            raise ExpressionError(f"{shown(value)} ({site}) is no constant: {error}") from error
    value = _python_value(value, site)
    if isinstance(value, dt.timedelta):
        value = value // _MICROSECOND
    if isinstance(value, Decimal):
        return _exact(value, type_, site)
    if type_ is not None and type_.kind == "decimal" and type(value) is int:
        return _exact(Decimal(value), type_, site)
    value_type = next((candidate for python, candidate in _TYPES.items() if type(value) is python), None)
    if value_type is None and isinstance(value, dt.datetime):
        value_type = timestamp
    if isinstance(value, NoValue):
        raise ExpressionError(f"{value.belongs()} ({site})")
    if isinstance(value, list | tuple) and {type(each).__name__ for each in value} == {"Collection"}:
        raise ExpressionError(
            f"{shown(value)} ({site}) is a {type(value).__name__} of collections, no constant. To unite "
            "collections write first.concat(second, third), or first.concat(*others)"
        )
    if value_type is None:
        names = ", ".join([*(python.__name__ for python in _TYPES), "Decimal"])
        raise ExpressionError(
            f"{shown(value)} ({site}) is a {type(value).__name__}, no constant: those are "
            f"{names}.{_instead_of(value)}"
        )
    if type_ is not None and type_.kind == "float" and value_type.kind == "int":
        value, value_type = float(cast(int, value)), floating
    if type_ is not None and type_.kind != value_type.kind:
        raise _of_other_type(value, value_type, type_, site)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ExpressionError(f"{value} ({site}) is out of range: integers are 64 bits wide.")
    if isinstance(value, dt.datetime):
        utc = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
        value = utc.replace(fold=0)  # in UTC it has no meaning, but would be printed
    return cast(Constant, value), value_type


def _packed(value: object, type_: ColumnType) -> bytes:
    """Return the bytes of a value of any kind, or of a nested one; SchemaError if it is not of that type."""
    if type_.is_nested:
        (value,) = checked_values([value], ValueLocation("", "a constant", type_.not_null()))
    return pack(value)


def _instead_of(value: object) -> str:
    """Return what to write in place of a method or function where an expression belongs; "" for others."""
    if isinstance(value, MethodType):
        name = value.__name__
        columns = getattr(getattr(value.__self__, "schema", None), "names", ())
        if name in columns:
            return f" The column of that name is rows[{name!r}]"
        return f" A method is called: write .{name}()"
    if isinstance(value, FunctionType):
        return " Write an expression of columns, such as col.x + 1; a function of rows goes to map(…)"
    return ""


def _of_other_type(value: object, value_type: ColumnType, type_: ColumnType, site: object) -> ExpressionError:
    """Return the error for a constant of another type than `type_`, with the cast if there is one."""
    pair = (value_type.kind, type_.kind)
    is_cast = pair in COLUMN_CASTS or pair in VALUE_CASTS
    cast_to = f": write lit({shown(value)}).cast('{type_.not_null()}')" if is_cast else ""
    return ExpressionError(f"{shown(value)} ({site}) is of type {value_type}, not {type_}{cast_to}.")


def _python_value(value: object, site: object) -> object:
    """Return a scalar of numpy, or a time of pandas, as a Python value.

    Raises ExpressionError for a time that Python cannot hold: with nanoseconds, missing, or a number of
    months.
    """
    python_value: object = None
    if isinstance(value, np.datetime64):
        is_day = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
        exact = value if is_day else value.astype("M8[us]")
        python_value = exact.item() if exact.astype(value.dtype) == value else None  # NaT != NaT
        # For a year that Python cannot hold, numpy returns an int.
        python_value = python_value if isinstance(python_value, dt.date) else None
    elif isinstance(value, np.timedelta64):
        if np.datetime_data(value.dtype)[0] not in ("Y", "M"):
            length = value.astype("m8[us]")
            python_value = length.item() if length.astype(value.dtype) == value else None
    elif isinstance(value, np.generic):
        python_value = value.item()
    elif type(value).__name__ not in _OF_PANDAS:
        return value
    elif not getattr(value, "nanosecond", 0) and not getattr(value, "nanoseconds", 0):
        python = getattr(value, "to_pydatetime", None) or getattr(value, "to_pytimedelta", None)
        python_value = None if python is None or value != value else python()
    if python_value is None:
        raise ExpressionError(
            f"{shown(value)} ({site}) is no constant: times, and differences of times, are exact to the "
            "microsecond.\n  Round it, or write a datetime or timedelta; for what is missing lit(None, "
            "'timestamp')."
        )
    return python_value


def constants_in(values: tuple[Scalar | Iterable[Scalar], ...]) -> Iterable[Scalar]:
    """Return the constants in the parentheses of `is_in`, or in the one list there. A text is a constant."""
    first = values[0] if len(values) == 1 else None
    if isinstance(first, Iterable) and not isinstance(first, str | bytes):
        return first
    return cast("tuple[Scalar, ...]", values)


def _exact(value: Decimal, type_: ColumnType | None, site: object) -> tuple[Constant, ColumnType]:
    """Return a decimal with the digits of `type_`, or with exactly those that it has, and its type."""
    if type_ is None or type_.kind != "decimal":
        digits, exponent = value.as_tuple()[1:]
        if not isinstance(exponent, int):
            raise ExpressionError(f"{value} ({site}) is no decimal: use float('{value}').")
        scale = max(0, -exponent)
        precision = max(1, scale, len(digits) + max(0, exponent))
        if precision > DECIMAL_DIGITS_MAX:
            raise ExpressionError(
                f"{value} ({site}) has more than the {DECIMAL_DIGITS_MAX} digits of a decimal: round it, or "
                "use a float."
            )
        exact_type = decimal(precision, scale)
        if type_ is not None:
            raise _of_other_type(value, exact_type, type_, site)
        type_ = exact_type
    word = decimal_to_word(value, type_)
    if word is None:
        raise ExpressionError(f"{value} ({site}) does not fit {type_}: round it, or give it more digits.")
    return word_to_decimal(word, type_), type_.not_null()


def constant_word(value: Constant, type_: ColumnType, symbols: SymbolTable | None) -> int:
    """Return the word of a constant, 0 for null; of a wide decimal, the number that `split_value` divides.

    With `symbols`, the constant's symbol is pinned there, so that it can be output.
    """
    if value is None:
        return 0
    if type_.kind == "float":
        return float_to_word(cast(float, value))
    if type_.kind == "timestamp":
        return datetime_to_micros(cast(dt.datetime, value))
    if type_.kind == "date":
        return date_to_days(cast(dt.date, value))
    if type_.kind == "decimal":
        return cast(int, decimal_to_word(cast(Decimal, value), type_))
    if type_.is_symbol:
        payload = cast(bytes, value) if type_.metadata is not None else pack(value)
        return symbols.pin_one(unpack(payload)) if symbols is not None else symbol_word(payload)
    return int(cast(int, value))
