"""Functions of SQL: which of ours each is, and in which order it takes its operands.

sqlglot has a class for most functions, whatever the dialect calls them; others come by their name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from ....columns.column_types import date, floating
from ....errors import ExpressionError
from ....expressions.calls import catalogued, composed
from ....expressions.expression import Expr, LiteralValue, call_function, coalesce, greatest, least, when
from ...spark_functions.by_name import NAMED
from ..texts import SqlText, children_of
from .named import call_by_name
from .values import Value, alike, as_type, computed, met

__all__ = ["FUNCTIONS", "called", "named_function"]

_Read = Callable[[exp.Expression], Value]

_Call = Callable[[SqlText, exp.Expression, _Read], Value]


def called(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    """Return the value of a function that sqlglot has a class for."""
    return FUNCTIONS[type(node)](text, node, read)


def _constant_of(value: Value) -> object:
    if not isinstance(value.expr, LiteralValue):
        raise ExpressionError("takes a constant here")
    return value.expr.value


def _plain(make: Callable[..., Expr], *names: str) -> _Call:  # type: ignore[explicit-any]  # any function
    """Return the reader of a function whose operands have these names in sqlglot's node; a name with "!" is
    that of a constant, one with "?" may be missing.
    """
    bare = [name.rstrip("!?") for name in names]

    def read_call(text: SqlText, node: exp.Expression, read: _Read) -> Value:
        text.parts_of(node, *bare)
        operands: list[Value] = []
        constants: dict[int, object] = {}
        for place, (name, key) in enumerate(zip(names, bare, strict=True)):
            part = node.args.get(key)
            if part is None:
                if "?" in name:
                    break
                raise ExpressionError(f"lacks an operand: {key}")
            value = read(part)
            if "!" in name:
                constants[place] = _constant_of(value)
            else:
                operands.append(value)
        return _computed(make, operands, constants)

    return read_call


def _of_floats(make: Callable[..., Expr], *names: str) -> _Call:  # type: ignore[explicit-any]  # any function
    """Return the reader of a function whose operands are floats: decimals become floats."""

    def built(*exprs: Expr) -> Expr:
        return make(*exprs)

    def read_call(text: SqlText, node: exp.Expression, read: _Read) -> Value:
        text.parts_of(node, *names)
        operands = [read(node.args[name]) for name in names]
        return computed(
            built, *(as_type(each, floating) if each.type.kind == "decimal" else each for each in operands)
        )

    return read_call


def _computed(  # type: ignore[explicit-any]  # any function
    make: Callable[..., Expr], operands: list[Value], constants: Mapping[int, object]
) -> Value:
    def built(*exprs: Expr) -> Expr:
        rest = iter(exprs)
        count = len(exprs) + len(constants)
        return make(*(constants[place] if place in constants else next(rest) for place in range(count)))

    return computed(built, *operands)


def _day(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    """Return a date: of a text, a timestamp, a date. sqlglot writes this around operands of YEAR."""
    text.parts_of(node, "this", "safe")
    return _as_date(read(node.this))


def _as_date(value: Value) -> Value:
    """Return a date; raises ExpressionError for what is none, as a number is none in any dialect."""
    if not value.is_untyped and value.text is None:
        if value.type.kind == "date":
            return value
        if value.type.kind not in ("timestamp", "string", "any"):
            raise ExpressionError(f"takes a date or timestamp; the operand is {value.type}")
    return as_type(value, date)


def _several(make: Callable[..., Expr]) -> _Call:  # type: ignore[explicit-any]  # any number of operands
    def read_call(text: SqlText, node: exp.Expression, read: _Read) -> Value:
        text.parts_of(node, "this", "expressions", "safe", "coalesce", "ignore_nulls")
        nodes = [
            *([node.this] if isinstance(node.this, exp.Expression) else []),
            *children_of(node, "expressions"),
        ]
        values = alike([read(each) for each in nodes])
        if all(each.is_untyped for each in values):
            return values[0]
        return computed(make, *values)

    return read_call


def _concatenated(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    """Return texts or arrays, one after another: `||`, and CONCAT, which in Postgres and DuckDB passes over
    nulls.
    """
    text.parts_of(node, "this", "expression", "expressions", "safe", "coalesce")
    nodes = children_of(node, "expressions") or [node.this, node.args["expression"]]
    values = [read(each) for each in nodes]
    if any(each.type.kind == "array" for each in values) and not node.args.get("coalesce"):
        return computed(catalogued.concat, *values)
    values = [
        computed(lambda expr: expr.cast("string"), each) if each.type.kind != "string" else each
        for each in values
    ]
    if node.args.get("coalesce"):
        values = [computed(lambda expr: expr.fill_null(""), each) for each in values]
    return computed(catalogued.concat, *values)


def _nullif(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    text.parts_of(node, "this", "expression")
    left, right = met([read(node.this), read(node.args["expression"])])
    if left.is_untyped:
        return left
    return computed(
        lambda a, b: when((a == b).fill_null(False)).then(_null_like(a)).otherwise(a), left, right
    )


def _null_like(expr: Expr) -> Expr:
    """Return null of the type of an expression."""
    return when(expr.is_null() & expr.is_not_null()).then(expr)


def _extracted(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    text.parts_of(node, "this", "expression")
    field, time = str(node.this.name), read(node.args["expression"])
    if text.dialect != "spark" and field.lower() in _OTHER_FIELDS:
        return computed(_OTHER_FIELDS[field.lower()], time)
    if text.dialect == "duckdb" and field.lower() in _SECONDS:
        return computed(catalogued.second, time)
    return computed(lambda expr: composed.extract(field, expr), time)


def _from_sunday(expr: Expr) -> Expr:
    """Return 0 (Sunday) to 6, as in Postgres and DuckDB; Spark counts from 1."""
    return call_function("day_of_week", expr) % 7


_OTHER_FIELDS: Final[Mapping[str, Callable[[Expr], Expr]]] = {
    **dict.fromkeys(("dow", "dayofweek", "weekday"), _from_sunday),
    "isodow": lambda expr: call_function("day_of_week", expr),
    "isoyear": lambda expr: call_function("iso_year", expr),
}
"""Fields of EXTRACT that Spark has otherwise, or not."""

_SECONDS: Final = ("second", "sec", "secs", "seconds", "s")
"""Whole ones in DuckDB; in Spark and Postgres they have six digits."""


def _of_duckdb(make: Callable[[Expr], Expr]) -> _Call:
    """Return the reader of a part of a time that only DuckDB has as a function of this sense."""

    def read_call(text: SqlText, node: exp.Expression, read: _Read) -> Value:
        text.parts_of(node, "this")
        if text.dialect != "duckdb":
            raise ExpressionError("is read in texts of the dialect duckdb only: write extract(… FROM …)")
        return computed(make, _as_moment(read(node.this)))

    return read_call


def _as_moment(value: Value) -> Value:
    return value if value.type.kind in ("date", "timestamp") and not value.is_untyped else _as_date(value)


def _is_nan(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    """Return DuckDB's isnan, which is null of null; Spark's is false, and Postgres has none."""
    text.parts_of(node, "this")
    if text.dialect != "duckdb":
        raise ExpressionError("is no function of Postgres: write x = 'NaN'::double precision")
    value = read(node.this)
    if value.type.kind not in ("int", "float", "decimal") and not value.is_untyped:
        raise ExpressionError(f"takes a number; the operand is {value.type}")
    return computed(lambda expr: call_function("is_nan", expr), as_type(value, floating))


def _truncated(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    text.parts_of(node, "this", "unit")
    unit = node.args["unit"].name.lower()
    return computed(lambda expr: composed.date_trunc(unit, expr), read(node.this))


def _moved(sign: int) -> _Call:
    def read_call(text: SqlText, node: exp.Expression, read: _Read) -> Value:
        text.parts_of(node, "this", "expression", "unit")
        unit = node.args.get("unit")
        name = "DAY" if unit is None else unit.name.upper().rstrip("S")
        time, count = read(node.this), read(node.args["expression"])
        is_of_days = text.dialect == "spark" and isinstance(node, exp.TsOrDsAdd)  # date_add and date_sub
        if is_of_days or time.is_untyped or time.type.kind not in ("date", "timestamp"):
            time = _as_date(time)
        days = {"DAY": 1, "WEEK": 7}.get(name)
        months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}.get(name)
        if days is not None:
            return computed(lambda t, n: t.dt.add_days(n * sign * days), time, count)
        if months is None:
            raise ExpressionError(f"moves by days, weeks, months, quarters or years, not by {name.lower()}")
        return computed(lambda t, n: t.dt.add_months(n * sign * months), time, count)

    return read_call


def _months_later(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    text.parts_of(node, "this", "expression")
    time = read(node.this)
    if text.dialect == "spark":
        time = _as_date(time)
    return computed(catalogued.add_months, time, read(node.args["expression"]))


def _days_between(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    text.parts_of(node, "this", "expression", "unit", "date_part_boundary")
    unit = node.args.get("unit")
    name = "day" if unit is None else unit.name.lower()
    return computed(
        lambda end, start: catalogued.date_diff(end, start, name),
        read(node.this),
        read(node.args["expression"]),
    )


def _found_at(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    text.parts_of(node, "this", "substr", "position")
    part, start = _constant_of(read(node.args["substr"])), node.args.get("position")
    at = 1 if start is None else _constant_of(read(start))
    if not isinstance(part, str) or type(at) is not int:
        raise ExpressionError("takes a constant text, and a whole number where the search begins")
    return computed(lambda expr: composed.locate(part, expr, at), read(node.this))


def _substring(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    text.parts_of(node, "this", "start", "length")
    if node.args.get("start") is None:
        raise ExpressionError("takes a text, and the place where its part begins")
    start = _constant_of(read(node.args["start"]))
    length = node.args.get("length")
    count = 1 << 30 if length is None else _constant_of(read(length))
    if type(start) is not int or type(count) is not int:
        raise ExpressionError("takes whole numbers as constants")
    if text.dialect != "spark" and (count < 0 or start == 0 or (start < 0 and text.dialect == "postgres")):
        raise ExpressionError("takes places from 1 on here, and no negative length")
    return computed(lambda expr: composed.substring(expr, start, count), read(node.this))


def _end(make: Callable[[Expr, int], Expr]) -> _Call:
    """Return the reader of LEFT or RIGHT. Of a negative count Spark makes '', others leave characters out."""

    def read_call(text: SqlText, node: exp.Expression, read: _Read) -> Value:
        text.parts_of(node, "this", "expression")
        count = _constant_of(read(node.args["expression"]))
        if type(count) is not int or (count < 0 and text.dialect != "spark"):
            raise ExpressionError("takes a whole number that is a constant, and here no negative one")
        return computed(lambda expr: make(expr, count), read(node.this))

    return read_call


def _trimmed(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    text.parts_of(node, "this", "expression", "position")
    side, characters = str(node.args.get("position") or "BOTH").upper(), node.args.get("expression")
    make = {"LEADING": composed.ltrim, "TRAILING": composed.rtrim}.get(side, composed.trim)
    wanted = None if characters is None else _constant_of(read(characters))
    if wanted is not None and not isinstance(wanted, str):
        raise ExpressionError("takes a constant text of characters")
    return computed(lambda expr: make(expr, wanted), read(node.this))


def _padded(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    text.parts_of(node, "this", "expression", "fill_pattern", "is_left")
    width = _constant_of(read(node.args["expression"]))
    fill = node.args.get("fill_pattern")
    pad = catalogued.lpad if node.args.get("is_left") else catalogued.rpad
    filler = " " if fill is None else str(_constant_of(read(fill)))
    if type(width) is not int:
        raise ExpressionError("takes a whole number as its width")
    return computed(lambda expr: catalogued.left(pad(expr, width, filler), width), read(node.this))


def _whole(make: Callable[[Expr], Expr]) -> _Call:
    """Return the reader of FLOOR or CEIL, which make whole numbers of floats in Spark alone."""

    def read_call(text: SqlText, node: exp.Expression, read: _Read) -> Value:
        text.parts_of(node, "this")
        value = computed(make, read(node.this))
        if text.dialect == "spark" and value.type.kind == "float":
            return computed(lambda expr: expr.cast("int"), value)
        return value

    return read_call


def _truncated_number(expr: Expr) -> Expr:
    return when(expr < 0).then(catalogued.ceil(expr)).otherwise(catalogued.floor(expr))


def _formatted(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    """Return `format_string`, and `printf`, which is another name for it in Spark."""
    text.parts_of(node, "this", "expressions")
    parts = [
        *([node.this] if isinstance(node.this, exp.Expression) else []),
        *children_of(node, "expressions"),
    ]
    if text.dialect != "spark":
        raise ExpressionError("has the directives of another language in each dialect; write concat(…)")
    if not parts:
        raise ExpressionError("lacks its format")
    pattern, values = _constant_of(read(parts[0])), [read(each) for each in parts[1:]]
    return computed(lambda *exprs: composed.format_string(str(pattern), *exprs), *values)


FUNCTIONS: Final[dict[type[exp.Expression], _Call]] = {
    exp.TsOrDsToDate: _day,
    exp.Coalesce: _several(coalesce),
    exp.Greatest: _several(greatest),
    exp.Least: _several(least),
    exp.Concat: _concatenated,
    exp.DPipe: _concatenated,
    exp.Format: _formatted,
    exp.Nullif: _nullif,
    exp.Extract: _extracted,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.TsOrDsAdd: _moved(1),
    exp.DateAdd: _moved(1),
    exp.DateSub: _moved(-1),
    exp.DateDiff: _days_between,
    exp.StrPosition: _found_at,
    exp.Substring: _substring,
    exp.Pad: _padded,
    exp.AddMonths: _months_later,
    exp.BitwiseAnd: _plain(catalogued.bitwise_and, "this", "expression"),
    exp.BitwiseOr: _plain(catalogued.bitwise_or, "this", "expression"),
    exp.BitwiseXor: _plain(catalogued.bitwise_xor, "this", "expression"),
    exp.BitwiseNot: _plain(catalogued.bitwise_not, "this"),
    exp.Upper: _plain(catalogued.upper, "this"),
    exp.Lower: _plain(catalogued.lower, "this"),
    exp.Length: _plain(catalogued.length, "this"),
    exp.Reverse: _plain(catalogued.reverse, "this"),
    exp.Trim: _trimmed,
    exp.Left: _end(catalogued.left),
    exp.Right: _end(catalogued.right),
    exp.Initcap: _plain(catalogued.initcap, "this"),
    exp.Replace: _plain(catalogued.replace, "this", "expression!", "replacement!"),
    exp.Repeat: _plain(catalogued.repeat, "this", "times!"),
    exp.SplitPart: _plain(catalogued.split_part, "this", "delimiter!", "part_index!"),
    exp.Round: _plain(catalogued.round, "this", "decimals!?"),
    exp.Floor: _whole(catalogued.floor),
    exp.Ceil: _whole(catalogued.ceil),
    exp.Abs: _plain(lambda expr: expr.abs(), "this"),
    exp.Sign: _plain(catalogued.signum, "this"),
    exp.Sqrt: _of_floats(catalogued.sqrt, "this"),
    exp.Exp: _of_floats(catalogued.exp, "this"),
    exp.Ln: _of_floats(catalogued.log, "this"),
    exp.Pow: _of_floats(catalogued.power, "this", "expression"),
    exp.Year: _plain(catalogued.year, "this"),
    exp.Quarter: _plain(catalogued.quarter, "this"),
    exp.Month: _plain(catalogued.month, "this"),
    exp.Day: _plain(catalogued.day, "this"),
    exp.DayOfWeek: _of_duckdb(_from_sunday),
    exp.DayOfWeekIso: _of_duckdb(lambda expr: call_function("day_of_week", expr)),
    exp.IsNan: _is_nan,
    exp.DayOfYear: _plain(catalogued.dayofyear, "this"),
    exp.Hour: _plain(catalogued.hour, "this"),
    exp.Minute: _plain(catalogued.minute, "this"),
    exp.Second: _plain(catalogued.second, "this"),
    exp.LastDay: _plain(catalogued.last_day, "this"),
    exp.UnixSeconds: _plain(catalogued.unix_seconds, "this"),
    exp.UnixMillis: _plain(composed.unix_millis, "this"),
    exp.UnixMicros: _plain(composed.unix_micros, "this"),
    exp.UnixDate: _plain(composed.unix_date, "this"),
    exp.MD5: _plain(catalogued.md5, "this"),
    exp.Trunc: _plain(_truncated_number, "this"),
}


def named_function(text: SqlText, node: exp.Anonymous, read: _Read) -> Value:
    """Return the value of a function that is read by its name."""
    text.parts_of(node, "this", "expressions")
    name = str(node.this).lower()
    value = call_by_name(text, node, name, read)
    if value is not None:
        return value
    if name in NAMED["spark"]:
        raise ExpressionError(_elsewhere(name, text.dialect))
    raise text.error(node, f"there is no function {name}{_INSTEAD.get(name, '')}")


_INSTEAD: Final = {
    "hash": " with Spark's values: write xxhash64(x)",
    "json_tuple": ": write get_json_object(x, '$.name')",
    "schema_of_json": ": write the schema, as in from_json(x, 'a int, b string')",
}


def _elsewhere(name: str, dialect: str) -> str:
    called = {"postgres": "Postgres", "duckdb": "DuckDB"}[dialect]
    return (
        f"{name} is read in texts of the dialect spark only, as {called} has none or another: "
        "write this query in that dialect"
    )
