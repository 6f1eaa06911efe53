"""The nodes of a plan as relations.

Columns are known by the numbers that Spark gives attributes. A subtree that is there twice, but for these
numbers, is one relation, read under other names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from timely.user_code.call_site import CallSite, at_site, call_site

from ...collections.conditions.equalities import is_null_with
from ...columns.schema import Schema
from ...expressions.expression import ColumnRef, Expr, LiteralValue, lit
from ..algebra.attributes import Attribute, AttributeNames
from ..algebra.relations import (
    Aggregation,
    ApplyOf,
    Bodies,
    DistinctRows,
    FirstRowsOf,
    JoinKind,
    JoinOf,
    ProjectionOf,
    Recursion,
    RecursionVariable,
    Relation,
    Selection,
    SetKind,
    SetOperation,
    SortKey,
    Unnesting,
)
from ..reading.expressions.values import Value, as_type, common_type
from .plan_aggregates import PlanAggregates
from .plan_expressions import PlanExpressions
from .plan_leaves import leaf_rows
from .plan_nodes import PlanReadings, SparkNode
from .plan_scopes import PlanRows, PlanScope, WaitingSubquery
from .plan_types import type_of
from .plan_windows import PlanWindows, sort_key

__all__ = ["PlanRelations"]

_JOINS: Final[Mapping[str, JoinKind]] = {
    "Inner": "inner", "Cross": "inner", "LeftOuter": "left", "RightOuter": "right", "FullOuter": "full",
}  # fmt: skip
_PASSED: Final = frozenset((
    "SubqueryAlias", "View", "ResolvedHint", "Repartition", "RepartitionByExpression", "Subquery",
    "RebalancePartitions", "LocalLimit",
))  # fmt: skip
"""Nodes that change no row. A local limit is below a global one, which says it again."""


class PlanRelations:
    """Reads nodes; `outer` is the scope of the query around a subquery."""

    def __init__(self, readings: PlanReadings, names: AttributeNames, tables: Mapping[str, Schema]) -> None:
        self._readings, self._names, self._tables = readings, names, tables
        self._aggregates = PlanAggregates(readings, names)
        self._expressions = PlanExpressions(readings, names, self.read, self._summed)
        self._windows = PlanWindows(readings, names, self._expressions, self._aggregates)
        self._shared: dict[str, tuple[tuple[int, ...], PlanRows]] = {}
        self._tables_of_with: dict[int, PlanRows] = {}
        self._loops: dict[int, tuple[Attribute, ...]] = {}
        self._readers: Mapping[str, Callable[[SparkNode, PlanScope | None], PlanRows]] = {
            "Join": self._joined,
            "LateralJoin": self._lateral,
            "Aggregate": self._grouped,
            "Distinct": self._distinct,
            "Deduplicate": self._deduplicated,
            "Union": self._united,
            "Except": self._two_sets,
            "Intersect": self._two_sets,
            "Expand": self._expanded,
            "Generate": self._generated,
            "Window": lambda node, outer: self._windows.read(node, self.read(node.children[0], outer), outer),
            "WithCTE": self._with,
            "CTERelationRef": self._of_with,
            "UnionLoop": self._loop,
            "UnionLoopRef": self._of_loop,
        }

    @property
    def _site(self) -> CallSite:
        return call_site()

    def read(self, node: SparkNode, outer: PlanScope | None, *, ordered: bool = False) -> PlanRows:
        """Return the rows of a node. If `ordered`, with the order that a sort beneath gives them."""
        with at_site(node.sites):
            return self._rows(node, outer, ordered=ordered)

    def _rows(self, node: SparkNode, outer: PlanScope | None, *, ordered: bool) -> PlanRows:
        if node.kind in _PASSED:
            return self.read(node.children[0], outer, ordered=ordered)
        rows = leaf_rows(self._readings, self._names, self._site, self._tables, node)
        if rows is not None:
            return rows
        text, numbers = _shape_of(node)
        if ordered or "OuterReference" in text:
            return self._read(node, outer, ordered=ordered)
        before = self._shared.get(text)
        if before is None:
            rows = self._read(node, outer, ordered=False)
            self._shared[text] = (numbers, rows)
            return rows
        same = dict(zip(before[0], numbers, strict=True))
        rows = before[1]
        return self._renamed(rows, [same.get(number, number) for number, _ in rows.columns], same)

    def _read(self, node: SparkNode, outer: PlanScope | None, *, ordered: bool) -> PlanRows:
        if node.kind == "Project":
            return self._project(node, outer, ordered=ordered)
        if node.kind == "Filter":
            return self._filter(node, outer, ordered=ordered)
        if node.kind == "Sort":
            return self._sort(node, outer, ordered=ordered)
        if node.kind in ("GlobalLimit", "Offset"):
            return self._limit(node, outer, ordered=ordered)
        reader = self._readers.get(node.kind)
        if reader is None:
            raise self._readings.error(node, _why_not(node))
        return reader(node, outer)

    def _summed(self, node: SparkNode, scope: PlanScope) -> Value:
        return self._aggregates.read(node, scope, self._expressions)

    def _renamed(self, rows: PlanRows, numbers: list[int], same: Mapping[int, int]) -> PlanRows:
        """Return the rows under new names, as columns with these numbers."""
        renamed: dict[str, Attribute] = {}
        for each in rows.relation.attributes:
            renamed[each.name] = self._names.attribute(each.label, each.type, is_untyped=each.is_untyped)
        outputs = tuple((renamed[name], ColumnRef(name)) for name in rows.relation.names)
        relation = ProjectionOf(rows.relation, outputs, site=self._site)
        columns = tuple(
            (number, renamed[attribute.name])
            for number, (_, attribute) in zip(numbers, rows.columns, strict=True)
        )
        pivoted = {
            same.get(number, number): tuple(renamed[each.name] for each in parts)
            for number, parts in rows.pivoted.items()
        }
        return PlanRows(relation, columns, (), pivoted)

    def by_place(self, rows: PlanRows) -> Relation:
        """Return a relation with Spark's columns, in their order, and no others."""
        names = tuple(attribute.name for _, attribute in rows.columns)
        if names == rows.relation.names:
            return rows.relation
        outputs: list[tuple[Attribute, Expr]] = []
        for _, each in rows.columns:
            taken = any(each.name == other.name for other, _ in outputs)
            attribute = self._names.attribute(each.label, each.type) if taken else each
            outputs.append((attribute, ColumnRef(each.name)))
        return ProjectionOf(rows.relation, tuple(outputs), site=self._site)

    # Projections, filters, orders

    def _project(self, node: SparkNode, outer: PlanScope | None, *, ordered: bool) -> PlanRows:
        self._readings.check(node, "projectList")
        rows = self.read(node.children[0], outer, ordered=ordered)
        scope = PlanScope.of(rows, outer=outer)
        items = [(each, self._item(each, scope)) for each in node.trees("projectList")]
        relation = scope.attached(rows.relation)
        return self._outputs(relation, items, scope, rows.order)

    def _item(self, node: SparkNode, scope: PlanScope) -> Value:
        if node.kind == "Alias" and node.written in scope.values:
            return scope.values[node.written]
        if node.kind == "AttributeReference" and node.id in scope.pivoted:
            part = scope.pivoted[node.id][0]
            return Value(ColumnRef(part.name), part.type)
        return self._expressions.read(node.children[0] if node.kind == "Alias" else node, scope)

    def _outputs(
        self,
        relation: Relation,
        items: list[tuple[SparkNode, Value]],
        scope: PlanScope,
        order: tuple[SortKey, ...] = (),
    ) -> PlanRows:
        outputs: list[tuple[Attribute, Expr]] = []
        there: dict[str, Attribute] = {}
        columns: list[tuple[int, Attribute]] = []
        pivoted: dict[int, tuple[Attribute, ...]] = {}
        for node, value in items:
            parts = scope.pivots.get(id(node.children[0])) if node.children else scope.pivoted.get(node.id)
            if parts is not None:
                pivoted[node.id] = parts
                outputs += [(each, ColumnRef(each.name)) for each in parts if each.name not in there]
                there.update({each.name: each for each in parts})
                columns.append((node.id, parts[0]))
                continue
            name = value.expr.name if isinstance(value.expr, ColumnRef) else ""
            if node.kind == "AttributeReference" and name in there:
                columns.append((node.id, there[name]))
                continue
            if node.kind == "AttributeReference" and name in relation.names:
                attribute = there[name] = Attribute(name, node.text("name"), value.type, value.is_untyped)
            else:
                attribute = self._names.attribute(node.text("name"), value.type, is_untyped=value.is_untyped)
            outputs.append((attribute, value.expr))
            columns.append((node.id, attribute))
        keys: list[SortKey] = []
        for key in order:
            name = key.expr.name if isinstance(key.expr, ColumnRef) else ""
            if name not in there:
                hidden = self._names.attribute("order", key.expr.type_in(scope.schema(relation)))
                outputs.append((hidden, key.expr))
                keys.append(SortKey(ColumnRef(hidden.name), key.descending, key.nulls_last))
            else:
                keys.append(key)
        if not outputs:
            outputs.append((self._names.attribute("(one)", type_of("long")), lit(1)))
        projected = ProjectionOf(relation, tuple(outputs), site=self._site)
        return PlanRows(projected, tuple(columns), tuple(keys), pivoted)

    def _filter(self, node: SparkNode, outer: PlanScope | None, *, ordered: bool) -> PlanRows:
        self._readings.check(node, "condition")
        rows = self.read(node.children[0], outer, ordered=ordered)
        scope = PlanScope.of(rows, outer=outer)
        condition = node.tree("condition")
        assert condition is not None, "a filter has a condition"
        relation = self._where(rows.relation, condition, scope)
        return PlanRows(relation, rows.columns, rows.order, rows.pivoted)

    def _where(self, relation: Relation, condition: SparkNode, scope: PlanScope) -> Relation:
        """Return the rows where a condition holds: first the parts of it that need no subquery."""
        plain: list[Expr] = []
        memberships: list[WaitingSubquery] = []
        for part in _conjuncts(condition):
            negated, bare = False, part
            while bare.kind == "Not":
                negated, bare = not negated, bare.children[0]
            if bare.kind in ("Exists", "InSubquery"):
                memberships.append(self._expressions.membership(bare, "anti" if negated else "semi", scope))
            else:
                plain.append(self._expressions.condition(part, scope).expr)
        added = frozenset[str]().union(*(each.adds for each in scope.waiting))
        first = tuple(each for each in plain if added.isdisjoint(each.columns()))
        last = tuple(each for each in plain if not added.isdisjoint(each.columns()))
        if first:
            relation = Selection(relation, first, site=self._site)
        late = [each for each in memberships if any(not added.isdisjoint(m.columns()) for m in each.members)]
        for each in memberships:
            if each not in late:
                relation = each.to(relation)
        for waiting in scope.waiting:
            needed = any(is_null_with(each, waiting.adds) for each in last)
            relation = waiting.to(relation, is_needed=needed)
        scope.waiting.clear()
        if last:
            relation = Selection(relation, last, site=self._site)
        for each in late:
            relation = each.to(relation)
        return relation

    def _sort(self, node: SparkNode, outer: PlanScope | None, *, ordered: bool) -> PlanRows:
        self._readings.check(node, "order", "global")
        rows = self.read(node.children[0], outer)
        scope = PlanScope.of(rows, outer=outer)
        order = tuple(sort_key(each, self._expressions, scope) for each in node.trees("order"))
        if not ordered or not node.fields.get("global"):
            return rows
        return PlanRows(scope.attached(rows.relation), rows.columns, order, rows.pivoted)

    def _limit(self, node: SparkNode, outer: PlanScope | None, *, ordered: bool) -> PlanRows:
        limit, offset, below = None, 0, node
        if node.kind == "GlobalLimit":
            limit = self._number(node, "limitExpr")
            below = node.children[0]
            below = below.children[0] if below.kind == "LocalLimit" else below
        if below.kind == "Offset":
            offset = self._number(below, "offsetExpr")
            below = below.children[0]
        rows = self.read(below, outer, ordered=True)
        relation = rows.relation if rows.order else self.by_place(rows)
        cut = FirstRowsOf(relation, rows.order, limit, offset, site=self._site)
        outcome = PlanRows(cut, rows.columns, rows.order, rows.pivoted)
        if ordered:
            return outcome
        return PlanRows(self.by_place(outcome), rows.columns) if rows.order else outcome

    def _number(self, node: SparkNode, name: str) -> int:
        self._readings.check(node, name)
        written = node.tree(name)
        value = None if written is None else self._expressions.read(written, PlanScope({})).expr
        if not isinstance(value, LiteralValue) or type(value.value) is not int:
            raise self._readings.error(node, "LIMIT and OFFSET take a whole number as a constant")
        return value.value

    # Joins

    def _joined(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        self._readings.check(node, "joinType", "condition")
        left, right = (self.read(each, outer) for each in node.children)
        kind, written = node.chosen("joinType"), node.tree("condition")
        scope = PlanScope.of(left, right, outer=outer)
        if kind in ("LeftSemi", "LeftAnti"):
            conditions = self._on(node, written, scope, "LeftSemi")
            inner = Selection(right.relation, conditions, site=self._site) if conditions else right.relation
            apply = ApplyOf(left.relation, inner, "semi" if kind == "LeftSemi" else "anti", site=self._site)
            return left.typed(apply)
        if kind not in _JOINS:
            raise self._readings.error(node, f"Spark's join {kind} is not supported here")
        both = PlanRows(
            JoinOf(left.relation, right.relation, "inner", (), site=self._site),
            (*left.columns, *right.columns), (), {**left.pivoted, **right.pivoted},
        )  # fmt: skip
        if _JOINS[kind] == "inner" and written is not None and "plan" in written.written:
            return both.typed(self._where(both.relation, written, scope))
        conditions = self._on(node, written, scope, kind)
        relation = JoinOf(left.relation, right.relation, _JOINS[kind], conditions, site=self._site)
        return both.typed(relation)

    def _on(
        self, node: SparkNode, written: SparkNode | None, scope: PlanScope, kind: str
    ) -> tuple[Expr, ...]:
        if written is None:
            return ()
        conditions = tuple(self._expressions.condition(each, scope).expr for each in _conjuncts(written))
        if scope.waiting:
            raise self._readings.error(node, f"a subquery cannot stand in the condition of a join {kind}")
        return conditions

    def _lateral(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        self._readings.check(node, "joinType", "condition", "right")
        left = self.read(node.children[0], outer)
        scope = PlanScope.of(left, outer=outer)
        subquery = node.tree("right")
        plan = None if subquery is None else subquery.tree("plan")
        assert plan is not None, "a lateral join has a plan"
        right, kind = self.read(plan, scope), node.chosen("joinType")
        if kind not in ("Inner", "Cross", "LeftOuter"):
            raise self._readings.error(node, f"a lateral join {kind} is not supported here")
        both = PlanScope.of(left, right, outer=outer)
        conditions = self._on(node, node.tree("condition"), both, kind)
        apply = ApplyOf(
            left.relation, right.relation, "left" if kind == "LeftOuter" else "inner", (), None, conditions,
            site=self._site,
        )  # fmt: skip
        return PlanRows(apply, (*left.columns, *right.columns)).typed(apply)

    # Groups and sets

    def _grouped(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        self._readings.check(node, "groupingExpressions", "aggregateExpressions")
        rows = self.read(node.children[0], outer)
        inner = PlanScope.of(rows, outer=outer)
        grouped = PlanScope({}, outer, inner=inner, calls={})
        keys: list[tuple[Attribute, Expr]] = []
        seen: set[str] = set()
        for each in node.trees("groupingExpressions"):
            value = self._item(each, inner)
            name = value.expr.name if isinstance(value.expr, ColumnRef) else ""
            if name in rows.relation.names and name not in seen:
                attribute = Attribute(name, name, value.type, value.is_untyped)
            else:
                attribute = self._names.attribute("key", value.type, is_untyped=value.is_untyped)
            seen.add(attribute.name)
            keys.append((attribute, value.expr))
            grouped.values[each.written] = Value(ColumnRef(attribute.name), attribute.type)
        items = [(each, self._item(each, grouped)) for each in node.trees("aggregateExpressions")]
        assert grouped.calls is not None
        relation = inner.attached(rows.relation)
        groups = Aggregation(relation, tuple(keys), tuple(grouped.calls.values()), site=self._site)
        return self._outputs(grouped.attached(groups), items, grouped)

    def _distinct(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        rows = self.read(node.children[0], outer)
        relation = DistinctRows(self._exactly(rows), site=self._site)
        return PlanRows(relation, rows.columns)

    def _exactly(self, rows: PlanRows) -> Relation:
        """Return a relation with Spark's columns and no others, each once."""
        once = dict(rows.columns)
        names = dict.fromkeys(each.name for each in once.values())
        if tuple(names) == rows.relation.names:
            return rows.relation
        by_name = {each.name: each for each in once.values()}
        outputs = tuple((by_name[name], ColumnRef(name)) for name in names)
        return ProjectionOf(rows.relation, outputs, site=self._site)

    def _deduplicated(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        self._readings.check(node, "keys")
        rows = self.read(node.children[0], outer)
        keys = {each.id for each in node.trees("keys")}
        relation = self._exactly(rows)
        if keys >= {number for number, _ in rows.columns}:
            return PlanRows(DistinctRows(relation, site=self._site), rows.columns)
        columns = dict(rows.columns)
        groups = tuple(ColumnRef(columns[number].name) for number in sorted(keys))
        return PlanRows(FirstRowsOf(relation, (), 1, 0, groups, site=self._site), rows.columns)

    def _united(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        self._readings.check(node, "byName", "allowMissingCol")
        sides = [self.read(each, outer) for each in node.children]
        numbers = [number for number, _ in sides[0].columns]
        return self._combined([self.by_place(each) for each in sides], numbers, "union", is_all=True)

    def _two_sets(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        self._readings.check(node, "isAll")
        sides = [self.read(each, outer) for each in node.children]
        numbers = [number for number, _ in sides[0].columns]
        kind: SetKind = "except" if node.kind == "Except" else "intersect"
        is_all = bool(node.fields.get("isAll"))
        return self._combined([self.by_place(each) for each in sides], numbers, kind, is_all=is_all)

    def _combined(
        self, sides: list[Relation], numbers: list[int], kind: SetKind, *, is_all: bool
    ) -> PlanRows:
        relation = sides[0]
        for other in sides[1:]:
            attributes = []
            for mine, theirs in zip(relation.attributes, other.attributes, strict=True):
                values = [Value(ColumnRef(each.name), each.type, each.is_untyped) for each in (mine, theirs)]
                type_, is_untyped = common_type(values)
                attributes.append(self._names.attribute(mine.label, type_, is_untyped=is_untyped))
            relation = SetOperation(relation, other, kind, is_all, tuple(attributes), site=self._site)
        return PlanRows(relation, tuple(zip(numbers, relation.attributes, strict=True)))

    def _expanded(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        """Return each row as often as there are projections: grouping sets, and unpivot."""
        self._readings.check(node, "projections", "output")
        rows = self.read(node.children[0], outer)
        outputs, lists = node.trees("output"), node.fields.get("projections")
        assert isinstance(lists, list), "the projections are read from Spark"
        sides: list[Relation] = []
        for each in lists:
            scope = PlanScope.of(rows, outer=outer)
            holder = SparkNode("Expand", {"projections": each}, ())
            columns: list[tuple[Attribute, Expr]] = []
            for item, output in zip(holder.trees("projections"), outputs, strict=True):
                value = self._expressions.read(item, scope)
                if value.is_untyped:
                    value = as_type(value, type_of(output.fields["dataType"]))
                columns.append((self._names.attribute(output.text("name"), value.type), value.expr))
            sides.append(ProjectionOf(scope.attached(rows.relation), tuple(columns), site=self._site))
        combined = self._combined(sides, [each.id for each in outputs], "union", is_all=True)
        return PlanRows(combined.relation, combined.columns)

    def _generated(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        self._readings.check(node, "generator", "unrequiredChildIndex", "outer", "generatorOutput")
        rows, generator = self.read(node.children[0], outer), node.tree("generator")
        assert generator is not None, "a generate has a generator"
        if generator.kind not in ("Explode", "PosExplode"):
            raise self._readings.error(generator, f"Spark's generator {generator.kind} is not supported here")
        scope = PlanScope.of(rows, outer=outer)
        value = self._expressions.read(generator.children[0], scope)
        if value.type.kind != "array":
            raise self._readings.error(generator, f"explode of {value.type}: write map_entries(…) in it")
        is_outer = bool(node.fields.get("outer"))
        *places, column = node.trees("generatorOutput")
        element_type = value.type.parts[0]
        element = self._names.attribute(
            column.text("name"), element_type.or_null(is_outer or element_type.nullable)
        )
        position = self._names.attribute("pos", type_of("long").or_null(is_outer)) if places else None
        unnested = Unnesting(
            scope.attached(self._exactly(rows)), value.expr, element, position, is_outer, site=self._site
        )
        added = [(column.id, element)]
        if position is not None:
            added.insert(0, (places[0].id, position))
        return PlanRows(unnested, (*rows.columns, *added))

    # WITH

    def _with(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        *definitions, plan = sorted(node.children, key=lambda each: each.kind != "CTERelationDef")
        for each in definitions:
            number = each.fields["id"]
            assert isinstance(number, int)
            self._tables_of_with[number] = self.read(each.children[0], outer)
        return self.read(plan, outer)

    def _of_with(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        number = node.fields["cteId"]
        assert isinstance(number, int)
        return self._renamed(self._tables_of_with[number], [each.id for each in node.trees("output")], {})

    def _loop(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        self._readings.check(node, "id", "outputAttrIds")
        anchor, number = self.by_place(self.read(node.children[0], outer)), node.fields["id"]
        assert isinstance(number, int)
        columns = tuple(self._names.attribute(each.label, each.type.or_null()) for each in anchor.attributes)
        self._loops[number] = columns
        step = self.by_place(self.read(node.children[1], outer))
        body = SetOperation(anchor, step, "union", True, tuple(
            self._names.attribute(each.label, each.type) for each in columns), site=self._site)  # fmt: skip
        key = f"loop {number}"
        attributes = tuple(self._names.attribute(each.label, each.type) for each in columns)
        relation = Recursion(key, attributes, Bodies({key: columns}, {key: body}), site=self._site)
        ids = node.fields["outputAttrIds"]
        assert isinstance(ids, list)
        return PlanRows(relation, tuple((each["id"], a) for each, a in zip(ids, attributes, strict=True)))

    def _of_loop(self, node: SparkNode, outer: PlanScope | None) -> PlanRows:
        self._readings.check(node, "loopId", "output")
        number = node.fields["loopId"]
        assert isinstance(number, int)
        columns = self._loops[number]
        variable = RecursionVariable(f"loop {number}", columns, site=self._site)
        rows = PlanRows(variable, tuple(enumerate(columns)))
        return self._renamed(rows, [each.id for each in node.trees("output")], {})


def _conjuncts(node: SparkNode) -> list[SparkNode]:
    if node.kind == "And":
        return [part for each in node.children for part in _conjuncts(each)]
    return [node]


_IDS: Final = re.compile(r'"id": ([0-9]+), "jvmId"')
_SHOWN: Final = re.compile(r'"qualifier": (\[[^]]*\]|"[^"]*")|"place": "(?:[^"\\]|\\.)*"')


def _shape_of(node: SparkNode) -> tuple[str, tuple[int, ...]]:
    """Return a text that two subtrees share if they differ in the numbers of attributes alone, and these
    numbers, in the order of their first appearance.
    """
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        return f'"id": {numbers.setdefault(match[1], len(numbers))}'

    text = _IDS.sub(numbered, _SHOWN.sub("", _flat(node)))
    return text, tuple(int(number) for number in numbers)


def _flat(node: SparkNode) -> str:
    if node.kind in _PASSED:
        return _flat(node.children[0])
    return f"{json.dumps(node.fields)}{''.join(_flat(each) for each in node.children)}"


def _why_not(node: SparkNode) -> str:
    return _ADVICE.get(node.kind, f"Spark's {node.kind} is not supported here")


_ADVICE: Final[Mapping[str, str]] = {
    "LogicalRDD": "rows that are no input are read: give their DataFrame as an input, by a name",
    "LogicalRelation": "rows that are no input are read: give their DataFrame as an input, by a name",
    "Sample": "a sample is another one each time: filter by a hash of a key",
    "Tail": "tail takes the last rows: write orderBy(desc(…)).limit(…)",
    **dict.fromkeys(
        ("MapInPandas", "MapInArrow", "FlatMapGroupsInPandas", "FlatMapGroupsInArrow", "MapPartitions",
         "FlatMapCoGroupsInPandas", "MapElements", "TypedFilter", "DeserializeToObject"),
        "a function of your own runs in Spark alone. Write it with pyspark.sql.functions; or write the query "
        "as a function of collections, whose map, flat_map and reduce call Python functions",
    ),
}  # fmt: skip
