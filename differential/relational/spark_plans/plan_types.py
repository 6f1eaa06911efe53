"""Spark's types and constants as ours. Whole numbers of any length have 64 bits, floats too."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from ...columns.column_types import (
    ColumnType,
    array_of,
    binary,
    boolean,
    date,
    decimal,
    floating,
    integer,
    map_of,
    string,
    struct_of,
    timestamp,
)
from ...errors import ExpressionError
from ...expressions.expression import lit
from ..reading.expressions.values import Value

__all__ = ["INTEGERS", "UTC_NAMES", "constant_of", "has_32_bits", "null_of", "type_of"]

INTEGERS: Final = frozenset(("byte", "short", "integer", "long"))
UTC_NAMES: Final = frozenset(("UTC", "Etc/UTC", "GMT", "Z", "+00:00", "Etc/GMT", ""))
_SIMPLE: Final[Mapping[str, ColumnType]] = {
    **dict.fromkeys(INTEGERS, integer),
    "float": floating, "double": floating, "string": string, "boolean": boolean, "date": date,
    "timestamp": timestamp, "timestamp_ntz": timestamp, "binary": binary,
}  # fmt: skip
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def type_of(written: object) -> ColumnType:
    """Return our type for one of Spark's, as JSON; raises ExpressionError if no column has it."""
    if isinstance(written, str):
        if written in _SIMPLE:
            return _SIMPLE[written]
        if written.startswith("decimal("):
            precision, scale = written[8:-1].split(",")
            return decimal(int(precision), int(scale))
    if isinstance(written, Mapping):
        kind = written.get("type")
        if kind == "array":
            return array_of(_part(written, "elementType", "containsNull"))
        if kind == "map":
            return map_of(type_of(written["keyType"]), _part(written, "valueType", "valueContainsNull"))
        fields = written.get("fields")
        if kind == "struct" and isinstance(fields, list):
            return struct_of({str(each["name"]): _part(each, "type", "nullable") for each in fields})
    raise ExpressionError(f"{written} is no type of a column")


def _part(written: Mapping[str, object], name: str, nullable: str) -> ColumnType:
    return type_of(written[name]).or_null(bool(written.get(nullable, True)))


def has_32_bits(written: object) -> bool:
    """Return True for Spark's float, whose arithmetic rounds to 32 bits."""
    return written == "float"


def null_of(type_: ColumnType) -> Value:
    """Return null of a type."""
    return Value(lit(None, type_.or_null()), type_.or_null())


def constant_of(written: object, spark_type: object) -> Value:
    """Return a constant; raises ExpressionError for one of a type that columns do not have."""
    if spark_type == "void":
        return Value(lit(None, integer.or_null()), integer.or_null(), True)
    type_ = type_of(spark_type)
    if written is None:
        return null_of(type_)
    return Value(lit(_value(str(written), type_)), type_)


def _value(written: str, type_: ColumnType) -> int | float | bool | str | Decimal | dt.date | dt.datetime:
    if type_.kind == "int":
        return int(written)
    if type_.kind == "float":
        return float(written.replace("Infinity", "inf"))
    if type_.kind == "bool":
        return written.lower() == "true"
    if type_.kind == "decimal":
        return Decimal(written).quantize(Decimal(1).scaleb(-type_.scale))
    if type_.kind == "date":
        is_day = "-" in written[1:]
        return dt.date.fromisoformat(written) if is_day else (_EPOCH + dt.timedelta(int(written))).date()
    if type_.kind == "timestamp":
        if "-" in written[1:]:
            time = dt.datetime.fromisoformat(written)
            return time if time.tzinfo else time.replace(tzinfo=dt.UTC)
        return _EPOCH + dt.timedelta(microseconds=int(written))
    if type_.kind == "string":
        return written
    raise ExpressionError(f"a constant of type {type_}")
