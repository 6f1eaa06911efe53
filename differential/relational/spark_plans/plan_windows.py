"""Window functions of Spark's plans."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, cast

from timely.user_code.call_site import call_site

from ...columns.column_types import ColumnType, floating, integer
from ...errors import ExpressionError
from ...expressions.expression import Expr, LiteralValue
from ...expressions.orders import Length, Months, bounds_in_units, months
from ...operators.reducing.window_parts import Frame
from ..algebra.attributes import Attribute, AttributeNames
from ..algebra.relations import Relation, SortKey, WindowAnswer, WindowOf
from ..reading.expressions.values import Value, met
from .plan_aggregates import PlanAggregates
from .plan_expressions import PlanExpressions
from .plan_nodes import PlanReadings, SparkNode
from .plan_scopes import PlanRows, PlanScope
from .plan_types import UTC_NAMES

__all__ = ["PlanWindows", "sort_key"]

_RANKS: Final[Mapping[str, tuple[str, ColumnType]]] = {
    "RowNumber": ("row_number", integer),
    "Rank": ("rank", integer),
    "DenseRank": ("dense_rank", integer),
    "PercentRank": ("percent_rank", floating),
    "CumeDist": ("cume_dist", floating),
}
_OF_FRAMES: Final = ("count", "sum", "avg", "min", "max")


@dataclass
class _Group:
    """Window functions of one frame."""

    order: tuple[SortKey, ...]
    frame: Frame | None
    answers: list[WindowAnswer] = field(default_factory=list)


def sort_key(node: SparkNode, expressions: PlanExpressions, scope: PlanScope) -> SortKey:
    """Return what orders rows."""
    expr = expressions.read(node.children[0], scope).expr
    return SortKey(expr, node.chosen("direction") == "Descending", node.chosen("nullOrdering") == "NullsLast")


class PlanWindows:
    """Reads window functions, and the relation of rows that have them."""

    def __init__(
        self,
        readings: PlanReadings,
        names: AttributeNames,
        expressions: PlanExpressions,
        aggregates: PlanAggregates,
    ) -> None:
        self._readings, self._names = readings, names
        self._expressions, self._aggregates = expressions, aggregates

    def read(self, node: SparkNode, rows: PlanRows, outer: PlanScope | None) -> PlanRows:
        """Return the rows with the answers of a node of window functions."""
        self._readings.check(node, "windowExpressions", "partitionSpec", "orderSpec")
        scope = PlanScope.of(rows, outer=outer)
        keys = tuple(self._expressions.read(each, scope).expr for each in node.trees("partitionSpec"))
        order = tuple(sort_key(each, self._expressions, scope) for each in node.trees("orderSpec"))
        types = [self._expressions.read(each.children[0], scope).type for each in node.trees("orderSpec")]
        by = types[0] if len(types) == 1 else None
        groups: dict[str, _Group] = {}
        columns = list(rows.columns)
        for each in node.trees("windowExpressions"):
            call, spec = each.children[0].children
            answer, frame = self._answer(call, spec, by, scope)
            is_whole = answer.kind in _OF_FRAMES and frame == Frame("rows", None, None)
            group_order = () if is_whole or frame == "whole" else order
            used = None if is_whole or not isinstance(frame, Frame) else frame
            key = f"{bool(group_order)} {used!r}"
            groups.setdefault(key, _Group(group_order, used)).answers.append(answer)
            columns.append((each.id, answer.attribute))
        relation: Relation = scope.attached(rows.relation)
        for group in groups.values():
            relation = WindowOf(
                relation, keys, group.order, group.frame, tuple(group.answers), site=call_site()
            )
        return PlanRows(relation, tuple(columns), pivoted=rows.pivoted).typed(relation)

    def _answer(
        self, call: SparkNode, spec: SparkNode, by: ColumnType | None, scope: PlanScope
    ) -> tuple[WindowAnswer, Frame | str | None]:
        try:
            return self._answer_of(call, spec, by, scope)
        except ExpressionError as error:
            raise self._readings.error(call, f"Spark's {call.kind}: {error}".partition("\n")[0]) from None

    def _answer_of(
        self, call: SparkNode, spec: SparkNode, by: ColumnType | None, scope: PlanScope
    ) -> tuple[WindowAnswer, Frame | str | None]:
        """Return a function, and its frame: None for one that has none, or that of the order."""
        if call.kind in _RANKS:
            kind, type_ = _RANKS[call.kind]
            return WindowAnswer(self._names.attribute(kind, type_), kind), None
        if call.kind == "NTile":
            return WindowAnswer(
                self._names.attribute("ntile", integer), "ntile", None, self._number(call.children[0], scope)
            ), None
        if call.kind in ("Lag", "Lead"):
            return self._lag(call, scope), None
        frame = self._frame(spec.children[-1], by, scope)
        if call.kind == "NthValue":
            self._readings.check(call)
            value, place = call.children
            return self._value("nth_value", value, scope, self._number(place, scope)), frame
        if call.kind != "AggregateExpression":
            raise self._readings.error(call, f"Spark's window function {call.kind} is not supported here")
        self._readings.check(call, "mode")
        (function,) = call.children
        if function.kind in ("First", "Last"):
            self._readings.check(function)
            kind = f"{function.kind.lower()}_value"
            return self._value(kind, function.children[0], scope), frame
        parts = self._aggregates.parts(function, scope, self._expressions, is_distinct=False)
        if parts.kind == "any_value":
            parts = replace(parts, kind="min")  # one of several that would do
        is_whole = frame == Frame("rows", None, None)
        if (
            parts.by
            or parts.second is not None
            or parts.option is not None
            or (parts.kind not in _OF_FRAMES and not is_whole)
        ):
            raise ExpressionError(f"{parts.kind} over a window is not supported")
        attribute = self._names.attribute(parts.kind, _windowed_type(parts.kind, parts.type))
        return WindowAnswer(attribute, parts.kind, parts.argument), "whole" if is_whole else frame

    def _lag(self, call: SparkNode, scope: PlanScope) -> WindowAnswer:
        self._readings.check(call)
        value, offset, default = (self._expressions.read(each, scope) for each in call.children)
        amount = self._constant(offset)
        value, other = met([value, default])
        is_plain = isinstance(default.expr, LiteralValue) and default.expr.value is None
        type_ = value.type.or_null(is_plain or other.type.nullable)
        return WindowAnswer(
            self._names.attribute("lag", type_), "lag", value.expr, amount if call.kind == "Lag" else -amount,
            None if is_plain else other.expr,
        )  # fmt: skip

    def _value(self, kind: str, node: SparkNode, scope: PlanScope, amount: int = 0) -> WindowAnswer:
        value = self._expressions.read(node, scope)
        attribute: Attribute = self._names.attribute(kind, value.type.or_null())
        return WindowAnswer(attribute, kind, value.expr, amount)

    def _number(self, node: SparkNode, scope: PlanScope) -> int:
        return self._constant(self._expressions.read(node, scope))

    def _constant(self, value: Value) -> int:
        expr: Expr = value.expr
        if isinstance(expr, LiteralValue) and type(expr.value) is int:
            return expr.value
        if expr.columns() == frozenset() and expr.describe().lstrip("-").isdigit():
            return int(expr.describe())
        raise ExpressionError("takes a whole number as a constant")

    def _frame(self, spec: SparkNode, by: ColumnType | None, scope: PlanScope) -> Frame | None:
        if spec.kind != "SpecifiedWindowFrame":
            return None
        order = by if spec.chosen("frameType") == "RangeFrame" else None
        lower, upper = (self._bound(each, scope, order) for each in spec.children)
        if spec.chosen("frameType") == "RowFrame" or (lower, upper) == (None, None):
            return Frame("rows", cast("int | None", lower), cast("int | None", upper))
        if (lower, upper) == (None, 0):
            return None
        if order is None:
            return Frame("range", cast("int | None", lower), cast("int | None", upper))
        return Frame(*bounds_in_units(lower, upper, order))

    def _bound(self, node: SparkNode, scope: PlanScope, order: ColumnType | None) -> int | Length | None:
        if node.kind in ("UnboundedPreceding", "UnboundedFollowing"):
            return None
        if node.kind == "CurrentRow":
            return 0
        if order is None:
            return self._number(node, scope)
        length, zone = _length(node), self._readings.zone
        is_long = isinstance(length, Months) or (
            isinstance(length, dt.timedelta) and abs(length) >= dt.timedelta(days=1)
        )
        if is_long and order.kind == "timestamp" and zone not in UTC_NAMES:
            raise ExpressionError(f"days have 24 hours here, and the session's zone is {zone}")
        return length


def _length(node: SparkNode) -> Length:
    """Return a bound of a range: a number, or an interval of days and less; raises ExpressionError."""
    type_, value = node.text("dataType"), node.text("value")
    if node.kind == "UnaryMinus":
        return -_length(node.children[0])
    if node.kind == "Cast":  # of a number, to the type of the order
        length, scale = _length(node.children[0]), type_.rstrip(")").rpartition(",")[2]
        if not isinstance(length, Decimal):
            return length
        if type_ in ("float", "double"):
            return length
        if not scale.isdigit():
            return Decimal(int(length))
        return length.quantize(Decimal(1).scaleb(-int(scale)), ROUND_HALF_UP)
    is_interval = type_.startswith("interval ")
    if node.kind == "Literal" and is_interval and ("year" in type_ or "month" in type_):
        return months(int(value))
    if node.kind == "Literal" and is_interval:
        return dt.timedelta(microseconds=int(value))
    if node.kind != "Literal" or is_interval or not value.removeprefix("-").replace(".", "", 1).isdigit():
        raise ExpressionError("takes a number, or an interval of days and less, as the bound of a range")
    return Decimal(value)


def _windowed_type(kind: str, type_: ColumnType) -> ColumnType:
    return type_ if kind == "count" else type_.or_null()
