"""Expressions over the columns of a query, each in two forms: ours, and SQL.

What is drawn stays within what both compute exactly: whole numbers far from 64 bits, floats that are small
multiples of a power of two. Where the two say the same in other words, the SQL form spells our meaning out:

    min_of(a, b)   null if one of them is: `least` passes nulls over
    a // 3, a % 3  round down: SQL rounds towards zero
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from hypothesis import strategies as st

import differential as dd
from differential import Expr, col, lit

__all__ = ["COMPARED", "CONSTANTS", "ORDERED", "SQL_TYPES", "TYPES", "Said", "expression", "literal"]

SQL_TYPES = {"int": "BIGINT", "float": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN"}
SQL_TYPES |= {"decimal": "DECIMAL(18, 2)", "timestamp": "TIMESTAMPTZ", "date": "DATE"}
TYPES = {"decimal": "decimal(18, 2)"}
"""Ours by kind, where it has another name."""
ORDERED = ["decimal", "timestamp", "date"]
ZONES = ["Europe/Rome", "America/New_York", "Asia/Kolkata", "UTC"]

CONSTANTS: dict[str, st.SearchStrategy[object]] = {
    "int": st.integers(-2, 3),
    "float": st.sampled_from([-1.5, -0.25, 0.0, 0.5, 2.0]),
    "string": st.sampled_from(["", "a", "b", "it's"]),
    "bool": st.booleans(),
    "decimal": st.sampled_from([Decimal("-1.25"), Decimal(0), Decimal("0.01"), Decimal("3.50")]),
    "date": st.sampled_from([dt.date(2024, 2, 29), dt.date(2024, 3, 31), dt.date(1999, 12, 31)]),
    # around the changes of clocks in Rome and New York
    "timestamp": st.sampled_from(
        [
            dt.datetime(2024, 3, 31, 0, 59, 59, tzinfo=dt.UTC),
            dt.datetime(2024, 3, 31, 22, 30, tzinfo=dt.UTC),
            dt.datetime(2024, 11, 3, 5, 30, tzinfo=dt.UTC),
            dt.datetime(1999, 12, 31, 23, 0, tzinfo=dt.UTC),
        ]
    ),
}


@dataclass(frozen=True)
class Said:
    """The same expression said twice."""

    ours: Expr
    sql: str

    def __repr__(self) -> str:
        return self.sql


def literal(value: object, kind: str) -> Said:
    """A constant."""
    if value is None:
        return Said(lit(None, TYPES.get(kind, kind)), f"CAST(NULL AS {SQL_TYPES[kind]})")
    if isinstance(value, Decimal | dt.date):
        return Said(lit(value, TYPES.get(kind, kind)), f"CAST('{value}' AS {SQL_TYPES[kind]})")
    if isinstance(value, str):
        return Said(lit(value), "'" + value.replace("'", "''") + "'")
    return Said(lit(value), f"CAST({value} AS {SQL_TYPES[kind]})")


def expression(draw: st.DrawFn, columns: Mapping[str, str], kind: str, depth: int = 2) -> Said:
    """An expression of a kind over columns of these kinds; `depth` operators deep at most."""
    named = sorted(name for name, its in columns.items() if its == kind)

    def of(other: str) -> Said:
        return expression(draw, columns, other, depth - 1)

    if depth == 0 or draw(st.integers(0, 3)) == 0:
        if named and draw(st.integers(0, 3)) > 0:
            name = draw(st.sampled_from(named))
            return Said(col(name), name)
        return literal(draw(CONSTANTS[kind]), kind)
    made = draw(st.sampled_from(["filled", "chosen", "chosen or null", *_OF[kind]]))
    if made == "filled":
        value, other = of(kind), of(kind)
        return Said(value.ours.fill_null(other.ours), f"coalesce({value}, {other})")
    if made == "chosen":
        condition, one, other = of("bool"), of(kind), of(kind)
        ours = dd.when(condition.ours).then(one.ours).otherwise(other.ours)
        return Said(ours, f"CASE WHEN {condition} THEN {one} ELSE {other} END")
    if made == "chosen or null":
        condition, one = of("bool"), of(kind)
        return Said(dd.when(condition.ours).then(one.ours), f"CASE WHEN {condition} THEN {one} END")
    if made == "is in":
        of_kind = draw(st.sampled_from(["int", "float", "string"]))
        among: list[object] = draw(st.lists(CONSTANTS[of_kind], min_size=1, max_size=3))
        return _is_in(of(of_kind), among, of_kind)
    if made in COMPARED:
        of_kind = draw(st.sampled_from([*SQL_TYPES] if made in ("=", "<>") else ["int", "float", *ORDERED]))
        return COMPARED[made](of(of_kind), of(of_kind))
    if made in ("is null", "is not null"):
        value = of(draw(st.sampled_from([*SQL_TYPES])))
        ours = value.ours.is_null() if made == "is null" else value.ours.is_not_null()
        return Said(ours, f"({value} {made.upper()})")
    if made == "in zone":
        zone, time = draw(st.sampled_from(ZONES)), of("timestamp")
        function, sql = draw(st.sampled_from(IN_ZONE[kind]))
        return Said(function(time.ours, zone), sql.format(f"({time} AT TIME ZONE '{zone}')", zone))
    kinds, combine = _OF[kind][made]
    return combine(*(of(other) for other in kinds))


def _is_in(value: Said, among: list[object], kind: str) -> Said:
    listed = ", ".join(literal(one, kind).sql for one in among)
    return Said(value.ours.is_in(among), f"({value} IN ({listed}))")  # type: ignore[arg-type]  # scalars


_Two = Callable[[Said, Said], Said]

COMPARED: dict[str, _Two] = {
    "=": lambda a, b: Said(a.ours == b.ours, f"({a} = {b})"),
    "<>": lambda a, b: Said(a.ours != b.ours, f"({a} <> {b})"),
    "<": lambda a, b: Said(a.ours < b.ours, f"({a} < {b})"),
    "<=": lambda a, b: Said(a.ours <= b.ours, f"({a} <= {b})"),
    ">": lambda a, b: Said(a.ours > b.ours, f"({a} > {b})"),
    ">=": lambda a, b: Said(a.ours >= b.ours, f"({a} >= {b})"),
}

_Made = tuple[tuple[str, ...], Callable[..., Said]]  # type: ignore[explicit-any]  # as many as there are kinds


def _extreme(function: str, ours: Expr, a: Said, b: Said) -> Said:
    return Said(ours, f"CASE WHEN ({a}) IS NOT NULL AND ({b}) IS NOT NULL THEN {function}({a}, {b}) END")


def _numbers(kind: str) -> dict[str, _Made]:
    two = (kind, kind)
    return {
        "+": (two, lambda a, b: Said(a.ours + b.ours, f"({a} + {b})")),
        "-": (two, lambda a, b: Said(a.ours - b.ours, f"({a} - {b})")),
        "negative": ((kind,), lambda a: Said(-a.ours, f"(- {a})")),
        "abs": ((kind,), lambda a: Said(a.ours.abs(), f"abs({a})")),
        "least": (two, lambda a, b: _extreme("least", dd.min_of(a.ours, b.ours), a, b)),
        "greatest": (two, lambda a, b: _extreme("greatest", dd.max_of(a.ours, b.ours), a, b)),
    }


def _same(name: str, *kinds: str, **words: str) -> _Made:  # a function with one name in both
    sql = words.get("sql", name)
    return kinds, lambda *a: Said(getattr(dd, name)(*(x.ours for x in a)), f"{sql}({', '.join(map(str, a))})")


_Local = list[tuple[Callable[[Expr, str], Expr], str]]
IN_ZONE: dict[str, _Local] = {
    "int": [
        (lambda t, zone: t.dt.hour(zone), "extract(hour FROM {0})"),
        (lambda t, zone: t.dt.day(zone), "extract(day FROM {0})"),
        (lambda t, zone: t.dt.year(zone), "extract(year FROM {0})"),
        (lambda t, zone: dd.dayofweek(t, zone), "(extract(dow FROM {0}) + 1)"),
    ],
    "date": [(lambda t, zone: t.dt.date(zone), "CAST({0} AS DATE)")],
    "timestamp": [
        (lambda t, zone: t.dt.date_trunc("day", zone), "(date_trunc('day', {0}) AT TIME ZONE '{1}')"),
        (lambda t, zone: t.dt.date_trunc("month", zone), "(date_trunc('month', {0}) AT TIME ZONE '{1}')"),
    ],
}
"""Functions of a time in a zone; in SQL, `{0}` is the local time, and `{1}` the zone."""

_OF: dict[str, dict[str, _Made]] = {
    "int": {
        **_numbers("int"),
        "* 3": (("int",), lambda a: Said(a.ours * 3, f"({a} * 3)")),
        "// 2": (("int",), lambda a: Said(a.ours // 2, f"CAST(floor({a} / 2.0) AS BIGINT)")),
        "% 3": (("int",), lambda a: Said(a.ours % 3, f"((({a}) % 3 + 3) % 3)")),
        "of bool": (("bool",), lambda a: Said(a.ours.cast("int"), f"CAST({a} AS BIGINT)")),
        "of float": (("float",), lambda a: Said(a.ours.cast("int"), f"CAST(trunc({a}) AS BIGINT)")),
        "length": _same("length", "string"),
        "sign": (("int",), lambda a: Said(dd.signum(a.ours), f"CAST(sign({a}) AS BIGINT)")),
        "&": (("int", "int"), lambda a, b: Said(dd.bitwise_and(a.ours, b.ours), f"({a} & {b})")),
        "in zone": ((), literal),
    },
    "float": {
        **_numbers("float"),
        "* 0.5": (("float",), lambda a: Said(a.ours * 0.5, f"({a} * CAST(0.5 AS DOUBLE))")),
        "of int": (("int",), lambda a: Said(a.ours.cast("float"), f"CAST({a} AS DOUBLE)")),
        "of decimal": (("decimal",), lambda a: Said(a.ours.cast("float"), f"CAST({a} AS DOUBLE)")),
        "floor": (("float",), lambda a: Said(dd.floor(a.ours), f"floor({a})")),
    },
    "string": {
        "upper": _same("upper", "string"),
        "reverse": _same("reverse", "string"),
        "concat": (("string", "string"), lambda a, b: Said(dd.concat(a.ours, b.ours), f"({a} || {b})")),
        "repeat": (("string",), lambda a: Said(dd.repeat(a.ours, 2), f"repeat({a}, 2)")),
        "substring": (("string",), lambda a: Said(dd.substring(a.ours, 2, 2), f"substring({a}, 2, 2)")),
        "replace": (("string",), lambda a: Said(dd.replace(a.ours, "a", "bb"), f"replace({a}, 'a', 'bb')")),
    },
    "decimal": {
        **_numbers("decimal"),
        "of int": (
            ("int",),
            lambda a: Said(a.ours.cast(TYPES["decimal"]), f"CAST({a} AS {SQL_TYPES['decimal']})"),
        ),
    },
    "date": {
        "+ 1": (("date",), lambda a: Said(a.ours.dt.add_days(1), f"CAST({a} + 1 AS DATE)")),
        "last_day": (("date",), lambda a: Said(dd.last_day(a.ours), f"last_day({a})")),
        "in zone": ((), literal),
    },
    "timestamp": {
        "+ 1": (("timestamp",), lambda a: Said(a.ours.dt.add_days(1), f"({a} + INTERVAL 1 DAY)")),
        "in zone": ((), literal),
    },
    "bool": {
        "and": (("bool", "bool"), lambda a, b: Said(a.ours & b.ours, f"({a} AND {b})")),
        "or": (("bool", "bool"), lambda a, b: Said(a.ours | b.ours, f"({a} OR {b})")),
        "not": (("bool",), lambda a: Said(~a.ours, f"(NOT {a})")),
        **dict.fromkeys([*COMPARED, "is null", "is not null", "is in"], ((), literal)),
    },
}
