"""Types and intervals, as SQL writes them."""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple

from sqlglot import exp

from ....columns.column_types import (
    ColumnType,
    any_value,
    binary,
    boolean,
    date,
    decimal,
    floating,
    integer,
    string,
    timestamp,
)
from ....errors import ExpressionError, SchemaError
from ....expressions.expression import Expr, LiteralValue, lit
from ....expressions.functions.times import DAY_MICROS
from ..texts import SqlText, children_of
from .values import Value, as_type, computed

__all__ = ["DAY_MICROS", "Interval", "column_type", "interval_of", "later"]

_TYPES: Final[dict[str, ColumnType]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "MEDIUMINT"), integer),
    **dict.fromkeys(("FLOAT", "DOUBLE"), floating),
    **dict.fromkeys(("VARCHAR", "TEXT", "CHAR", "NCHAR", "NVARCHAR", "NAME"), string),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME"), timestamp),
    **dict.fromkeys(("BINARY", "VARBINARY"), binary),
    **dict.fromkeys(("VARIANT", "JSON", "JSONB"), any_value),
    "BOOLEAN": boolean,
    "DATE": date,
}
_INSTEAD: Final = dict.fromkeys(("UUID", "INET", "ENUM", "TIME", "TIMETZ"), ": write VARCHAR")
_DECIMAL_DEFAULTS: Final = {"spark": (10, 0), "duckdb": (18, 3), "postgres": (18, 6)}


def column_type(text: SqlText, node: exp.Expression) -> ColumnType:
    """Return the type that a text names; raises SqlError for types that columns do not have."""
    name = node.this.value if isinstance(node, exp.DataType) else ""
    if name == "ARRAY":
        return any_value
    if name != "DECIMAL" and name not in _TYPES:
        named = name or text.written(node)
        raise text.error(node, f"{named} is no type of a column{_INSTEAD.get(name, '')}")
    text.parts_of(node, "this", "expressions", "nested")
    params = [int(each.this.this) for each in children_of(node, "expressions") if each.this.this.isdigit()]
    if name == "DECIMAL":
        precision, scale = (*params, 0)[:2] if params else _DECIMAL_DEFAULTS[text.dialect]
        try:
            return decimal(precision, scale)
        except SchemaError as error:
            raise text.error(node, str(error)) from None
    return _TYPES[name]


class Interval(NamedTuple):
    """A length of time: months, whose days differ, and microseconds."""

    months: int
    micros: int


_UNITS: Final = {
    "YEAR": Interval(12, 0), "QUARTER": Interval(3, 0), "MONTH": Interval(1, 0),
    "WEEK": Interval(0, 7 * DAY_MICROS),
    "DAY": Interval(0, DAY_MICROS), "HOUR": Interval(0, 3_600_000_000), "MINUTE": Interval(0, 60_000_000),
    "SECOND": Interval(0, 1_000_000), "MILLISECOND": Interval(0, 1_000), "MICROSECOND": Interval(0, 1),
}  # fmt: skip


def interval_of(text: SqlText, node: exp.Interval) -> Interval:
    """Return the length of an INTERVAL; raises SqlError for one that is no constant."""
    text.parts_of(node, "this", "unit")
    amount, unit = node.this, node.args.get("unit")
    sign = 1
    while isinstance(amount, exp.Neg | exp.Paren):
        sign, amount = (-sign if isinstance(amount, exp.Neg) else sign), amount.this
    if not isinstance(amount, exp.Literal):
        raise text.error(node, f"{text.written(node)}: an interval is a constant here")
    words = str(amount.this).split()
    words = words if unit is None else [*words, unit.name]
    months = micros = 0
    for number, name in zip(words[::2], words[1::2], strict=False):
        entry = _UNITS.get(name.upper().rstrip("S"))
        if entry is None or not number.lstrip("+-").isdigit() or len(words) % 2:
            raise text.error(node, f"{text.written(node)}: write INTERVAL '3' MONTH, or another whole number")
        months, micros = months + int(number) * entry.months, micros + int(number) * entry.micros
    return Interval(sign * months, sign * micros)


def later(time: Value, by: Interval, sign: int) -> Value:
    """Return a date or timestamp that much later; raises ExpressionError for other types."""
    if time.text is not None:
        time = as_type(time, timestamp if ":" in time.text else date)
    if time.is_untyped:
        time = as_type(time, timestamp)
    if time.type.kind not in ("date", "timestamp"):
        raise ExpressionError(f"an INTERVAL is added to a date or a timestamp, and not to {time.type}")
    months, micros = sign * by.months, sign * by.micros
    if time.type.kind == "date" and micros % DAY_MICROS:
        time = as_type(time, timestamp)
    if isinstance(time.expr, LiteralValue) and type(time.expr.value) is dt.date:
        day = _months_later(time.expr.value, months) + dt.timedelta(days=micros // DAY_MICROS)
        return Value(lit(day), date)

    def moved(expr: Expr) -> Expr:
        expr = expr.dt.add_months(months) if months else expr
        if not micros:
            return expr
        return expr.dt.add_days(micros // DAY_MICROS) if time.type.kind == "date" else expr + micros

    return computed(moved, time)


def _months_later(day: dt.date, months: int) -> dt.date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = ((dt.date(year + month // 11, (month + 1) % 12 + 1, 1)) - dt.timedelta(days=1)).day
    return dt.date(year, month + 1, min(day.day, last))
