"""Whole queries: SELECT, VALUES, UNION and its like, WITH, WITH RECURSIVE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from timely.user_code.call_site import at_site

from ...columns.schema import Schema
from ...errors import ExpressionError
from ...expressions.expression import ColumnRef
from ..algebra.attributes import Attribute, AttributeNames
from ..algebra.relations import (
    FirstRowsOf,
    ProjectionOf,
    Relation,
    SetKind,
    SetOperation,
    SortKey,
    ValueRows,
)
from .expressions.scopes import NameScope, same_name, value_of
from .expressions.special import SpecialReader
from .expressions.stages import Stage
from .expressions.values import Value, as_type, common_type
from .recursions import RecursionReader
from .selects import SelectReader, limits_of
from .sources import NamedRelation, NamedRelations, Sources
from .texts import SqlText, children_of

__all__ = ["QueryReader", "read_query"]

_KINDS: dict[type[exp.Expression], SetKind] = {
    exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect",
}  # fmt: skip


def read_query(
    text: SqlText,
    node: exp.Expression,
    tables: Mapping[str, Schema],
    names: AttributeNames,
    *,
    by_place: bool = False,
) -> Relation:
    """Return a query over `tables` as a relation with columns of different labels; raises SqlError.

    With `by_place` the columns count by their places, as those of INSERT: labels may be equal.
    """
    try:
        relation = QueryReader(text, tables, names).query(node, None, {})
    except RecursionError:
        raise text.error(node, "is nested too deeply") from None
    seen: set[str] = set()
    for attribute in relation.attributes:
        if attribute.label in seen and not by_place:
            raise text.error(
                node, f"two columns are called {attribute.label!r}: give one an alias, AS other_name"
            )
        seen.add(attribute.label)
    return relation


class QueryReader:
    """Reads the queries of one text."""

    def __init__(self, text: SqlText, tables: Mapping[str, Schema], names: AttributeNames) -> None:
        self._text, self._names = text, names
        self._named: NamedRelations = {}
        self._special = SpecialReader(text, names, self._inner)
        sources = Sources(text, tables, names, self, self._special.expressions)
        self._selects = SelectReader(text, names, sources, self._special)
        self._recursions = RecursionReader(text, names, self)

    def _inner(self, node: exp.Expression, outer: NameScope | None) -> Relation:
        """Return a subquery of an expression; it knows the names of WITH that are known around it."""
        return self.query(node, outer, self._named)

    def query(self, node: exp.Expression, outer: NameScope | None, named: NamedRelations) -> Relation:
        """Return a query as a relation; its attributes have the labels of its columns."""
        if children_of(node, "with_"):
            named = self._with(node.args["with_"], outer, named)
        before, self._named = self._named, named
        try:
            with at_site([self._text.site(node)]):
                return self._query(node, outer, named)
        finally:
            self._named = before

    def _query(self, node: exp.Expression, outer: NameScope | None, named: NamedRelations) -> Relation:
        if isinstance(node, exp.Select):
            return self._selects.read(node, outer, named)
        if isinstance(node, exp.Subquery):
            self._text.parts_of(node, "this", "alias", "with_", "order", "limit", "offset", "joins")
            return self._cut(node, self.query(node.this, outer, named))
        if type(node) in _KINDS:
            self._text.parts_of(node, "this", "expression", "distinct", "with_", "order", "limit", "offset")
            left = self.query(node.this, outer, named)
            right = self.query(node.args["expression"], outer, named)
            return self._cut(node, self._combined(node, left, right))
        if isinstance(node, exp.Values):
            self._text.parts_of(node, "expressions", "alias", "order", "limit", "offset")
            return self._cut(node, self._values(node, outer))
        raise self._text.error(
            node, f"{self._text.written(node)}: a query begins with SELECT, WITH or VALUES"
        )

    # WITH

    def _with(self, node: exp.Expression, outer: NameScope | None, named: NamedRelations) -> NamedRelations:
        self._text.parts_of(node, "expressions", "recursive")
        entry = dict(named)
        ctes = children_of(node, "expressions")
        for each in ctes:
            self._text.parts_of(each, "this", "alias", "materialized")
            self._text.parts_of(each.args["alias"], "this", "columns")
        labels = [each.alias.lower() for each in ctes]
        if len(set(labels)) != len(labels):
            raise self._text.error(node, "WITH has two queries of the same name")
        mutual = self._text.mutual(ctes)
        if mutual is not None:
            return self._recursions.mutual(ctes, mutual, outer, entry)
        if node.args.get("recursive"):
            return self._recursions.named(ctes, outer, entry)
        for each in ctes:
            relation = self.query(each.this, outer, entry)
            entry[each.alias.lower()] = NamedRelation(self.relabelled(relation, each))
        return entry

    def relabelled(self, relation: Relation, cte: exp.Expression) -> Relation:
        """Return a query of WITH, with the names of columns that stand behind its own."""
        labels = self._text.labels(cte.args["alias"])
        if not labels:
            return relation
        if len(labels) != len(relation.attributes):
            raise self._text.error(
                cte.args["alias"],
                f"{cte.alias} has {len(relation.attributes)} columns, and {len(labels)} names",
            )
        outputs = tuple(
            (replace(attribute, label=label.name), ColumnRef(attribute.name))
            for attribute, label in zip(relation.attributes, labels, strict=True)
        )
        return ProjectionOf(relation, outputs, site=relation.site)

    # Sets, VALUES, and the order of both

    def _combined(self, node: exp.Expression, left: Relation, right: Relation) -> Relation:
        if len(left.attributes) != len(right.attributes):
            raise self._text.error(
                node.args["expression"],
                f"{len(left.attributes)} columns on the left, {len(right.attributes)} on the right",
            )
        built: list[Attribute] = []
        pairs = [
            [value_of(one), value_of(other)]
            for one, other in zip(left.attributes, right.attributes, strict=True)
        ]
        for pair, attribute in zip(pairs, left.attributes, strict=True):
            type_, untyped = self._common(pair, node, attribute.label)
            built.append(self._names.attribute(attribute.label, type_, is_untyped=untyped))
        sides = [
            self._as_types(side, [pair[place] for pair in pairs], built)
            for place, side in enumerate((left, right))
        ]
        site, is_all = self._text.site(node), node.args.get("distinct") is False
        return SetOperation(sides[0], sides[1], _KINDS[type(node)], is_all, tuple(built), site=site)

    def _common(self, values: list[Value], node: exp.Expression, label: str):  # type: ignore[no-untyped-def]
        try:
            return common_type(values)
        except ExpressionError:
            kinds = ", ".join(dict.fromkeys(str(each.type) for each in values))
            raise self._text.error(
                node, f"the column {label} is of types that do not meet: {kinds}"
            ) from None

    def _as_types(self, side: Relation, values: list[Value], built: list[Attribute]) -> Relation:
        """Return a side of a set operation with the types of the result."""
        typed = [
            as_type(value, each.type) if not each.is_untyped else value
            for value, each in zip(values, built, strict=True)
        ]
        if all(isinstance(each.expr, ColumnRef) for each in typed):
            return side
        outputs = tuple(
            (self._names.attribute(old.label, new.type), new.expr)
            for old, new in zip(side.attributes, typed, strict=True)
        )
        return ProjectionOf(side, outputs, site=side.site)

    def _values(self, node: exp.Expression, outer: NameScope | None) -> Relation:
        stage = Stage("VALUES", NameScope(parent=outer))
        rows: list[list[Value]] = []
        for each in children_of(node, "expressions"):
            parts = children_of(each, "expressions") if isinstance(each, exp.Tuple) else [each]
            rows.append([self._special.expressions.read(part, stage) for part in parts])
            if len(rows[-1]) != len(rows[0]):
                raise self._text.error(
                    each, f"this row has {len(rows[-1])} columns, the first {len(rows[0])}"
                )
        if stage.pending:
            raise self._text.error(node, "a subquery cannot stand in VALUES; use SELECT and UNION ALL")
        columns = [[row[place] for row in rows] for place in range(len(rows[0]))]
        built, typed = [], []
        for place, column in enumerate(columns):
            label = f"col{place + 1 if self._text.dialect == 'spark' else place}"
            label = f"column{place + 1}" if self._text.dialect == "postgres" else label
            type_, untyped = self._common(column, node, label)
            built.append(self._names.attribute(label, type_, is_untyped=untyped))
            typed.append([as_type(each, type_).expr if not untyped else each.expr for each in column])
        table = tuple(tuple(column[number] for column in typed) for number in range(len(rows)))
        return ValueRows(tuple(built), table, site=self._text.site(node))

    def _cut(self, node: exp.Expression, relation: Relation) -> Relation:
        """Return the rows that LIMIT leaves, in an order of columns of the result."""
        limit, offset = limits_of(self._text, node)
        scope = NameScope()
        keys: list[SortKey] = []
        order = node.args.get("order")
        for each in children_of(order, "expressions") if order is not None else []:
            keys.append(self._special.sort_key(each, self._output(each.this, relation, scope)))
        if limit is None and not offset:
            return relation
        return FirstRowsOf(relation, tuple(keys), limit, offset, site=self._text.site(node))

    def _output(self, node: exp.Expression, relation: Relation, scope: NameScope) -> Value:
        if isinstance(node, exp.Literal) and str(node.this).isdigit():
            if 1 <= int(str(node.this)) <= len(relation.attributes):
                return value_of(relation.attributes[int(str(node.this)) - 1])
            raise self._text.error(node, f"{node.this} is the number of no column")
        outcome = [each for each in relation.attributes if same_name(each.label, node.name)]
        if not isinstance(node, exp.Column) or not outcome:
            raise self._text.error(
                node, f"{self._text.written(node)} is no column of the result that is ordered"
            )
        return value_of(outcome[0])
