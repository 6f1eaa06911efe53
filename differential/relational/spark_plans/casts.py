"""Casts, as Spark's ANSI rules have them, written out in ours.

Refused is a cast whose text differs: Spark writes floats and times as Java does. So is a cast to 32 bits of
float. Whole numbers of any length are the 64 bits of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...columns.column_types import ColumnType
from ...errors import ExpressionError
from ...expressions.calls import catalogued, composed
from ...expressions.expression import call_function, lit, when
from ..reading.expressions.values import Value, as_type, computed
from .plan_types import UTC_NAMES, has_32_bits, type_of

__all__ = ["cast_to", "zone_of"]


def cast_to(value: Value, spark_type: object, zone: str, *, is_try: bool) -> Value:
    """Return a value as one of another type; null where that is impossible if `is_try`, else the row fails.

    Raises ExpressionError for a cast that we would compute differently.
    """
    if has_32_bits(spark_type):
        raise ExpressionError("a float of 32 bits is rounded to them in Spark, and not here: write double")
    to = type_of(spark_type)
    if value.is_untyped:
        return as_type(value, to)
    source = value.type
    if source.not_null() == to.not_null():
        return value
    if (source.kind, to.kind) in _WRITTEN_OUT:
        return _WRITTEN_OUT[source.kind, to.kind](value, zone)
    if to.kind not in _POSSIBLE.get(source.kind, ()):
        raise ExpressionError(_why_not(source, to))
    if to.kind == "timestamp" and zone not in UTC_NAMES:
        raise ExpressionError(f"a text becomes a time in UTC here, and the session's zone is {zone}")
    target = to.not_null()
    if is_try:
        return computed(lambda expr: expr.try_cast(target), value)
    return computed(lambda expr: expr.cast(target), value)


_POSSIBLE = {
    "int": ("float", "decimal", "string"),
    "float": ("int", "decimal"),
    "decimal": ("int", "float", "decimal", "string"),
    "bool": ("string",),
    "string": ("int", "float", "decimal", "bool", "date", "timestamp"),
    "date": ("string",),
}


def _why_not(source: ColumnType, to: ColumnType) -> str:
    what = f"a cast of {source.not_null()} to {to.not_null()} is not supported"
    if to.kind == "string" and source.kind == "float":
        return f"{what}: Spark writes 1.0E7. Cast to a decimal first, or write format_number(x, 2)"
    if to.kind == "string" and source.kind == "timestamp":
        return f"{what}: write date_format(t, 'yyyy-MM-dd HH:mm:ss')"
    return what


def _bool_to_number(value: Value, zone: str) -> Value:
    return computed(lambda expr: when(expr).then(lit(1)).when(~expr).then(lit(0)), value)


def _number_to_bool(value: Value, zone: str) -> Value:
    return computed(lambda expr: expr != 0, value)


def _day_of(value: Value, zone: str) -> Value:
    return computed(lambda expr: call_function("date", expr, zone_of(zone)), value)


def _midnight_of(value: Value, zone: str) -> Value:
    if zone not in UTC_NAMES:
        raise ExpressionError(f"a date becomes a time in UTC here, and the session's zone is {zone}")
    return computed(lambda expr: expr.cast("timestamp"), value)


def _seconds_of(value: Value, zone: str) -> Value:
    return computed(catalogued.unix_seconds, value)


def _time_of_seconds(value: Value, zone: str) -> Value:
    return computed(composed.timestamp_seconds, value)


def zone_of(zone: str) -> str | None:
    """Return a zone as our functions take it: None for UTC."""
    return None if zone in UTC_NAMES else zone


_WRITTEN_OUT: Mapping[tuple[str, str], Callable[[Value, str], Value]] = {
    ("bool", "int"): _bool_to_number,
    ("int", "bool"): _number_to_bool,
    ("float", "bool"): _number_to_bool,
    ("decimal", "bool"): _number_to_bool,
    ("timestamp", "date"): _day_of,
    ("date", "timestamp"): _midnight_of,
    ("timestamp", "int"): _seconds_of,
    ("int", "timestamp"): _time_of_seconds,
    ("bool", "float"): lambda value, zone: computed(
        lambda expr: expr.cast("float"), _bool_to_number(value, zone)
    ),
}
