"""Times in zones, formats and intervals of Spark's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...columns.column_types import integer, timestamp
from ...errors import ExpressionError
from ...expressions.calls import catalogued, composed
from ...expressions.expression import Expr, lit
from ..reading.expressions.values import Value, as_type, computed
from ..spark_functions.formats import strftime_of
from .casts import cast_to, zone_of
from .plan_nodes import SparkNode
from .plan_types import UTC_NAMES

__all__ = ["TIMES", "Reads", "constant_text"]

Reads = Callable[[SparkNode], Value]

_MICROS_OF_DAY: Final = 86_400_000_000


def constant_text(value: Value) -> str:
    """Return a text that is a constant; raise ExpressionError for all else."""
    if value.text is None:
        raise ExpressionError("takes a constant text here")
    return value.text


def _of_time(make: Callable[[Expr, str | None], Expr]) -> Callable[[SparkNode, Reads], Value]:
    def read(node: SparkNode, reads: Reads) -> Value:
        zone = zone_of(node.text("timeZoneId"))
        return computed(lambda t: make(t, zone), reads(node.children[0]))

    return read


def _truncated(node: SparkNode, reads: Reads) -> Value:
    unit, zone = constant_text(reads(node.children[0])), zone_of(node.text("timeZoneId"))
    return computed(lambda t: composed.date_trunc(unit.lower(), t, zone), reads(node.children[1]))


def _formatted(node: SparkNode, reads: Reads) -> Value:
    written, zone = strftime_of(constant_text(reads(node.children[1]))), zone_of(node.text("timeZoneId"))
    return computed(lambda t: catalogued.date_format(t, written, zone), reads(node.children[0]))


def _parsed(spark_type: str) -> Callable[[SparkNode, Reads], Value]:
    def read(node: SparkNode, reads: Reads) -> Value:
        value, zone = reads(node.children[0]), node.text("timeZoneId")
        if len(node.children) == 1 or value.type.kind != "string":
            return cast_to(value, spark_type, zone, is_try=False)
        if zone not in UTC_NAMES and spark_type == "timestamp":
            raise ExpressionError(f"a text becomes a time in UTC here, and the session's zone is {zone}")
        written = strftime_of(constant_text(reads(node.children[1])))
        make = catalogued.to_date if spark_type == "date" else catalogued.to_timestamp
        return computed(lambda text: make(text, written), value)

    return read


def _from_seconds(node: SparkNode, reads: Reads) -> Value:
    written = strftime_of(constant_text(reads(node.children[1])))
    zone = zone_of(node.text("timeZoneId"))
    return computed(
        lambda seconds: catalogued.date_format(composed.timestamp_seconds(seconds), written, zone),
        reads(node.children[0]),
    )


def _to_seconds(node: SparkNode, reads: Reads) -> Value:
    value = reads(node.children[0])
    if value.type.kind == "string":
        raise ExpressionError("of a text is not supported: write to_timestamp(text, format) in it")
    value = value if value.type.kind == "timestamp" else as_type(value, timestamp)
    return computed(composed.unix_timestamp, value)


def _later_by_months(node: SparkNode, reads: Reads) -> Value:
    months = _interval(node.children[1], "month")
    value = reads(node.children[0])
    if value.type.kind == "timestamp":
        raise ExpressionError("adds months to dates: cast the time to a date, or add days")
    return computed(lambda t: t.dt.add_months(months), value)


def _later_by_micros(node: SparkNode, reads: Reads) -> Value:
    micros, zone = _interval(node.children[1], "micros"), node.text("timeZoneId")
    if zone not in UTC_NAMES and abs(micros) >= _MICROS_OF_DAY:
        raise ExpressionError(f"days have 24 hours here, and the session's zone is {zone}")
    return computed(lambda t: t + micros, as_type(reads(node.children[0]), timestamp))


def _days(node: SparkNode, reads: Reads) -> Value:
    return Value(lit(_interval(node.children[0], "micros") // _MICROS_OF_DAY), integer)


def _interval(node: SparkNode, unit: str) -> int:
    """Return a constant interval in months or microseconds."""
    if node.kind == "UnaryMinus":
        return -_interval(node.children[0], unit)
    spark_type = str(node.fields.get("dataType"))
    is_months = spark_type.startswith(("interval year", "interval month"))
    if node.kind != "Literal" or not spark_type.startswith("interval ") or is_months != (unit == "month"):
        raise ExpressionError("takes an interval that is a constant of months, or of days and less")
    return int(str(node.fields["value"]))


def _in_zone(make: Callable[[Expr, str], Expr]) -> Callable[[SparkNode, Reads], Value]:
    def read(node: SparkNode, reads: Reads) -> Value:
        zone = constant_text(reads(node.children[1]))
        return computed(lambda t: make(t, zone), reads(node.children[0]))

    return read


def _seconds_with_digits(t: Expr, zone: str | None) -> Expr:
    return composed.extract("second", t, zone)


TIMES: Final[Mapping[str, Callable[[SparkNode, Reads], Value]]] = {
    "Hour": _of_time(catalogued.hour),
    "Minute": _of_time(catalogued.minute),
    "Second": _of_time(catalogued.second),
    "SecondWithFraction": _of_time(_seconds_with_digits),
    "TruncTimestamp": _truncated,
    "DateFormatClass": _formatted,
    "ParseToDate": _parsed("date"),
    "ParseToTimestamp": _parsed("timestamp"),
    "FromUnixTime": _from_seconds,
    "UnixTimestamp": _to_seconds,
    "ToUnixTimestamp": _to_seconds,
    "DateAddYMInterval": _later_by_months,
    "TimestampAddYMInterval": _later_by_months,
    "TimeAdd": _later_by_micros,
    "TimestampAddInterval": _later_by_micros,
    "ExtractANSIIntervalDays": _days,
    "FromUTCTimestamp": _in_zone(catalogued.from_utc_timestamp),
    "ToUTCTimestamp": _in_zone(catalogued.to_utc_timestamp),
}
