"""Aggregates of Spark's plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Final

from ...columns.column_types import ColumnType, floating, integer, list_type
from ...errors import ExpressionError, SchemaError
from ...expressions.calls import composed
from ...expressions.expression import ColumnRef, Expr, LiteralValue, Operation, when
from ..algebra.attributes import Attribute, AttributeNames, schema_of
from ..algebra.relations import AggregateCall, SortKey
from ..lowering.groups import aggregate_of
from ..reading.expressions.values import Value, as_type
from .plan_expressions import PlanExpressions
from .plan_nodes import PlanReadings, SparkNode
from .plan_scopes import PlanScope
from .plan_types import constant_of

__all__ = ["PlanAggregates", "SummedParts"]

_KINDS: Final[Mapping[str, str]] = {
    "Count": "count", "CountIf": "count_if", "Sum": "sum", "Average": "avg", "Min": "min", "Max": "max",
    "BoolAnd": "all", "BoolOr": "any", "VarianceSamp": "variance", "VariancePop": "variance_pop",
    "StddevSamp": "stddev", "StddevPop": "stddev_pop", "MaxBy": "first", "MinBy": "first",
    "CollectList": "collect", "CollectSet": "collect_set", "AnyValue": "any_value", "Median": "percentile",
    "Percentile": "percentile", "Mode": "mode", "ListAgg": "string_agg", "CovPopulation": "covar_pop",
    "CovSample": "covar_samp", "Corr": "corr", "Skewness": "skewness", "Kurtosis": "kurtosis",
    "ApproximatePercentile": "percentile_disc", "HyperLogLogPlusPlus": "approx_count_distinct",
}  # fmt: skip
_BY_CHANCE: Final = frozenset(("First", "Last"))
_OF_TWO: Final = ("covar_pop", "covar_samp", "corr")


@dataclass(frozen=True)
class SummedParts:
    """An aggregate as relations have it: a kind, what it reads, and its type."""

    kind: str
    argument: Expr | None
    type: ColumnType
    by: tuple[SortKey, ...] = ()
    second: Expr | None = None
    option: float | str | None = None


class PlanAggregates:
    """Reads aggregates; each different one of a group is computed once."""

    def __init__(self, readings: PlanReadings, names: AttributeNames) -> None:
        self._readings, self._names = readings, names

    def read(self, node: SparkNode, scope: PlanScope, expressions: PlanExpressions) -> Value:
        """Return the value of an aggregate of the groups of `scope`."""
        self._readings.check(node, "mode", "isDistinct", "filter")
        inner = scope.inner
        if scope.calls is None or inner is None:
            raise self._readings.error(node, "an aggregate cannot stand here")
        (function, *_) = node.children
        if function.kind == "PivotFirst":
            return self._pivoted(node, function, scope, expressions)
        call = scope.calls.get(node.written)
        if call is None:
            is_distinct = bool(node.fields.get("isDistinct"))
            parts = self.parts(function, inner, expressions, is_distinct=is_distinct)
            condition = node.tree("filter") or (node.children[1] if len(node.children) > 1 else None)
            where = None if condition is None else expressions.condition(condition, inner).expr
            call = AggregateCall(
                self._names.attribute(parts.kind, parts.type), parts.kind, parts.argument, parts.by,
                is_distinct, where, parts.second, parts.option,
            )  # fmt: skip
            scope.calls[node.written] = call
        return Value(ColumnRef(call.attribute.name), call.attribute.type)

    def parts(
        self, function: SparkNode, inner: PlanScope, expressions: PlanExpressions, *, is_distinct: bool
    ) -> SummedParts:
        """Return an aggregate function over columns of `inner`; raises SqlError for one that is refused."""
        while function.fields.get("replacement") == 0 and len(function.children) == 1:
            function = function.children[0]
        kind = _KINDS.get(function.kind)
        if function.kind in _BY_CHANCE:
            raise self._readings.error(
                function,
                f"{function.kind.lower()} depends on the order in which Spark reads rows. Write "
                "min_by(x, y), max_by(x, y) or any_value(x)",
            )
        if kind is None:
            raise self._readings.error(function, f"Spark's aggregate {function.kind} is not supported here")
        self._readings.check(
            function, "ignoreNulls", "relativeSD", "reverse", "percentageExpression", "delimiter",
            "frequencyExpression", "orderExpressions", "deterministic", "accuracyExpression",
        )  # fmt: skip
        try:
            return self._of_kind(kind, function, inner, expressions, is_distinct=is_distinct)
        except (ExpressionError, SchemaError) as error:
            message = str(error).partition("\n")[0]
            raise self._readings.error(function, f"Spark's {function.kind}: {message}") from None

    def _of_kind(
        self, kind: str, function: SparkNode, inner: PlanScope, expressions: PlanExpressions, *,
        is_distinct: bool,
    ) -> SummedParts:  # fmt: skip
        operands = list(function.children)
        if kind == "count":
            return self._counted(operands, inner, expressions, is_distinct=is_distinct)
        values = [expressions.read(each, inner) for each in operands]
        value = as_type(values[0], integer) if values[0].is_untyped else values[0]
        option = self._option(kind, function, operands, values)
        by: tuple[SortKey, ...] = ()
        second = None
        if kind == "first":
            by = (SortKey(values[1].expr, function.kind == "MaxBy", True),)
            there = when(values[1].expr.is_not_null()).then(value.expr)
            return SummedParts(kind, there, value.type.or_null(), by)
        if kind in _OF_TWO:
            second = values[1].expr
        if kind == "count_if":
            return SummedParts(kind, value.expr, integer)
        if function.kind in ("CollectList", "CollectSet") and not function.fields.get("ignoreNulls", True):
            raise ExpressionError("with nulls is not supported")
        parts = SummedParts(kind, value.expr, integer, by, second, option)
        return SummedParts(kind, value.expr, self._type(parts, value, is_distinct), by, second, option)

    def _counted(
        self, operands: list[SparkNode], inner: PlanScope, expressions: PlanExpressions, *, is_distinct: bool
    ) -> SummedParts:
        values = [expressions.read(each, inner) for each in operands]
        if not is_distinct:
            real = [each for each in values if not isinstance(each.expr, LiteralValue)]
            if not real and all(not each.is_untyped for each in values):
                return SummedParts("count", None, integer)
            values = real or values
        if len(values) == 1:
            return SummedParts("count", values[0].expr, integer)
        there = reduce(lambda a, b: a & b, (each.expr.is_not_null() for each in values))
        fields = {f"c{place}": each.expr for place, each in enumerate(values)}
        counted = composed.struct(**fields) if is_distinct else there
        return SummedParts("count", when(there).then(counted), integer)

    def _option(
        self, kind: str, function: SparkNode, operands: list[SparkNode], values: list[Value]
    ) -> float | str | None:
        if function.kind == "ApproximatePercentile":
            return _share(values[1].expr)
        if function.kind == "Percentile":
            share, frequency = _share(values[1].expr), values[2].expr
            if (
                not isinstance(frequency, LiteralValue)
                or frequency.value != 1
                or function.fields.get("reverse")
            ):
                raise ExpressionError("takes a share, and nothing besides")
            return share
        if kind == "string_agg":
            if function.trees("orderExpressions") or len(operands) > 2:
                raise ExpressionError("with an order is not supported")
            separator = values[1].text if len(values) > 1 else ""
            if separator is None and not values[1].is_untyped:
                raise ExpressionError("takes a constant between the texts")
            return separator or ""
        if function.kind == "Mode" and (len(operands) > 1 or function.trees("orderingFilled")):
            raise ExpressionError("with an order is not supported")
        return 0.5 if kind == "percentile" else None

    def _type(self, parts: SummedParts, value: Value, is_distinct: bool) -> ColumnType:
        if parts.kind in _OF_TWO:
            return floating.or_null()
        if parts.kind == "string_agg":
            return value.type.or_null()
        if parts.kind in ("collect", "collect_set"):
            return list_type(value.type.not_null())
        call = AggregateCall(
            Attribute("x", "x", integer), parts.kind, ColumnRef("x"), (), is_distinct, option=parts.option
        )
        type_ = aggregate_of(call).type_in(schema_of([Attribute("x", "x", value.type)]))
        return type_.or_null() if parts.kind in ("skewness", "kurtosis") else type_

    def _pivoted(
        self, node: SparkNode, function: SparkNode, scope: PlanScope, expressions: PlanExpressions
    ) -> Value:
        """Return the first of the columns that a pivot makes: the value of one row of each group."""
        assert scope.inner is not None and scope.calls is not None
        by, value = (expressions.read(each, scope.inner) for each in function.children)
        if not value.type.has_order:
            raise self._readings.error(function, f"a pivot of values of type {value.type} is not supported")
        parts: list[Attribute] = []
        for number, written in enumerate(_pivot_values(function)):
            wanted = constant_of(written, function.fields["pivotType"])
            text = f"{node.written} {number}"
            if text not in scope.calls:
                attribute = self._names.attribute("pivot", value.type.or_null())
                condition = by.expr.eq_null_safe(wanted.expr)
                scope.calls[text] = AggregateCall(attribute, "max", value.expr, condition=condition)
            parts.append(scope.calls[text].attribute)
        scope.pivots[id(node)] = tuple(parts)
        return Value(ColumnRef(parts[0].name), parts[0].type)


def _share(expr: Expr) -> float:
    """Return the share of a percentile, a constant, perhaps one that is cast."""
    if isinstance(expr, Operation) and expr.op == "cast":
        (expr,) = expr.operands
    if not isinstance(expr, LiteralValue) or not isinstance(expr.value, int | float | Decimal):
        raise ExpressionError("takes one share, a constant")
    return float(expr.value)


def _pivot_values(function: SparkNode) -> list[object]:
    values = function.fields.get("pivotColumnValues")
    assert isinstance(values, list), "the values of a pivot are read from Spark"
    return values
