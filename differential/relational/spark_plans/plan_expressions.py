"""Expressions of Spark's plans. The casts that types need are in the plan already."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

from timely.user_code.call_site import at_site, call_site

from ...columns.column_types import ColumnType, boolean, integer, timestamp
from ...errors import ExpressionError, SqlError
from ...expressions.calls import catalogued, composed
from ...expressions.expression import ColumnRef, Expr, LiteralValue, coalesce, lit, when
from ..algebra.attributes import Attribute, AttributeNames
from ..algebra.relations import ApplyKind, ProjectionOf, Relation
from ..reading.expressions import arithmetic
from ..reading.expressions.values import Value, as_type, computed, met
from ..spark_functions.by_class import SPARK_FUNCTIONS, SparkFunction
from .casts import cast_to
from .plan_nodes import PlanReadings, SparkNode
from .plan_scopes import PlanRows, PlanScope, WaitingSubquery
from .plan_types import UTC_NAMES, constant_of, has_32_bits
from .spark_times import TIMES

__all__ = ["PlanExpressions"]

_Query = Callable[[SparkNode, PlanScope | None], PlanRows]
_Aggregate = Callable[[SparkNode, PlanScope], Value]

_COMPARED: Final[Mapping[str, Callable[[Expr, Expr], Expr]]] = {
    "EqualTo": lambda a, b: a == b,
    "LessThan": lambda a, b: a < b,
    "LessThanOrEqual": lambda a, b: a <= b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanOrEqual": lambda a, b: a >= b,
    "EqualNullSafe": lambda a, b: a.eq_null_safe(b),
    "And": lambda a, b: a & b,
    "Or": lambda a, b: a | b,
}
_ARITHMETIC: Final[Mapping[str, Callable[[str, Value, Value], Value]]] = {
    "Add": arithmetic.plus,
    "Subtract": arithmetic.minus,
    "Multiply": arithmetic.times,
    "Divide": arithmetic.divided,
    "IntegralDivide": arithmetic.whole_quotient,
    "Remainder": arithmetic.remainder,
}
_UNARY: Final[Mapping[str, Callable[[Expr], Expr]]] = {
    "Not": lambda x: ~x,
    "IsNull": lambda x: x.is_null(),
    "IsNotNull": lambda x: x.is_not_null(),
    "UnaryMinus": lambda x: -x,
}
_AS_IT_IS: Final = frozenset((
    "Alias", "KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", "NormalizeNaNAndZero",
    "PromotePrecision", "UnaryPositive", "TempResolvedColumn", "ToPrettyString",
))  # fmt: skip
_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("PythonUDF", "ScalaUDF", "PythonUDAF", "PythonUDTF", "ScalaUDAF", "HiveSimpleUDF",
         "ScalaAggregator"),
        "a function of your own runs in Spark alone. Write it with pyspark.sql.functions; or write the query "
        "as a function of collections, whose map, flat_map and reduce call Python functions",
    ),
    **dict.fromkeys(
        ("CurrentDate", "CurrentTimestamp", "Now", "LocalTimestamp", "CurrentTime", "UnixTimestampNow"),
        "the time of day changes an answer without any row; pass the time in as an input",
    ),
    **dict.fromkeys(
        ("ArrayTransform", "ArrayFilter", "ArrayExists", "ArrayForAll", "ArrayAggregate", "ArraySort",
         "ZipWith", "MapFilter", "MapZipWith", "TransformKeys", "TransformValues"),
        "calls a function for each element. Write explode, and groupBy with collect_list of what you make of "
        "its rows; or write the query as a function of collections, whose map calls Python functions",
    ),
    "RaiseError": "has no value: leave such rows out by filter, or let a cast or a division fail",
    **dict.fromkeys(
        ("JsonToStructs", "StructsToJson"),
        "is read in texts of cluster.sql and dd.sql: from_json(x, 'a int'), to_json(x). In a plan write "
        "get_json_object(x, '$.a')",
    ),
    **dict.fromkeys(
        ("Rand", "Randn", "Uuid", "Shuffle", "MonotonicallyIncreasingID", "SparkPartitionID", "RandStr",
         "Uniform", "InputFileName"),
        "gives another value each time, so no row could be taken back. Write xxhash of a key, or a column of "
        "the input",
    ),
}  # fmt: skip


_OF_BYTES: Final = ("Md5", "Sha1", "Sha2", "Crc32", "Base64", "OctetLength", "BitLength")
"""Functions that Spark gives a text as bytes, and that take it as a text here."""


class PlanExpressions:
    """Reads expressions, and the subqueries in them."""

    def __init__(
        self,
        readings: PlanReadings,
        names: AttributeNames,
        query: _Query,
        aggregate: _Aggregate,
    ) -> None:
        self._readings, self._names = readings, names
        self._query, self._aggregate = query, aggregate
        self._special: Mapping[str, Callable[[SparkNode, PlanScope], Value]] = {
            "AttributeReference": self._column,
            "OuterReference": self._outer_column,
            "Literal": self._literal,
            "Cast": self._cast,
            "In": self._in_list,
            "Coalesce": self._coalesced,
            "CaseWhen": self._cases,
            "If": self._choice,
            "ScalarSubquery": self._scalar,
            "Exists": self._marked,
            "InSubquery": self._marked,
            "CreateNamedStruct": self._struct,
            "GetStructField": self._field,
            "GetArrayItem": self._item,
            "GetMapValue": self._of_map,
            "PreciseTimestampConversion": self._converted,
            "AtLeastNNonNulls": self._at_least,
            "AggregateExpression": self._summed,
            "With": self._with_common,
            "NullIfResult": self._null_if,
            "UpdateFields": self._updated,
            "FormatString": self._formatted,
            "XxHash64": self._hashed,
            "NullIf": lambda node, scope: self.read(node.children[-1], scope),
        }

    def read(self, node: SparkNode, scope: PlanScope) -> Value:
        """Return the value of an expression; raises SqlError for one that is not supported."""
        if scope.values:
            value = scope.values.get(node.written)
            if value is not None:
                return value
        try:
            with at_site(node.sites):
                return self._read(node, scope)
        except SqlError:
            raise
        except (ExpressionError, KeyError, ValueError, TypeError) as error:
            message = str(error).partition("\n")[0]
            raise self._readings.error(node, f"Spark's {node.kind}: {message}") from None

    def _read(self, node: SparkNode, scope: PlanScope) -> Value:
        kind = node.kind
        if kind in _REFUSED:
            raise self._readings.error(node, f"Spark's {kind}{_called(node)}: {_REFUSED[kind]}")
        if kind.startswith("Try") and kind != "TryElementAt":
            return self._tried(node, scope)
        if kind in self._special:
            return self._special[kind](node, scope)
        if kind in _AS_IT_IS or (node.fields.get("replacement") == 0 and len(node.children) == 1):
            return self.read(node.children[0], scope)
        if kind in TIMES:
            self._readings.check(node, "timeZoneId", "dataType", "format")
            return TIMES[kind](node, lambda each: self.read(each, scope))
        self._readings.check(node, "timeZoneId", "escapeChar", "name", "child")
        if node.text("escapeChar") not in ("", "\\"):
            raise self._readings.error(node, f"Spark's {kind}: another escape than \\ is not supported")
        if kind in _UNARY:
            return computed(_UNARY[kind], self.read(node.children[0], scope))
        if kind in _COMPARED:
            left, right = met([self.read(each, scope) for each in node.children])
            return computed(_COMPARED[kind], left, right)
        if kind in _ARITHMETIC:
            self._check_bits(node)
            left, right = (self.read(each, scope) for each in node.children)
            return _ARITHMETIC[kind]("spark", left, right)
        if kind in SPARK_FUNCTIONS:
            return self._called(SPARK_FUNCTIONS[kind], node, scope)
        raise self._readings.error(node, f"Spark's {kind} is not supported here")

    def condition(self, node: SparkNode, scope: PlanScope) -> Value:
        """Return a condition."""
        value = self.read(node, scope)
        if value.is_untyped:
            return Value(lit(None, "bool"), boolean.or_null())
        return value

    def membership(self, node: SparkNode, kind: ApplyKind, scope: PlanScope) -> WaitingSubquery:
        """Return EXISTS or IN of a subquery."""
        mark = self._names.attribute("mark", boolean.or_null()) if kind == "mark" else None
        if node.kind == "Exists":
            right = self._planned(node, scope).relation
            while isinstance(right, ProjectionOf):
                right = right.input
            return WaitingSubquery(right, kind, (), mark, call_site())
        *wanted, query = node.children
        rows = self._planned(query, scope)
        members: list[Expr] = []
        outputs: list[tuple[Attribute, Expr]] = []
        for each, (_, attribute) in zip(wanted, rows.columns, strict=True):
            theirs = Value(ColumnRef(attribute.name), attribute.type)
            mine, theirs = met([self.read(each, scope), theirs])
            members.append(mine.expr)
            outputs.append((self._names.attribute(attribute.label, theirs.type), theirs.expr))
        right = ProjectionOf(rows.relation, tuple(outputs), site=call_site())
        return WaitingSubquery(right, kind, tuple(members), mark, call_site())

    # Names and constants

    def _column(self, node: SparkNode, scope: PlanScope) -> Value:
        attribute = scope.columns.get(node.id)
        if attribute is None:
            raise self._readings.error(
                node, f"the column {node.text('name')} says when rows come, or is of rows that are no input"
            )
        return Value(ColumnRef(attribute.name), attribute.type, attribute.is_untyped)

    def _outer_column(self, node: SparkNode, scope: PlanScope) -> Value:
        inside = node.tree("e") or (node.children[0] if node.children else None)
        assert inside is not None, "an outer reference names a column"
        at = scope.outer
        while at is not None:
            if inside.id in at.columns:
                return self.read(inside, at)
            if inside.written in at.values:
                return at.values[inside.written]
            at = at.outer
        raise self._readings.error(node, f"the column {inside.text('name')} is not there outside")

    def _literal(self, node: SparkNode, scope: PlanScope) -> Value:
        return constant_of(node.fields.get("value"), node.fields["dataType"])

    def _constant(self, node: SparkNode, scope: PlanScope) -> object:
        value = self.read(node, scope)
        if not isinstance(value.expr, LiteralValue):
            raise ExpressionError("takes a constant here")
        return value.expr.value

    def _cast(self, node: SparkNode, scope: PlanScope) -> Value:
        value = self.read(node.children[0], scope)
        types = {str(node.fields["dataType"]), str(node.children[0].fields.get("dataType"))}
        if value.type.kind == "timestamp" and "timestamp_ntz" in types:
            if node.text("timeZoneId") not in UTC_NAMES:
                raise ExpressionError(
                    "times without a zone are in UTC here, and the session's zone is another"
                )
        zone, is_try = node.text("timeZoneId"), bool(node.fields.get("isTry"))
        return cast_to(value, node.fields["dataType"], zone, is_try=is_try)

    def _check_bits(self, node: SparkNode) -> None:
        if any(has_32_bits(each.fields.get("dataType")) for each in node.children):
            raise ExpressionError(
                "floats of 32 bits are rounded to them in Spark, and not here: cast to double"
            )

    # Conditions

    def _in_list(self, node: SparkNode, scope: PlanScope) -> Value:
        value, *rest = met([self.read(each, scope) for each in node.children])
        if all(isinstance(each.expr, LiteralValue) and each.expr.value is not None for each in rest):
            constants = [each.expr.value for each in rest if isinstance(each.expr, LiteralValue)]
            return computed(lambda expr: expr.is_in(constants), value)
        return computed(lambda x, *others: reduce(lambda a, b: a | b, [x == o for o in others]), value, *rest)

    def _coalesced(self, node: SparkNode, scope: PlanScope) -> Value:
        return self._alike(node.children, scope, coalesce)

    def _alike(  # type: ignore[explicit-any]  # any number of expressions
        self, nodes: tuple[SparkNode, ...], scope: PlanScope, make: Callable[..., Expr]
    ) -> Value:
        values = met([self.read(each, scope) for each in nodes])
        if all(each.is_untyped for each in values):
            return values[0]
        return computed(make, *values)

    def _cases(self, node: SparkNode, scope: PlanScope) -> Value:
        pairs, rest = divmod(len(node.children), 2)
        conditions = [self.condition(node.children[2 * place], scope) for place in range(pairs)]
        nodes = [node.children[2 * place + 1] for place in range(pairs)] + list(node.children[2 * pairs :])
        values = met([self.read(each, scope) for each in nodes])
        if all(each.is_untyped for each in values):
            return values[0]

        def built(*exprs: Expr) -> Expr:
            tests, results = exprs[:pairs], exprs[pairs:]
            chain = when(tests[0]).then(results[0])
            for test, result in zip(tests[1:], results[1:], strict=False):
                chain = chain.when(test).then(result)
            return chain.otherwise(results[-1]) if rest else chain

        return computed(built, *conditions, *values)

    def _choice(self, node: SparkNode, scope: PlanScope) -> Value:
        condition = self.condition(node.children[0], scope)
        values = met([self.read(each, scope) for each in node.children[1:]])
        if all(each.is_untyped for each in values):
            return values[0]
        return computed(lambda c, a, b: when(c).then(a).otherwise(b), condition, *values)

    def _null_if(self, node: SparkNode, scope: PlanScope) -> Value:
        condition, value = self.condition(node.children[0], scope), self.read(node.children[1], scope)
        if value.is_untyped:
            return value
        return computed(lambda c, x: when(~c.fill_null(False)).then(x), condition, value)

    def _at_least(self, node: SparkNode, scope: PlanScope) -> Value:
        values = [self.read(each, scope) for each in node.children]
        least = node.fields["n"]
        assert isinstance(least, int)

        def built(*exprs: Expr) -> Expr:
            there = [
                each.is_not_null() & ~composed.isnan(each)
                if value.type.kind == "float"
                else each.is_not_null()
                for each, value in zip(exprs, values, strict=True)
            ]
            return reduce(lambda a, b: a + b, [when(each).then(1).otherwise(0) for each in there]) >= least

        return computed(built, *values)

    def _with_common(self, node: SparkNode, scope: PlanScope) -> Value:
        """Return an expression over others that it names: BETWEEN reads its operand twice."""
        (body,) = (each for each in node.children if each.kind != "CommonExpressionDef")
        for each in node.children:
            if each.kind == "CommonExpressionDef":
                scope.values[each.common] = self.read(each.children[0], scope)
        return self.read(body, scope)

    def _tried(self, node: SparkNode, scope: PlanScope) -> Value:
        """Return try_divide. Of others Spark's plan does not tell what fails and what is null."""
        (inner,) = node.children if len(node.children) == 1 else (node,)
        if inner.kind != "Divide":
            raise self._readings.error(node, f"Spark's {node.kind} is not supported here: write when(…, …)")
        left, right = (self.read(each, scope) for each in inner.children)
        quotient = arithmetic.divided("spark", left, right)
        return computed(lambda x, by: when(by != 0).then(x), quotient, right)

    # Subqueries

    def _planned(self, node: SparkNode, scope: PlanScope) -> PlanRows:
        plan = node.tree("plan")
        assert plan is not None, "a subquery has a plan"
        return self._query(plan, scope)

    def _scalar(self, node: SparkNode, scope: PlanScope) -> Value:
        rows = self._planned(node, scope)
        ((_, attribute),) = rows.columns
        output = self._names.attribute(attribute.label, attribute.type)
        right: Relation = ProjectionOf(
            rows.relation, ((output, ColumnRef(attribute.name)),), site=call_site()
        )
        scope.waiting.append(WaitingSubquery(right, "scalar", (), None, call_site()))
        return Value(ColumnRef(output.name), output.type.or_null())

    def _marked(self, node: SparkNode, scope: PlanScope) -> Value:
        membership = self.membership(node, "mark", scope)
        scope.waiting.append(membership)
        assert membership.mark is not None
        return Value(ColumnRef(membership.mark.name), membership.mark.type)

    def _summed(self, node: SparkNode, scope: PlanScope) -> Value:
        return self._aggregate(node, scope)

    # Parts of values

    def _struct(self, node: SparkNode, scope: PlanScope) -> Value:
        names = [self._constant(each, scope) for each in node.children[::2]]
        values = [self.read(each, scope) for each in node.children[1::2]]
        typed = [as_type(each, integer) if each.is_untyped else each for each in values]
        return computed(
            lambda *exprs: composed.struct(**dict(zip(map(str, names), exprs, strict=True))), *typed
        )

    def _updated(self, node: SparkNode, scope: PlanScope) -> Value:
        """Return a struct with further, other or fewer fields: `withField`, `dropFields`."""
        struct, *changes = node.children
        value = self.read(struct, scope)
        fields: dict[str, Value | str] = {name: name for name in value.type.names}
        for change in changes:
            name = change.text("name")
            if change.kind == "WithField":
                new = self.read(change.children[0], scope)
                fields[name] = as_type(new, integer) if new.is_untyped else new
            else:
                fields.pop(name, None)
        others = [each for each in fields.values() if isinstance(each, Value)]

        def built(whole: Expr, *new: Expr) -> Expr:
            rest = iter(new)
            parts = {
                name: next(rest) if isinstance(each, Value) else whole.list.field(each)
                for name, each in fields.items()
            }
            updated = composed.struct(**parts)
            return when(whole.is_not_null()).then(updated) if value.type.nullable else updated

        return computed(built, value, *others)

    def _field(self, node: SparkNode, scope: PlanScope) -> Value:
        value, ordinal = self.read(node.children[0], scope), node.fields["ordinal"]
        assert isinstance(ordinal, int)
        name = value.type.names[ordinal]
        return computed(lambda expr: expr.list.field(name), value)

    def _item(self, node: SparkNode, scope: PlanScope) -> Value:
        list_, place = node.children
        parts = scope.pivoted.get(list_.id)
        if parts is not None:
            number = self._constant(place, scope)
            assert isinstance(number, int)
            part = parts[number]
            return Value(ColumnRef(part.name), part.type)
        value, index = self.read(list_, scope), self.read(place, scope)
        if (
            isinstance(index.expr, LiteralValue)
            and isinstance(index.expr.value, int)
            and index.expr.value >= 0
        ):
            at = index.expr.value + 1
            return computed(lambda a: catalogued.element_at(a, at), value)
        return computed(
            lambda a, i: catalogued.element_at(a, when(i >= 0).then(i + 1).otherwise(0)), value, index
        )

    def _of_map(self, node: SparkNode, scope: PlanScope) -> Value:
        return computed(catalogued.try_element_at, *(self.read(each, scope) for each in node.children))

    def _converted(self, node: SparkNode, scope: PlanScope) -> Value:
        to: ColumnType = timestamp if node.fields["toType"] == "timestamp" else integer
        return computed(lambda expr: expr.cast(to), self.read(node.children[0], scope))

    # Functions

    def _formatted(self, node: SparkNode, scope: PlanScope) -> Value:
        pattern, *values = node.children
        self._check_bits(node)
        if re.search(r"%[^%a-zA-Z]*[xXo]", str(self._constant(pattern, scope))):
            for each in values:
                if self.read(each, scope).type.kind == "int" and each.fields.get("dataType") != "long":
                    raise ExpressionError("%x and %o write 64 bits here: cast the whole number to bigint")
        return self._called(SPARK_FUNCTIONS["FormatString"], node, scope)

    def _hashed(self, node: SparkNode, scope: PlanScope) -> Value:
        """Return a hash of columns. Narrow numbers have other hashes in Spark than wide ones."""
        if node.fields.get("seed") not in (None, 42, "42"):
            raise ExpressionError("another seed than 42 is not supported")
        values = [self.read(each, scope) for each in node.children]
        types = ", ".join(map(_hashed_as, node.children, values))
        return computed(lambda *exprs: composed.xxhash64_as(types, *exprs), *values)

    def _called(self, function: SparkFunction, node: SparkNode, scope: PlanScope) -> Value:
        form = function.form.replace("?", "")
        values: list[Value] = []
        constants: dict[int, object] = {}
        for place, operand in enumerate(node.children):
            is_text = (
                node.kind in _OF_BYTES and operand.kind == "Cast" and operand.text("dataType") == "binary"
            )
            child = operand.children[0] if is_text else operand
            letter = "*" if place >= len(form) else form[place]
            if letter == "k":
                constants[place] = self._constant(child, scope)
            elif letter == "e" or form.endswith("*"):
                values.append(self.read(child, scope))
            else:
                raise ExpressionError(f"with {len(node.children)} operands is not supported")
        if len(node.children) < len(function.form.partition("?")[0].rstrip("*")):
            raise ExpressionError(f"with {len(node.children)} operands is not supported")
        count = len(node.children)

        def built(*exprs: Expr) -> Expr:
            rest = iter(exprs)
            return function.make(
                *(constants[place] if place in constants else next(rest) for place in range(count))
            )

        if node.kind == "CreateMap":
            pairs = zip(met(values[::2]), met(values[1::2]), strict=True) if values else ()
            values = [each for pair in pairs for each in pair]
        elif function.form == "*" and len(values) > 1:
            values = met(values)
        outcome = computed(built, *values)
        if node.kind in ("Floor", "Ceil") and outcome.type.kind == "float":
            return computed(lambda expr: expr.cast("int"), outcome)
        return outcome


def _hashed_as(node: SparkNode, value: Value) -> str:
    """Return the name of a value's type in Spark's SQL; raises ExpressionError if it is not known."""
    while node.kind == "Alias":
        (node,) = node.children
    spark_type = node.text("dataType")
    if value.type.kind not in ("int", "float"):
        return value.type.kind
    if not spark_type:
        wide = "bigint" if value.type.kind == "int" else "double"
        raise ExpressionError(f"hashes numbers of 32 and of 64 bits otherwise: cast {node.kind} to {wide}")
    return {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}.get(
        spark_type, spark_type
    )


def _called(node: SparkNode) -> str:
    name = node.text("name")
    return f" {name}" if name else ""
