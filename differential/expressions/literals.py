"""Which constants can stand in an expression, and which word is each?

Python                        column type     kept as
bool, numpy bool              bool            bool
int, numpy integer            int             int (64 bits)
float, numpy floating         float           float
str, bytes                    string, bytes   itself
datetime                      timestamp       datetime in UTC (without a zone: read as UTC)
timedelta                     int             microseconds, to be added to timestamps
None with a stated type       that type?      None
list, dict, stated as any     any             its msgpack bytes
"""

from __future__ import annotations

import datetime as dt
from typing import Final, TypeAlias, cast

import numpy as np

from differential.columns.column_types import (
    ColumnType,
    Kind,
    any_value,
    binary,
    boolean,
    floating,
    integer,
    string,
    timestamp,
)
from differential.columns.float_words import float_to_word
from differential.columns.rows import datetime_to_micros
from differential.columns.symbols import SymbolTable, pack, symbol_word, unpack
from differential.errors import ExpressionError, SchemaError, shown

__all__ = ["Constant", "Scalar", "constant_of", "constant_word"]

Constant: TypeAlias = bool | int | float | str | bytes | dt.datetime | None
"""A constant in its kept form."""

_NumpyScalar: TypeAlias = np.int64 | np.int32 | np.float64 | np.float32 | np.bool_

Scalar: TypeAlias = Constant | dt.timedelta | _NumpyScalar
"""What a user may write for a constant."""

_TYPES: Final[dict[type, ColumnType]] = {
    bool: boolean,
    int: integer,
    float: floating,
    str: string,
    bytes: binary,
    dt.datetime: timestamp,
}


def constant_of(value: object, type_: ColumnType | None, site: object) -> tuple[Constant, ColumnType]:
    """The kept form of `value` and its type, which is `type_` if that is given and holds the value.

    Raises ExpressionError, naming the user's line `site`, if no column type does.
    """
    if value is None:
        if type_ is None:
            raise ExpressionError(f"a null constant needs a type ({site}): write lit(None, 'int').")
        return None, type_.or_null()
    if type_ is not None and type_.kind == "any":
        try:
            return pack(value), any_value
        except SchemaError as error:
            raise ExpressionError(f"{shown(value)} ({site}) is no constant: {error}") from error
    if isinstance(value, np.generic):
        value = cast(object, value.item())
    if isinstance(value, dt.timedelta):
        value = value // dt.timedelta(microseconds=1)
    found = next((known for python, known in _TYPES.items() if type(value) is python), None)
    if found is None and isinstance(value, dt.datetime):
        found = timestamp
    if found is None:
        known = ", ".join(python.__name__ for python in _TYPES)
        raise ExpressionError(
            f"{shown(value)} ({site}) is a {type(value).__name__}, no constant: those are {known}."
        )
    if type_ is not None and type_.kind == "float" and found.kind == "int":
        value, found = float(cast(int, value)), floating
    if type_ is not None and type_.kind != found.kind:
        raise ExpressionError(f"{shown(value)} ({site}) is a {found}, not a {type_}: use cast.")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ExpressionError(f"{value} ({site}) is out of range: integers are 64 bits wide.")
    if isinstance(value, dt.datetime):
        utc = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
        value = utc.replace(fold=0)  # says nothing in UTC, but would be printed
    return cast(Constant, value), found


def constant_word(value: Constant, kind: Kind, symbols: SymbolTable | None) -> int:
    """The word of a constant (0 for null), entered into `symbols`, if given, so that it can be output."""
    if value is None:
        return 0
    if kind == "float":
        return float_to_word(cast(float, value))
    if kind == "timestamp":
        return datetime_to_micros(cast(dt.datetime, value))
    if kind in ("string", "bytes", "any"):
        payload = cast(bytes, value) if kind == "any" else pack(value)
        return symbols.intern_one(unpack(payload)) if symbols is not None else symbol_word(payload)
    return int(cast(int, value))
