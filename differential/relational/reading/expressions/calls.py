"""Aggregates and window functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from sqlglot import exp

from ....columns.column_types import ColumnType, floating, integer
from ....columns.schema import Column, Schema
from ....errors import ExpressionError
from ....expressions.expression import Expr, LiteralValue, col, lit, when
from ....operators.reducing.window_parts import Frame
from ...algebra.attributes import Attribute
from ...algebra.relations import AggregateCall, SortKey
from ...lowering.groups import aggregate_of
from ..texts import SqlText, children_of
from .values import Value, as_type, computed, met

__all__ = [
    "AGGREGATES",
    "AggregateParts",
    "RankedCall",
    "aggregate_kind",
    "aggregate_parts",
    "check_ordered",
    "frame_of",
    "ranked",
    "type_of_call",
]

_Read = Callable[[exp.Expression], Value]

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
    exp.AnyValue: "min",
}
_NAMED: Final = {"every": "all", "some": "any", "any": "any", "bool_or": "any", "bool_and": "all",
                 "count_if": "count_if", "var_samp": "variance", "collect_set": "collect_set"}  # fmt: skip


def aggregate_kind(node: exp.Expression) -> str | None:
    """Return which aggregate a node is; None if it is none."""
    if isinstance(node, exp.IgnoreNulls):
        return aggregate_kind(node.this) if isinstance(node.this, exp.AnyValue) else None
    if isinstance(node, exp.Anonymous):
        return _NAMED.get(str(node.this).lower())
    return AGGREGATES.get(type(node))


class AggregateParts(NamedTuple):
    """What an aggregate is computed of."""

    argument: Value | None
    by: Value | None
    is_distinct: bool


def aggregate_parts(text: SqlText, node: exp.Expression, kind: str, read: _Read) -> AggregateParts:
    """Return the operands of an aggregate."""
    if isinstance(node, exp.IgnoreNulls):
        return aggregate_parts(text, node.this, kind, read)
    text.parts_of(node, "this", "expressions", "expression", "nulls_excluded")
    operands = children_of(node, "expressions")
    if not isinstance(node, exp.Anonymous):
        operands = [node.this, *operands]
    distinct = isinstance(operands[0], exp.Distinct) if operands else False
    if distinct:
        text.parts_of(operands[0], "expressions")
        operands = children_of(operands[0], "expressions")
    if kind == "count" and len(operands) == 1 and isinstance(operands[0], exp.Star):
        text.parts_of(operands[0])
        return AggregateParts(None, None, False)
    if not operands or (len(operands) > 1 and (kind != "count" or distinct)):
        raise text.error(node, f"{text.written(node)} takes one operand")
    values = [read(each) for each in operands]
    if len(values) > 1:
        there = computed(_all_there, *values)
        return AggregateParts(computed(lambda expr: when(expr).then(lit(1)), there), None, False)
    (value,) = values
    if value.is_untyped:
        value = as_type(value, integer)
    by = node.args.get("expression")
    return AggregateParts(value, None if by is None else read(by), distinct)


def _all_there(*exprs: Expr) -> Expr:
    outcome = exprs[0].is_not_null()
    for expr in exprs[1:]:
        outcome = outcome & expr.is_not_null()
    return outcome


def type_of_call(kind: str, argument: Value | None, by: Value | None, *, is_distinct: bool) -> ColumnType:
    """Return the type of an aggregate; raises ExpressionError if it does not take such values."""
    columns = [Column(name, each.type) for name, each in (("x", argument), ("by", by)) if each is not None]
    order = (SortKey(col["by"], False, False),) if by is not None else ()
    call = AggregateCall(
        Attribute("x", "x", integer), kind, None if argument is None else col["x"], order, is_distinct
    )
    return aggregate_of(call).type_in(Schema(tuple(columns)))


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
        return RankedCall("ntile", None, _number(text, node, read(node.this)), None, integer)
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
        amount = _number(text, node, read(node.args["offset"]))
        return RankedCall("nth_value", value.expr, amount, None, value.type.or_null())
    return None


def _number(text: SqlText, node: exp.Expression, value: Value) -> int:
    number = value.expr.value if isinstance(value.expr, LiteralValue) else None
    if type(number) is not int:
        raise text.error(node, f"{text.written(node)} takes a whole number as a constant")
    return number


def frame_of(text: SqlText, spec: exp.Expression | None) -> Frame | None:
    """Return the frame of a window; None if it has none."""
    if spec is None:
        return None
    text.parts_of(spec, "kind", "start", "start_side", "end", "end_side")
    unit = str(spec.args.get("kind") or "").lower()
    start = _bound(text, spec, "start")
    end = _bound(text, spec, "end") if spec.args.get("end") is not None else 0
    if unit == "rows":
        return Frame("rows", start, end)
    return Frame("range" if unit == "range" else "groups", start, end)


def _bound(text: SqlText, spec: exp.Expression, name: str) -> int | None:
    bound, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").lower()
    if isinstance(bound, str):
        if bound.upper() == "CURRENT ROW":
            return 0
        if (name, side) in (("start", "preceding"), ("end", "following")):
            return None
    if isinstance(bound, exp.Literal) and not bound.args.get("is_string") and str(bound.this).isdigit():
        return -int(bound.this) if side == "preceding" else int(bound.this)
    raise text.error(spec, "the bounds of a frame are whole numbers, CURRENT ROW or UNBOUNDED")


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
