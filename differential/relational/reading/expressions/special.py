"""What stands in expressions and is no value by itself: subqueries, aggregates, window functions.

Each becomes a column. The stage where it stands remembers what makes the column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from ....columns.column_types import ColumnType, boolean, integer
from ....errors import ExpressionError
from ....expressions.expression import ColumnRef, Expr, lit, when
from ....operators.reducing.window_parts import Frame
from ...algebra.attributes import AttributeNames
from ...algebra.relations import (
    AggregateCall,
    Aggregation,
    ApplyKind,
    ProjectionOf,
    Relation,
    SortKey,
    WindowAnswer,
)
from ..texts import SqlText, children_of
from .calls import (
    aggregate_kind,
    aggregate_parts,
    check_ordered,
    check_range,
    frame_of,
    ranked,
    type_of_call,
)
from .expressions import Expressions
from .scopes import NameScope, value_of
from .stages import PendingApply, Stage, WindowCalls, WindowParts
from .values import Value, as_type, computed, met

__all__ = ["SpecialReader"]

_Query = Callable[[exp.Expression, NameScope | None], Relation]

_COMPARED: Final[dict[type[exp.Expression], Callable[[Expr, Expr], Expr]]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
}
_WINDOW_AGGREGATES: Final = ("count", "sum", "avg", "min", "max")


class SpecialReader:
    """Reads subqueries, aggregates and windows of expressions."""

    def __init__(self, text: SqlText, names: AttributeNames, query: _Query) -> None:
        self._text, self._names, self._query = text, names, query
        self.expressions = Expressions(text, names, self)

    def special(self, node: exp.Expression, stage: Stage) -> Value | None:
        """Return the value of a subquery, an aggregate or a window function; None for other nodes."""
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            return self._scalar(node, stage)
        if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
            return self._mark(self.membership(node, "mark", stage), stage)
        if type(node) in _COMPARED and (quantifier := _quantifier(node)) is not None:
            return self._quantified(node, quantifier, stage)
        if isinstance(node, exp.Window):
            return self._window(node, stage)
        if isinstance(node, exp.Filter):
            self._text.parts_of(node, "this", "expression")
            self._text.parts_of(node.args["expression"], "this")
            return self._aggregate(node.this, stage, node.args["expression"].this)
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._grouping(node, stage)
        return self._aggregate(node, stage, None) if aggregate_kind(node) is not None else None

    # Subqueries

    def membership(self, node: exp.Expression, kind: ApplyKind, stage: Stage) -> PendingApply:
        """Return EXISTS or IN of a subquery."""
        self._text.parts_of(node, "this", "query")
        mark = self._names.attribute("mark", boolean.or_null()) if kind == "mark" else None
        site = self._text.site(node)
        if isinstance(node, exp.Exists):
            right = self._query(node.this, stage.scope)
            while isinstance(right, ProjectionOf):
                right = right.input
            return PendingApply(right, kind, (), mark, site)
        wanted = node.this
        nodes = children_of(wanted, "expressions") if isinstance(wanted, exp.Tuple) else [wanted]
        right = self._query(node.args["query"], stage.scope)
        return self._among([self.expressions.read(each, stage) for each in nodes], right, kind, mark, node)

    def _among(  # what a membership has
        self, values: list[Value], right: Relation, kind: ApplyKind, mark: object, node: exp.Expression
    ) -> PendingApply:
        if len(right.attributes) != len(values):
            raise self._text.error(
                node,
                f"{self._text.written(node)}: {len(right.attributes)} columns in it, not {len(values)}",
            )
        members: list[Expr] = []
        columns = []
        for value, attribute in zip(values, right.attributes, strict=True):
            try:
                mine, theirs = met([value, value_of(attribute)])
                type_ = computed(lambda a, b: a.fill_null(b), mine, theirs).type
                mine, theirs = as_type(mine, type_), as_type(theirs, type_)
            except ExpressionError:
                raise self._text.error(
                    node, f"{self._text.written(node)} compares {value.type} with {attribute.type}"
                ) from None
            members.append(mine.expr)
            columns.append((attribute, theirs))
        if any(not isinstance(each.expr, ColumnRef) for _, each in columns):
            outputs = tuple((self._names.attribute(old.label, new.type), new.expr) for old, new in columns)
            right = ProjectionOf(right, outputs, site=right.site)
        marked = None if mark is None else self._names.attribute("mark", boolean.or_null())
        return PendingApply(right, kind, tuple(members), marked, self._text.site(node))

    def _mark(self, membership: PendingApply, stage: Stage) -> Value:
        stage.pending.append(membership)
        assert membership.mark is not None
        return value_of(membership.mark)

    def _scalar(self, node: exp.Expression, stage: Stage) -> Value:
        right = self._query(node, stage.scope)
        if len(right.attributes) != 1:
            raise self._text.error(
                node, f"a subquery that is a value has one column, not {len(right.attributes)}"
            )
        attribute = right.attributes[0]
        # Under a name of its own: the subquery may be read from a WITH that others read, too.
        output = self._names.attribute(attribute.label, attribute.type, is_untyped=attribute.is_untyped)
        right = ProjectionOf(right, ((output, ColumnRef(attribute.name)),), site=right.site)
        stage.pending.append(PendingApply(right, "scalar", (), None, self._text.site(node)))
        return value_of(output.or_null())

    def _quantified(self, node: exp.Expression, quantifier: exp.Expression, stage: Stage) -> Value:
        """Return `x < ALL (…)` and its like, from the least and the greatest value of the subquery."""
        self._text.parts_of(node, "this", "expression")
        self._text.parts_of(quantifier, "this")
        value, is_all = self.expressions.read(node.this, stage), isinstance(quantifier, exp.All)
        right = self._query(quantifier.this, stage.scope)
        if (isinstance(node, exp.EQ) and not is_all) or (isinstance(node, exp.NEQ) and is_all):
            mark = self._names.attribute("mark", boolean.or_null())
            outcome = self._mark(self._among([value], right, "mark", mark, node), stage)
            return computed(lambda expr: ~expr, outcome) if is_all else outcome
        if len(right.attributes) != 1:
            raise self._text.error(node, f"the subquery has {len(right.attributes)} columns, not one")
        column = ColumnRef(right.names[0])
        calls = {
            kind: self._names.attribute(kind, right.attributes[0].type.or_null()) for kind in ("min", "max")
        }
        counts = {kind: self._names.attribute(kind, integer) for kind in ("rows", "values")}
        summed = Aggregation(right, (), (
            *(AggregateCall(attribute, kind, column) for kind, attribute in calls.items()),
            AggregateCall(counts["rows"], "count"), AggregateCall(counts["values"], "count", column),
        ), site=self._text.site(node))  # fmt: skip
        stage.pending.append(PendingApply(summed, "scalar", (), None, summed.site))
        compare = _COMPARED[type(node)]
        value, least = met([value, value_of(calls["min"])])
        greatest = met([value, value_of(calls["max"])])[1]
        rows, values = value_of(counts["rows"]), value_of(counts["values"])

        def truth(x: Expr, low: Expr, high: Expr, n: Expr, entry: Expr) -> Expr:
            if isinstance(node, exp.EQ | exp.NEQ):
                holds = compare(x, low) & compare(x, high) if is_all else compare(x, low) | compare(x, high)
            else:
                takes_low = isinstance(node, exp.LT | exp.LTE) == is_all
                holds = compare(x, low if takes_low else high)
            decided = (~holds if is_all else holds).fill_null(False)
            unknown = x.is_null() | (n != entry)
            return (
                when(n.fill_null(0) == 0).then(lit(is_all)).when(decided).then(lit(not is_all))
                .when(unknown).then(lit(None, "bool")).otherwise(lit(is_all))
            )  # fmt: skip

        return computed(truth, value, least, greatest, rows, values)

    # Aggregates

    def _aggregate(self, node: exp.Expression, stage: Stage, condition: exp.Expression | None) -> Value:
        kind = aggregate_kind(node)
        if kind is None:
            raise self._text.error(node, f"{self._text.written(node)} is no aggregate")
        if stage.aggregates is None or stage.inner is None:
            raise self._text.error(
                node, f"the aggregate {self._text.written(node)} cannot stand in {stage.what}"
            )
        inner = stage.inner
        parts = aggregate_parts(
            self._text, node, kind, lambda each: self.expressions.read(each, inner),
            lambda each: self.sort_key(each, self.expressions.read(each.this, inner)),
        )  # fmt: skip
        where = None if condition is None else self.expressions.truth(condition, inner).expr
        type_ = self._type(node, kind, parts.argument, parts.by, is_distinct=parts.is_distinct)
        argument = None if parts.argument is None else parts.argument.expr
        self._check_own(node, argument, stage)
        by = parts.order if parts.by is None else (SortKey(parts.by.expr, False, False),)
        second = None if parts.second is None else parts.second.expr
        written = "|".join(
            [kind, str(parts.is_distinct), repr(parts.option),
             *(each.describe() if each is not None else "" for each in (argument, where, second)),
             *(f"{each.expr.describe()} {each.descending} {each.nulls_last}" for each in by)]
        )  # fmt: skip
        entry = stage.aggregates.by_text.get(written)
        if entry is None:
            entry = AggregateCall(
                self._names.attribute(kind, type_), kind, argument, by, parts.is_distinct, where, second,
                parts.option,
            )  # fmt: skip
            stage.aggregates.by_text[written] = entry
            stage.aggregates.calls.append(entry)
        return value_of(entry.attribute)

    def _type(
        self, node: exp.Expression, kind: str, argument: Value | None, by: Value | None, *, is_distinct: bool
    ) -> ColumnType:
        try:
            return type_of_call(kind, argument, by, is_distinct=is_distinct)
        except ExpressionError as error:
            message = str(error).partition("\n")[0]
            raise self._text.error(node, f"{self._text.written(node)}: {message}") from None

    def _check_own(self, node: exp.Expression, argument: Expr | None, stage: Stage) -> None:
        """Raise SqlError for an aggregate of columns of the query around this one only."""
        columns = frozenset() if argument is None else argument.columns()
        own = {each.name for source in stage.scope.sources for each in source.columns}
        if columns and columns.isdisjoint(own) and stage.scope.parent is not None:
            outer = {each.name for source in stage.scope.parent.sources for each in source.columns}
            if columns <= outer:
                raise self._text.error(
                    node,
                    f"{self._text.written(node)} is an aggregate of the query around this; compute it there",
                )

    def _grouping(self, node: exp.Expression, stage: Stage) -> Value:
        self._text.parts_of(node, "expressions")
        if stage.aggregates is None or stage.inner is None:
            raise self._text.error(node, f"{self._text.written(node)} cannot stand in {stage.what}")
        keys, places = stage.aggregates.keys, []
        for each in children_of(node, "expressions"):
            written = self.expressions.read(each, stage.inner).expr.describe()
            if written not in keys:
                raise self._text.error(each, f"{self._text.written(each)} is no key of GROUP BY")
            places.append(keys.index(written))
        chosen = tuple(places) or tuple(range(len(keys)))
        if chosen not in stage.aggregates.groupings:
            stage.aggregates.groupings[chosen] = self._names.attribute("grouping", integer)
        return value_of(stage.aggregates.groupings[chosen])

    # Windows

    def _window(self, node: exp.Expression, stage: Stage) -> Value:
        self._text.parts_of(node, "this", "partition_by", "order", "spec", "alias", "over")
        if stage.windows is None:
            raise self._text.error(
                node, f"the window {self._text.written(node)} cannot stand in {stage.what}"
            )
        inside = Stage("a window", stage.scope, stage.aggregates, None, stage.pending, {}, stage.inner)
        keys, order, frame = self._placed(node, self._spec(node, stage, stage.windows), inside)
        answer, type_ = self._answer(node.this, inside, order)
        window = "|".join([
            *(key.describe() for key in keys), ";",
            *(f"{key.expr.describe()} {key.descending} {key.nulls_last}" for key in order), repr(frame),
        ])  # fmt: skip
        read = (
            answer.kind,
            str(answer.amount),
            *(each.describe() for each in (answer.argument, answer.default) if each is not None),
        )
        written = f"{window}|{'|'.join(read)}"
        entry = stage.windows.answers.get(written)
        if entry is None:
            parts = stage.windows.windows.setdefault(
                window, WindowParts(keys, order, frame, [], self._text.site(node))
            )
            parts.answers.append(answer)
            entry = stage.windows.answers[written] = Value(ColumnRef(answer.attribute.name), type_)
        return entry

    def _placed(
        self, node: exp.Expression, spec: exp.Expression, inside: Stage
    ) -> tuple[tuple[Expr, ...], tuple[SortKey, ...], Frame | None]:
        """Return the keys, the order and the frame of a window."""
        keys = tuple(self.expressions.read(each, inside).expr for each in children_of(spec, "partition_by"))
        by = spec.args.get("order")
        if by is not None:
            self._text.parts_of(by, "expressions")
        ordered = [] if by is None else children_of(by, "expressions")
        values = [self.expressions.read(each.this, inside) for each in ordered]
        order = tuple(self.sort_key(each, value) for each, value in zip(ordered, values, strict=True))
        frame = frame_of(self._text, spec.args.get("spec"), values)
        check_range(self._text, node, frame, values)
        return keys, order, frame

    def unused_windows(self, stage: Stage) -> list[tuple[exp.Expression, Expr]]:
        """Return what the windows of the WINDOW clause read that no function names; raise SqlError for one
        that has no meaning.
        """
        assert stage.windows is not None, "SELECT may have windows"
        inside = Stage("a window", stage.scope, stage.aggregates, None, stage.pending, {}, stage.inner)
        read: list[tuple[exp.Expression, Expr]] = []
        for name, spec in stage.named_windows.items():
            if name not in stage.windows.named:
                self._text.parts_of(spec, "this", "partition_by", "order", "spec", "over")
                keys, order, _ = self._placed(spec, spec, inside)
                read += [(spec, each) for each in (*keys, *(key.expr for key in order))]
        return read

    def _spec(self, node: exp.Expression, stage: Stage, windows: WindowCalls) -> exp.Expression:
        """Return the window itself, or the one of the WINDOW clause that it names."""
        name = node.text("alias").lower()
        if not name:
            return node
        named = stage.named_windows.get(name)
        if (
            named is None
            or children_of(node, "partition_by")
            or node.args.get("order")
            or node.args.get("spec")
        ):
            raise self._text.error(node, f"there is no window {name} in WINDOW, or it is not named alone")
        self._text.parts_of(named, "this", "partition_by", "order", "spec", "over")
        windows.named.add(name)
        return named

    def sort_key(self, node: exp.Expression, value: Value) -> SortKey:
        """Return one key of ORDER BY; where nulls come is the dialect's affair, which sqlglot knows."""
        self._text.parts_of(node, "this", "desc", "nulls_first")
        if not value.type.has_order:
            raise self._text.error(node, f"{self._text.written(node)} is {value.type}, which has no order")
        return SortKey(value.expr, bool(node.args.get("desc")), not node.args.get("nulls_first"))

    def _answer(self, node: exp.Expression, stage: Stage, order: tuple[SortKey, ...]):  # type: ignore[no-untyped-def]
        def read(each: exp.Expression) -> Value:
            return self.expressions.read(each, stage)

        try:
            call = ranked(self._text, node, read)
            if call is not None:
                check_ordered(order, call.kind)
                attribute = self._names.attribute(call.kind, call.type)
                return WindowAnswer(attribute, call.kind, call.argument, call.amount, call.default), call.type
        except ExpressionError as error:
            raise self._text.error(node, f"{self._text.written(node)} {error}") from None
        condition = None
        if isinstance(node, exp.Filter):
            self._text.parts_of(node, "this", "expression")
            condition, node = self.expressions.truth(node.args["expression"].this, stage), node.this
        kind = aggregate_kind(node)
        if kind == "any_value":
            kind = "min"  # one of several that would do
        if kind not in _WINDOW_AGGREGATES:
            raise self._text.error(node, f"{self._text.written(node)} is no function of a window here")
        parts = aggregate_parts(
            self._text, node, kind, read, lambda each: self.sort_key(each, read(each.this))
        )
        if parts.is_distinct:
            raise self._text.error(node, f"{self._text.written(node)}: DISTINCT cannot stand in a window")
        argument = parts.argument
        if condition is not None:
            seen = argument or Value(lit(1), integer)
            argument = computed(lambda test, x: when(test).then(x), condition, seen)
        type_ = self._type(node, kind, argument, None, is_distinct=False).or_null(kind != "count")
        attribute = self._names.attribute(kind, type_)
        return WindowAnswer(attribute, kind, None if argument is None else argument.expr), type_


def _quantifier(node: exp.Expression) -> exp.Expression | None:
    """Return the ANY or ALL that a comparison has on its right, or None. sqlglot takes `ALL ((SELECT …) …)`
    for the call of a function.
    """
    right = node.args["expression"]
    if isinstance(right, exp.Anonymous) and len(right.expressions) == 1:
        query = right.expressions[0]
        if right.name.lower() in ("all", "some") and isinstance(query, exp.Query | exp.Values):
            return (exp.All if right.name.lower() == "all" else exp.Any)(this=query.copy())
    return right if isinstance(right, exp.Any | exp.All) else None
