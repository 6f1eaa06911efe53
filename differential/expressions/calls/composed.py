"""Functions over columns written in terms of others: `dd.trim(col.name)`, `dd.if_else(c, x, y)`.

They have PySpark's names. The functions of the catalogue itself are in `catalogued.py`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from differential.errors import ExpressionError
from differential.expressions.expression import (
    Aliased,
    ColumnRef,
    Expr,
    ExprLike,
    as_expr,
    call_function,
    check_columns,
    lit,
    when,
)
from differential.expressions.functions.families.formats import formatted_constants
from differential.expressions.functions.families.json_types import type_of_json, type_text_of
from timely.user_code.call_site import call_site

__all__ = [
    "abs",
    "concat_ws",
    "date_part",
    "date_trunc",
    "datediff",
    "dayname",
    "dayofweek",
    "extract",
    "format_string",
    "from_json",
    "from_unixtime",
    "if_else",
    "isnan",
    "isnull",
    "json_tuple",
    "locate",
    "ltrim",
    "mod",
    "monthname",
    "nanvl",
    "nullif",
    "nvl2",
    "position",
    "rtrim",
    "schema_of_json",
    "struct",
    "substring",
    "timestamp_micros",
    "timestamp_millis",
    "timestamp_seconds",
    "trim",
    "trunc",
    "unix_date",
    "unix_micros",
    "unix_millis",
    "unix_timestamp",
    "weekday",
    "xxhash64_as",
]

_UNITS: Final = {
    **dict.fromkeys(("yyyy", "yy"), "year"),
    **dict.fromkeys(("mon", "mm"), "month"),
    "dd": "day",
}
"""Spark's other words for units of time."""

_FIELDS: Final = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    "yearofweek": "iso_year",
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "week"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    "doy": "day_of_year",
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "day_of_week"),
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("second", "s", "sec", "secs", "seconds"), "second"),
}
"""What `extract` calls, by Spark's names of fields."""


def trim(text: ExprLike, characters: str | None = None) -> Expr:
    """Without the spaces, or the characters, at both ends; `x.str.strip()` takes all white space off."""
    return call_function("strip", text, " " if characters is None else characters)


def ltrim(text: ExprLike, characters: str | None = None) -> Expr:
    """Without the spaces, or the characters, at the beginning."""
    return call_function("lstrip", text, " " if characters is None else characters)


def rtrim(text: ExprLike, characters: str | None = None) -> Expr:
    """Without the spaces, or the characters, at the end."""
    return call_function("rstrip", text, " " if characters is None else characters)


def substring(text: ExprLike, position: int, length: int) -> Expr:
    """`length` characters from `position` on, counted from 1, or from the end if negative."""
    return _column("substring", text).substr(position, length)


def concat_ws(separator: str, *values: ExprLike) -> Expr:
    """The texts with a separator between them; nulls are left out."""
    check_columns("concat_ws", values, f"{separator!r}, ")
    return call_function("concat_ws", separator, *values)


def format_string(format: str, *values: ExprLike) -> Expr:
    """The values put into a text, as Java does in Spark: `format_string("%s has %,d", col.name, col.n)`."""
    check_columns("format_string", values, f"{format!r}, ")
    if values:
        return call_function("format_string", format, *values)
    try:
        return lit(formatted_constants(format))
    except ValueError as error:
        raise ExpressionError(
            f"format_string({format!r}) ({call_site()}) cannot be computed: {error}"
        ) from None


def xxhash64_as(types: str, *values: ExprLike) -> Expr:
    """The hash that Spark gives values of these types: `xxhash64_as("int, string", col.k, col.s)`."""
    check_columns("xxhash64_as", values, f"{types!r}, ")
    return call_function("xxhash64_as", types, *values)


def abs(x: ExprLike) -> Expr:
    """The value without its sign."""
    return _column("abs", x).abs()


def mod(x: ExprLike, divisor: ExprLike) -> Expr:
    """The remainder of a division that rounds down, as `%`: it has the sign of the divisor."""
    return _column("mod", x) % divisor


def isnan(x: ExprLike) -> Expr:
    """True where the value is not a number; false for null, as in Spark. `x.is_nan()` is null there."""
    return call_function("is_nan", x).fill_null(False)


def isnull(x: ExprLike) -> Expr:
    """True where the value is null."""
    return _column("isnull", x).is_null()


def nullif(value: ExprLike, unwanted: ExprLike) -> Expr:
    """`value`, but null where it equals `unwanted`."""
    check_columns("nullif", [value])
    expr = as_expr(value)
    return when((expr != unwanted).fill_null(True)).then(expr)


def if_else(condition: ExprLike, value: ExprLike, otherwise: ExprLike) -> Expr:
    """`value` where `condition` is true, else `otherwise`."""
    return when(condition).then(value).otherwise(otherwise)


def date_trunc(unit: str | Expr, t: ExprLike, zone: str | None = None) -> Expr:
    """The beginning of the year, quarter, month, week, day, hour, … that the time is in."""
    if isinstance(unit, Expr) and isinstance(t, str):
        raise ExpressionError(
            f"date_trunc({unit!r}, {t!r}) ({call_site()}): the unit comes first. "
            f"Write date_trunc({t!r}, {unit!r})"
        )
    return call_function("date_trunc", t, _unit(unit), zone)


def trunc(t: ExprLike, unit: str, zone: str | None = None) -> Expr:
    """The first day of the year, quarter, month or week that the time is in, a date."""
    return call_function("date_trunc", call_function("date", t, zone), _unit(unit))


def extract(field: str, t: ExprLike, zone: str | None = None) -> Expr:
    """A part of a time, by its name: 'YEAR', 'DOW' and others; seconds have six digits, as in Spark."""
    part = _FIELDS.get(field.lower())
    if part is None:
        raise ExpressionError(
            f"extract({field!r}, …) ({call_site()}): there is no such field. There are: {', '.join(_FIELDS)}."
        )
    expr = _column("extract", t)
    if part == "dayofweek":
        return dayofweek(expr, zone)
    return _seconds(expr, zone) if part == "second" else call_function(part, expr, zone)


def date_part(field: str, t: ExprLike, zone: str | None = None) -> Expr:
    """The same as `extract`."""
    return extract(field, t, zone)


def dayofweek(t: ExprLike, zone: str | None = None) -> Expr:
    """1 (Sunday) to 7 (Saturday), as in Spark; `day_of_week` begins with Monday."""
    return call_function("day_of_week", t, zone) % 7 + 1


def weekday(t: ExprLike, zone: str | None = None) -> Expr:
    """0 (Monday) to 6 (Sunday), as in Spark."""
    return call_function("day_of_week", t, zone) - 1


def dayname(t: ExprLike, zone: str | None = None) -> Expr:
    """The first three letters of the day of the week: 'Mon'."""
    return call_function("format", t, "%a", zone)


def monthname(t: ExprLike, zone: str | None = None) -> Expr:
    """The first three letters of the month: 'Jan'."""
    return call_function("format", t, "%b", zone)


def from_unixtime(seconds: ExprLike, format: str = "%Y-%m-%d %H:%M:%S", zone: str | None = None) -> Expr:
    """The time so many seconds after 1970-01-01 in UTC, as text."""
    return call_function("format", timestamp_seconds(seconds), format, zone)


def timestamp_seconds(seconds: ExprLike) -> Expr:
    """The time so many seconds after 1970-01-01 in UTC."""
    return (_column("timestamp_seconds", seconds) * 1_000_000).cast("timestamp")


def timestamp_millis(milliseconds: ExprLike) -> Expr:
    """The time so many milliseconds after 1970-01-01 in UTC."""
    return (_column("timestamp_millis", milliseconds) * 1_000).cast("timestamp")


def timestamp_micros(microseconds: ExprLike) -> Expr:
    """The time so many microseconds after 1970-01-01 in UTC."""
    return _column("timestamp_micros", microseconds).cast("timestamp")


def unix_millis(t: ExprLike) -> Expr:
    """The whole milliseconds from 1970-01-01 in UTC to a timestamp."""
    return _column("unix_millis", t).cast("timestamp").cast("int") // 1_000


def unix_micros(t: ExprLike) -> Expr:
    """The microseconds from 1970-01-01 in UTC to a timestamp."""
    return _column("unix_micros", t).cast("timestamp").cast("int")


def unix_timestamp(t: ExprLike) -> Expr:
    """The whole seconds from 1970-01-01 in UTC, towards zero, as in Spark; `unix_seconds` rounds down."""
    micros = unix_micros(t)
    return when(micros < 0).then(-(-micros // 1_000_000)).otherwise(micros // 1_000_000)


def unix_date(day: ExprLike) -> Expr:
    """The days from 1970-01-01 to a date."""
    return _column("unix_date", day).cast("date").cast("int")


def locate(part: str, text: ExprLike, start: int = 1) -> Expr:
    """Where `part` begins in `text`, at `start` or later, counted from 1; 0: nowhere."""
    return call_function("instr", _column("locate", text), part, None if start == 1 else start)


def position(part: str, text: ExprLike, start: int = 1) -> Expr:
    """The same as `locate`."""
    return locate(part, text, start)


def nanvl(x: ExprLike, otherwise: ExprLike) -> Expr:
    """`x`, but `otherwise` where `x` is not a number."""
    expr = _column("nanvl", x)
    return when(expr.is_nan()).then(otherwise).otherwise(expr)


def nvl2(x: ExprLike, value: ExprLike, otherwise: ExprLike) -> Expr:
    """`value` where `x` is not null, else `otherwise`."""
    return when(_column("nvl2", x).is_not_null()).then(value).otherwise(otherwise)


def struct(*columns: ExprLike, **named: ExprLike) -> Expr:
    """A struct of columns, called as they are, of expressions with an `alias`, and of others by name."""
    fields: dict[str, ExprLike] = {}
    for column in columns:
        name = getattr(column, "name", None)
        if not isinstance(column, ColumnRef | Aliased) or not isinstance(name, str):
            raise ExpressionError(
                f"struct({column!r:.80}) ({call_site()}): a field needs a name: write "
                "struct(total=col.x + 1), or (col.x + 1).alias('total')"
            )
        fields[name] = column
    fields |= named
    if len(fields) < len(columns) + len(named) or not fields:
        raise ExpressionError(f"struct(…) ({call_site()}) needs fields, with different names")
    return call_function("named_struct", *(part for field in fields.items() for part in field))


def from_json(text: ExprLike, schema: object) -> Expr:
    """The value of a text of JSON, of a type, or with the columns of a schema as fields of a struct.

    Each part may be null, and is where it does not fit. `schema`: "a: int, b: array<string>", SQL's "a INT,
    b ARRAY<STRING>", "array<int>", a Schema, or a type of Spark or Arrow.
    """
    return call_function("from_json", text, type_text_of(schema))


def json_tuple(text: ExprLike, *names: str) -> list[Aliased]:
    """What is in a text of JSON under each name, as texts in columns c0, c1, …: `select(*json_tuple(…))`."""
    for name in names:
        if "'" in name:
            raise ExpressionError(f"json_tuple(…, {name!r:.60}) ({call_site()}): names are texts without '")
    return [
        call_function("get_json_object", text, f"$['{name}']").alias(f"c{place}")
        for place, name in enumerate(names)
    ]


def schema_of_json(text: str) -> str:
    """The type of a text of JSON, for `from_json`: `schema_of_json('{"a": [1]}')` is 'struct<a: array<int>>'.

    Raises ExpressionError for a text that is no JSON.
    """
    try:
        return str(type_of_json(text))
    except ValueError as error:
        raise ExpressionError(f"schema_of_json ({call_site()}): {error}") from None


def datediff(end: ExprLike, start: ExprLike) -> Expr:
    """The number of days that begin after `start` and no later than `end`."""
    return call_function("date_diff", end, start)


def _column(name: str, operand: ExprLike) -> Expr:
    """Return the operand of the function `name`; raises ExpressionError for a bare text."""
    check_columns(name, [operand])
    return as_expr(operand)


def _unit(unit: object) -> object:
    """Return a unit of time by our name for it; Spark writes 'MONTH', 'mon' and 'mm'."""
    return _UNITS.get(unit.lower(), unit.lower()) if isinstance(unit, str) else unit


def _seconds(t: Expr, zone: str | None) -> Expr:
    micros = call_function("second", t, zone) * 1_000_000 + call_function("microsecond", t, zone)
    return (micros.cast("decimal(8, 0)") * lit(Decimal("0.000001"))).cast("decimal(8, 6)")
