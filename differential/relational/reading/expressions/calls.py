"""Aggregates and window functions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple, cast

from sqlglot import exp

from ....columns.column_types import ColumnType, floating, integer, list_type
from ....columns.schema import Column, Schema
from ....errors import ExpressionError
from ....expressions.expression import Expr, LiteralValue, col, lit, when
from ....expressions.orders import Length, bounds_in_units, months
from ....operators.reducing.window_parts import Frame
from ...algebra.attributes import Attribute
from ...algebra.relations import AggregateCall, SortKey
from ...lowering.groups import aggregate_of
from ..texts import SqlText, children_of
from .types import interval_of
from .values import Value, as_type, computed, met

__all__ = [
    "AGGREGATES",
    "AggregateParts",
    "RankedCall",
    "aggregate_kind",
    "aggregate_parts",
    "check_ordered",
    "check_range",
    "frame_of",
    "ranked",
    "type_of_call",
]

_Read = Callable[[exp.Expression], Value]

_RANGED: Final = ("int", "decimal", "timestamp", "date", "float")
"""Types of orders to which the bounds of a range can be added."""

AGGREGATES: Final[Mapping[type[exp.Expression], str]] = {
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalOr: "any",
    exp.LogicalAnd: "all",
    exp.Variance: "variance",
    exp.VariancePop: "variance_pop",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.StddevPop: "stddev_pop",
    exp.ArgMax: "argmax",
    exp.ArgMin: "argmin",
    exp.ArrayAgg: "collect",
    exp.ArrayUniqueAgg: "collect_set",
    exp.AnyValue: "any_value",
    exp.First: "first",
    exp.Median: "percentile",
    exp.Quantile: "percentile",
    exp.PercentileCont: "percentile",
    exp.PercentileDisc: "percentile_disc",
    exp.ApproxQuantile: "percentile_disc",
    exp.Mode: "mode",
    exp.GroupConcat: "string_agg",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
    exp.Skewness: "skewness",
    exp.Kurtosis: "kurtosis",
    exp.ApproxDistinct: "approx_count_distinct",
}
_NAMED: Final = {"every": "all", "some": "any", "any": "any", "bool_or": "any", "bool_and": "all",
                 "count_if": "count_if", "var_samp": "variance", "collect_set": "collect_set",
                 "kurtosis_pop": "kurtosis", "mean": "avg", "std": "stddev"}  # fmt: skip


def aggregate_kind(node: exp.Expression) -> str | None:
    """Return which aggregate a node is; None if it is none."""
    if isinstance(node, exp.IgnoreNulls):
        return aggregate_kind(node.this) if isinstance(node.this, exp.AnyValue) else None
    if isinstance(node, exp.WithinGroup):
        return aggregate_kind(node.this)
    if isinstance(node, exp.Any) and not isinstance(node.parent, exp.Binary):
        return "any" if isinstance(node.this, exp.Paren) else None
    if isinstance(node, exp.Anonymous):
        return _NAMED.get(str(node.this).lower())
    return AGGREGATES.get(type(node))


class AggregateParts(NamedTuple):
    """What an aggregate is computed of."""

    argument: Value | None
    by: Value | None
    is_distinct: bool
    order: tuple[SortKey, ...] = ()
    second: Value | None = None
    option: float | str | None = None


def aggregate_parts(
    text: SqlText, node: exp.Expression, kind: str, read: _Read, sort: Callable[[exp.Expression], SortKey]
) -> AggregateParts:
    """Return the operands of an aggregate."""
    if isinstance(node, exp.IgnoreNulls):
        return aggregate_parts(text, node.this, kind, read, sort)
    if isinstance(node, exp.ApproxQuantile) and text.dialect != "spark":
        raise text.error(node, f"{text.written(node)} is another number here: write percentile_disc")
    if kind in _ORDERED or (kind == "collect" and isinstance(node.this, exp.Order)):
        return _ordered_parts(text, node, kind, read, sort)
    if text.dialect == "duckdb" and isinstance(node, exp.Skewness | exp.Kurtosis):
        raise text.error(
            node,
            f"{text.written(node)} is that of a sample in DuckDB; there is kurtosis_pop, and in Spark both",
        )
    text.parts_of(node, "this", "expressions", "expression", "nulls_excluded")
    operands = children_of(node, "expressions")
    if not isinstance(node, exp.Anonymous):
        operands = [node.this, *operands]
    distinct = isinstance(operands[0], exp.Distinct) if operands else False
    if distinct:
        text.parts_of(operands[0], "expressions")
        operands = children_of(operands[0], "expressions")
    if operands and isinstance(operands[0], exp.Star) and (distinct or kind != "count"):
        raise text.error(node, f"{text.written(node)}: * stands for rows only in count(*)")
    if kind == "count" and len(operands) == 1 and isinstance(operands[0], exp.Star):
        text.parts_of(operands[0])
        return AggregateParts(None, None, False)
    if not operands or (len(operands) > 1 and (kind != "count" or distinct)):
        raise text.error(node, f"{text.written(node)} takes one operand")
    if kind in ("argmax", "argmin") and node.args.get("expression") is None:
        raise text.error(node, f"{text.written(node)} takes a value, and what it is the greatest or least by")
    values = [read(each) for each in operands]
    if len(values) > 1:
        there = computed(_all_there, *values)
        return AggregateParts(computed(lambda expr: when(expr).then(lit(1)), there), None, False)
    (value,) = values
    if value.is_untyped:
        value = as_type(value, integer)
    by = node.args.get("expression")
    if by is not None and kind in ("covar_pop", "covar_samp", "corr"):
        return AggregateParts(value, None, False, second=read(by))
    compared = None if by is None else read(by)
    if compared is not None and text.dialect == "duckdb":  # which leaves out rows whose value is null
        compared = computed(lambda expr, by: when(expr.is_not_null()).then(by), value, compared)
    return AggregateParts(value, compared, distinct)


_ORDERED: Final = ("percentile", "percentile_disc", "mode", "string_agg", "first")


def _ordered_parts(
    text: SqlText, node: exp.Expression, kind: str, read: _Read, sort: Callable[[exp.Expression], SortKey]
) -> AggregateParts:
    """Return the operands of an aggregate that takes an order, before its end or in WITHIN GROUP."""
    ordered: list[exp.Expression] = []
    within = isinstance(node, exp.WithinGroup)
    if isinstance(node, exp.WithinGroup):
        text.parts_of(node, "this", "expression")
        if not isinstance(node.args.get("expression"), exp.Order):
            raise text.error(node, f"{text.written(node)}: write WITHIN GROUP (ORDER BY …)")
        text.parts_of(node.args["expression"], "expressions")
        ordered, node = children_of(node.args["expression"], "expressions"), node.this
    text.parts_of(node, "this", "expression", "quantile", "separator", "accuracy")
    operand, number = node.this, node.args.get("quantile") or node.args.get("expression")
    if within and kind != "string_agg":
        if len(ordered) != 1:
            raise text.error(node, f"{text.written(node)} takes one value in WITHIN GROUP (ORDER BY …)")
        operand, number = ordered[0].this, operand
    if isinstance(operand, exp.Order):
        text.parts_of(operand, "this", "expressions")
        ordered, operand = children_of(operand, "expressions"), operand.this
    distinct = isinstance(operand, exp.Distinct)
    if isinstance(operand, exp.Distinct):
        text.parts_of(operand, "expressions")
        (operand,) = children_of(operand, "expressions")
    value = read(operand)
    if kind == "mode":
        return AggregateParts(value, None, False)
    if kind in ("percentile", "percentile_disc"):
        share = _share(text, node, None if number is None else read(number))
        descending = within and sort(ordered[0]).descending
        if descending and kind == "percentile_disc":
            raise text.error(
                node,
                f"{text.written(node)} takes an ascending order, and DESC has another answer: "
                "of a number x write -percentile_disc(…) WITHIN GROUP (ORDER BY -x)",
            )
        return AggregateParts(value, None, distinct, option=1 - share if descending else share)
    order = tuple(sort(each) for each in ordered)
    if kind == "collect":
        if distinct:
            raise text.error(node, f"{text.written(node)}: with DISTINCT the order is that of the values")
        return AggregateParts(value, None, False, order)
    if kind == "first":
        if not order or distinct:
            raise text.error(node, f"{text.written(node)} takes an order: first(x ORDER BY y)")
        return AggregateParts(value, None, False, order)
    return _joined_texts(text, node, value, order, distinct=distinct, read=read)


def _joined_texts(
    text: SqlText,
    node: exp.Expression,
    value: Value,
    order: tuple[SortKey, ...],
    *,
    distinct: bool,
    read: _Read,
) -> AggregateParts:
    if value.is_untyped or value.type.kind != "string":
        raise text.error(node, f"{text.written(node)} joins texts, and not {value.type}: cast it")
    written = node.args.get("separator")
    separator = ("," if text.dialect == "duckdb" else "") if written is None else read(written).text
    if separator is None:
        raise text.error(node, f"{text.written(node)}: the separator is a constant text")
    if order and not order[0].descending and order[0].expr.describe() == value.expr.describe():
        order = ()  # what we do anyway
    if order and distinct:
        raise text.error(node, f"{text.written(node)}: with DISTINCT the order is that of the texts")
    return AggregateParts(value, None, distinct, order, option=separator)


def _share(text: SqlText, node: exp.Expression, value: Value | None) -> float:
    share = 0.5 if value is None else value.expr.value if isinstance(value.expr, LiteralValue) else None
    if not isinstance(share, int | float | Decimal) or not 0 <= share <= 1:
        raise text.error(node, f"{text.written(node)}: the share is a constant from 0 to 1")
    return float(share)


def _all_there(*exprs: Expr) -> Expr:
    outcome = exprs[0].is_not_null()
    for expr in exprs[1:]:
        outcome = outcome & expr.is_not_null()
    return outcome


_OF_ARGUMENT: Final = ("argmax", "argmin", "first", "percentile_disc", "string_agg")
"""Aggregates with the type of their first argument; null if no row counts."""


def type_of_call(kind: str, argument: Value | None, by: Value | None, *, is_distinct: bool) -> ColumnType:
    """Return the type of an aggregate; raises ExpressionError if it does not take such values."""
    if kind in _OF_ARGUMENT or kind in ("covar_pop", "covar_samp", "corr"):
        assert argument is not None
        return (argument.type if kind in _OF_ARGUMENT else floating).or_null()
    if kind in ("collect", "collect_set"):
        assert argument is not None
        return list_type(argument.type)
    columns = [Column(name, each.type) for name, each in (("x", argument), ("by", by)) if each is not None]
    order = (SortKey(col["by"], False, False),) if by is not None else ()
    if kind in ("any", "all", "count_if") and argument is not None and argument.type.kind != "bool":
        raise ExpressionError(f"{argument.type} is no condition")
    call = AggregateCall(
        Attribute("x", "x", integer), kind, None if argument is None else col["x"], order, is_distinct,
        option=0.5,
    )  # fmt: skip
    return aggregate_of(call).type_in(Schema(tuple(columns))).or_null(kind in ("skewness", "kurtosis"))


class RankedCall(NamedTuple):
    """A function of windows: its kind, what it reads, a number, a default, and its type."""

    kind: str
    argument: Expr | None
    amount: int
    default: Expr | None
    type: ColumnType


_RANKS: Final[Mapping[type[exp.Expression], tuple[str, ColumnType]]] = {
    exp.RowNumber: ("row_number", integer),
    exp.Rank: ("rank", integer),
    exp.DenseRank: ("dense_rank", integer),
    exp.PercentRank: ("percent_rank", floating),
    exp.CumeDist: ("cume_dist", floating),
}


def ranked(text: SqlText, node: exp.Expression, read: _Read) -> RankedCall | None:
    """Return a function that only windows have; None for others."""
    if type(node) in _RANKS:
        text.parts_of(node)
        kind, type_ = _RANKS[type(node)]
        return RankedCall(kind, None, 0, None, type_)
    if isinstance(node, exp.Ntile):
        text.parts_of(node, "this")
        return RankedCall("ntile", None, _number(text, node, read(node.this), 1), None, integer)
    if isinstance(node, exp.Lag | exp.Lead):
        text.parts_of(node, "this", "offset", "default")
        value, offset, default = read(node.this), node.args.get("offset"), node.args.get("default")
        amount = 1 if offset is None else _number(text, node, read(offset))
        value, other = met([value, value if default is None else read(default)])
        type_ = value.type.or_null(default is None or other.type.nullable)
        return RankedCall(
            "lag", value.expr, amount if isinstance(node, exp.Lag) else -amount,
            None if default is None else other.expr, type_,
        )  # fmt: skip
    if isinstance(node, exp.FirstValue | exp.LastValue):
        text.parts_of(node, "this")
        value = read(node.this)
        kind = "first_value" if isinstance(node, exp.FirstValue) else "last_value"
        return RankedCall(kind, value.expr, 0, None, value.type.or_null())
    if isinstance(node, exp.NthValue):
        text.parts_of(node, "this", "offset")
        value = read(node.this)
        if node.args.get("offset") is None:
            raise text.error(node, f"{text.written(node)} takes a value, and the number of a row")
        amount = _number(text, node, read(node.args["offset"]), 1)
        return RankedCall("nth_value", value.expr, amount, None, value.type.or_null())
    return None


def _number(text: SqlText, node: exp.Expression, value: Value, least: int | None = None) -> int:
    number = value.expr.value if isinstance(value.expr, LiteralValue) else None
    if type(number) is not int or (least is not None and number < least):
        most = "" if least is None else f" from {least} on"
        raise text.error(node, f"{text.written(node)} takes a whole number{most} as a constant")
    return number


def frame_of(text: SqlText, spec: exp.Expression | None, order: Sequence[Value]) -> Frame | None:
    """Return the frame of a window in that order; None if it has none."""
    if spec is None:
        return None
    text.parts_of(spec, "kind", "start", "start_side", "end", "end_side")
    unit = str(spec.args.get("kind") or "").lower()
    by = order[0].type if unit == "range" and len(order) == 1 and order[0].type.kind in _RANGED else None
    start = _bound(text, spec, "start", by)
    end = _bound(text, spec, "end", by) if spec.args.get("end") is not None else 0
    sides = [str(spec.args.get(f"{name}_side") or "").lower() for name in ("start", "end")]
    current = [str(spec.args.get(name)).upper() == "CURRENT ROW" for name in ("start", "end")]
    if (sides[0] == "following" and (sides[1] == "preceding" or current[1])) or (
        current[0] and sides[1] == "preceding"
    ):
        raise text.error(spec, "the frame ends before it begins")
    if by is not None:
        try:
            return Frame(*bounds_in_units(start, end, by))
        except ExpressionError as error:
            raise text.error(spec, str(error)) from None
    first, last = cast("int | None", start), cast("int | None", end)  # of no order to which others are added
    return Frame("range" if unit == "range" else "rows" if unit == "rows" else "groups", first, last)


def _bound(text: SqlText, spec: exp.Expression, name: str, by: ColumnType | None) -> int | Length | None:
    bound, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").lower()
    if isinstance(bound, str):
        if bound.upper() == "CURRENT ROW":
            return 0
        if (name, side) in (("start", "preceding"), ("end", "following")):
            return None
    sign = -1 if side == "preceding" else 1
    length: Length | None = None
    if isinstance(bound, exp.Interval):
        interval = interval_of(text, bound)
        if interval.months and (interval.micros or interval.months < 0):
            raise text.error(spec, f"{text.written(bound)}: write months, or days and less, and not both")
        if not 0 <= interval.micros < 1 << 63:
            raise text.error(spec, f"{text.written(bound)} is negative, or longer than times are apart")
        length = sign * dt.timedelta(microseconds=interval.micros)
        if interval.months:
            length = months(sign * interval.months)
    elif isinstance(bound, exp.Literal) and not bound.args.get("is_string"):
        if by is None and str(bound.this).isdigit():
            return sign * int(bound.this)
        length = sign * Decimal(str(bound.this))
    if length is None or by is None:
        raise text.error(
            spec,
            "the bounds of a frame are whole numbers, CURRENT ROW or UNBOUNDED; those of a RANGE over one "
            "column are numbers or intervals",
        )
    return length


def check_range(text: SqlText, node: exp.Expression, frame: Frame | None, order: Sequence[Value]) -> None:
    """Raise SqlError for a range with bounds over an order to which they cannot be added."""
    if frame is None or frame.unit in ("rows", "groups") or not (frame.start or frame.stop):
        return
    types = [each.type for each in order]
    if len(types) != 1 or types[0].kind not in _RANGED:
        raise text.error(
            node,
            f"{text.written(node)}: RANGE with bounds needs ORDER BY one column of numbers, or times",
        )


def check_ordered(order: tuple[SortKey, ...], kind: str) -> None:
    """Raise ExpressionError for a function that needs an order, over a window without one."""
    if not order and kind in (
        "lag",
        "percent_rank",
        "cume_dist",
        "ntile",
        "row_number",
        "rank",
        "dense_rank",
    ):
        raise ExpressionError("needs an ORDER BY in its window")
