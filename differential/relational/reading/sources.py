"""FROM: tables, subqueries, joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from sqlglot import exp

from timely.user_code.call_site import CallSite

from ...columns.column_types import any_value, integer
from ...columns.schema import Schema
from ...expressions.expression import ColumnRef, Expr, coalesce
from ..algebra.attributes import Attribute, AttributeNames
from ..algebra.relations import (
    ApplyKind,
    ApplyOf,
    JoinKind,
    JoinOf,
    ProjectionOf,
    Relation,
    Scan,
    Selection,
    SingleRow,
    Unnesting,
)
from .expressions.expressions import Expressions
from .expressions.scopes import AmbiguousName, ColumnsOf, NameScope, same_name
from .expressions.stages import Stage
from .expressions.values import Value, computed, met
from .texts import SqlText, children_of

__all__ = ["NamedRelation", "NamedRelations", "Queries", "Sources", "renamed"]


_TABLES_MAX: Final = 256
"""Tables in one FROM. Planning takes a second or two for so many, and with their square."""


@dataclass(frozen=True)
class NamedRelation:
    """A relation of WITH: read as often as its name stands."""

    relation: Relation


NamedRelations = Mapping[str, NamedRelation]
"""The names of WITH that are known at a place, in small letters."""


class Queries(Protocol):
    """Reads whole queries."""

    def query(self, node: exp.Expression, outer: NameScope | None, named: NamedRelations) -> Relation:
        """Return a query as a relation; its attributes have the labels of its columns."""

    def relabelled(self, relation: Relation, cte: exp.Expression) -> Relation:
        """Return a query of WITH, with the names of columns that stand behind its own."""


@dataclass
class _From:
    """What FROM has so far: a relation, and the names of its columns."""

    relation: Relation
    scope: NameScope


class Sources:
    """Reads FROM."""

    def __init__(  # what a query is read with
        self, text: SqlText, tables: Mapping[str, Schema], names: AttributeNames, queries: Queries,
        expressions: Expressions,
    ) -> None:  # fmt: skip
        self._text, self._tables, self._names = text, tables, names
        self._queries, self._expressions = queries, expressions

    def read(self, node: exp.Expression, outer: NameScope | None, named: NamedRelations) -> _From:
        """Return FROM of a SELECT, with its joins and LATERAL VIEWs."""
        clause = node.args.get("from_")
        if clause is None:
            row = self._names.attribute("(one)", integer)
            one = _From(SingleRow(row, site=self._text.site(node)), NameScope(parent=outer))
            return self._with_lists(one, node)
        self._text.parts_of(clause, "this")
        outcome = self._item(clause.this, outer, named)
        before: list[_From] = []
        joins = children_of(node, "joins")
        if len(joins) >= _TABLES_MAX:
            raise self._text.error(
                joins[_TABLES_MAX - 1].this,
                f"FROM has {len(joins) + 1:,} tables, and {_TABLES_MAX} may be joined: make a view of some",
            )
        for join in joins:
            if set(_parts(join)) == {"this"} and not isinstance(join.this, exp.Lateral | exp.Unnest):
                before.append(outcome)  # a comma binds less than any JOIN
                outcome = self._item(join.this, outer, named)
                continue
            if isinstance(join.this, exp.Lateral | exp.Unnest):
                outcome = self._product([*before, outcome], node)
                before = []
            outcome = self._join(outcome, join, outer, named)
        return self._with_lists(self._product([*before, outcome], node), node)

    def _with_lists(self, outcome: _From, node: exp.Expression) -> _From:
        for lateral in children_of(node, "laterals"):
            outcome = self.exploded(outcome, lateral)
        return outcome

    def _product(self, parts: list[_From], node: exp.Expression) -> _From:
        """Return all pairs of what commas separate."""
        outcome = parts[0]
        for part in parts[1:]:
            for source in part.scope.sources:
                if source.alias and outcome.scope.has_table(source.alias):
                    raise self._text.error(node, f"two tables are called {source.alias}: give one an alias")
            relation = JoinOf(outcome.relation, part.relation, "inner", (), site=part.relation.site)
            outcome = self._both(relation, outcome.scope, part.scope, {}, "inner")
        return outcome

    def _item(self, node: exp.Expression, outer: NameScope | None, named: NamedRelations) -> _From:
        """Return one table or subquery, with the joins that sqlglot hangs behind it."""
        joins = children_of(node, "joins")
        if isinstance(node, exp.Table):
            self._text.parts_of(node, "this", "alias", "joins")
            relation, label = self._table(node, named), node.name
        elif isinstance(node, exp.Subquery | exp.Values):
            if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
                self._text.parts_of(node, "this")
                return self._item(node.this, outer, named)
            relation, label = self._queries.query(node, outer, named), ""
        else:
            raise self._text.error(node, f"{self._text.written(node)} cannot stand in FROM")
        outcome = self._aliased(relation, node, label, outer)
        for join in joins:
            outcome = self._join(outcome, join, outer, named)
        return outcome

    def _table(self, node: exp.Table, named: NamedRelations) -> Relation:
        if not isinstance(node.this, exp.Identifier):
            raise self._text.error(node, f"{self._text.written(node)}: there is no such function of rows")
        label, site = node.name, self._text.site(node)
        entry = named.get(label.lower())
        if entry is not None:
            return renamed(entry.relation, self._names, site)
        exact = [name for name in self._tables if name == label]
        tables = exact or [name for name in self._tables if same_name(name, label)]
        if len(tables) != 1:
            there = ", ".join([*named, *self._tables][:20]) or "none"
            why = "means several" if tables else "is not there"
            raise self._text.error(node, f"the table {label} {why}; there are: {there}")
        schema = self._tables[tables[0]]
        attributes = tuple(self._names.attribute(each.name, each.type) for each in schema)
        return Scan(tables[0], schema.names, attributes, site=site)

    def _aliased(
        self, relation: Relation, node: exp.Expression, label: str, outer: NameScope | None
    ) -> _From:
        alias = node.args.get("alias")
        columns = relation.attributes
        if alias is not None:
            self._text.parts_of(alias, "this", "columns")
            label = alias.name or label
            columns = self.relabelled(columns, self._text.labels(alias), alias)
        return _From(relation, NameScope([ColumnsOf(label, columns)], parent=outer))

    def relabelled(
        self, columns: tuple[Attribute, ...], labels: list[exp.Expression], node: exp.Expression
    ) -> tuple[Attribute, ...]:
        """Return columns under the names of an alias, as in `AS t (a, b)`."""
        if len(labels) > len(columns):
            raise self._text.error(node, f"{len(labels)} names for {len(columns)} columns")
        first = tuple(
            replace(column, label=label.name) for column, label in zip(columns, labels, strict=False)
        )
        return (*first, *columns[len(labels) :])

    def _join(
        self, left: _From, join: exp.Expression, outer: NameScope | None, named: NamedRelations
    ) -> _From:
        self._text.parts_of(join, "this", "on", "using", "side", "kind", "method")
        side, kind = join.text("side").upper(), join.text("kind").upper()
        method = join.text("method").upper()
        if method not in ("", "NATURAL") or kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"):
            raise self._text.error(join, f"{method or kind} JOIN is not supported")
        how: JoinKind = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}.get(side, "inner")  # type: ignore[assignment]  # one of these
        if isinstance(join.this, exp.Lateral | exp.Unnest):
            return self._lateral(left, join, how, outer, named)
        right = self._item(join.this, outer, named)
        labels = [each.name for each in children_of(join, "using")]
        if method == "NATURAL":
            theirs = {label.lower() for label in right.scope.labels()}
            labels = [label for label in dict.fromkeys(left.scope.labels()) if label.lower() in theirs]
        for source in right.scope.sources:
            if source.alias and left.scope.has_table(source.alias):
                raise self._text.error(join.this, f"two tables are called {source.alias}: give one an alias")
        conditions, merged = self._using(left.scope, right.scope, labels, how, join)
        both = NameScope([*left.scope.sources, *right.scope.sources], parent=outer)
        on = join.args.get("on")
        if on is not None:
            stage = Stage("ON", both)
            conditions.append(self._expressions.truth(on, stage).expr)
            if stage.pending:
                if how != "inner" or kind in ("SEMI", "ANTI"):
                    raise self._text.error(on, "a subquery cannot stand in ON of an outer join; use WHERE")
                joined = JoinOf(left.relation, right.relation, "inner", (), site=self._text.site(join))
                relation: Relation = Selection(stage.attached(joined), tuple(conditions), site=joined.site)
                return self._both(relation, left.scope, right.scope, merged, how)
        site = self._text.site(join)
        if kind in ("SEMI", "ANTI"):
            inner = Selection(right.relation, tuple(conditions), site=site)
            apply = ApplyOf(left.relation, inner, "semi" if kind == "SEMI" else "anti", site=site)
            return _From(apply, left.scope)
        relation = JoinOf(left.relation, right.relation, how, tuple(conditions), site=site)
        return self._both(relation, left.scope, right.scope, merged, how)

    def _both(
        self, relation: Relation, left: NameScope, right: NameScope, merged: dict[str, Value], how: JoinKind
    ) -> _From:
        """Return the names of both sides of a join."""
        left = left.nullable() if how in ("right", "full") else left
        right = right.nullable() if how in ("left", "full") else right
        sources = [*left.sources, *right.sources]
        hidden = {each.name for source in sources for label in merged for each in source.find(label)}
        sources = [replace(source, hidden=source.hidden | hidden) for source in sources]
        others = [
            (name, value)
            for name, value in (*left.merged, *right.merged)
            if not any(same_name(name, label) for label in merged)
        ]
        return _From(relation, NameScope(sources, [*merged.items(), *others], left.parent))

    def _using(
        self, left: NameScope, right: NameScope, labels: list[str], how: JoinKind, join: exp.Expression
    ) -> tuple[list[Expr], dict[str, Value]]:
        """Return the equalities of USING, and what its columns are behind the join."""
        conditions: list[Expr] = []
        merged: dict[str, Value] = {}
        for label in labels:
            try:
                one, other = left.own(label, None), right.own(label, None)
            except AmbiguousName:
                raise self._text.error(join, f"USING: {label} is a column of several tables") from None
            if one is None or other is None:
                raise self._text.error(join, f"USING: {label} is not a column of both sides")
            one, other = met([one, other])
            conditions.append(computed(lambda a, b: a == b, one, other).expr)
            sides = {"left": one, "inner": one, "right": other}
            merged[label] = sides.get(how) or computed(
                coalesce, *(replace(each, type=each.type.or_null()) for each in (one, other))
            )
        return conditions, merged

    def _lateral(  # a join has these parts
        self, left: _From, join: exp.Expression, how: JoinKind, outer: NameScope | None, named: NamedRelations
    ) -> _From:
        """Return LATERAL: a subquery, or UNNEST, for each row of what is left of it."""
        node, site = join.this, self._text.site(join)
        if how not in ("inner", "left"):
            raise self._text.error(join, "LATERAL stands on the right of an inner or left join")
        if isinstance(node, exp.Unnest):
            return self._unnested(left, node, how)
        self._text.parts_of(node, "this", "alias", "view", "outer")
        if not isinstance(node.this, exp.Subquery):
            raise self._text.error(node, f"{self._text.written(node)} cannot stand behind LATERAL")
        right = self._aliased(self._queries.query(node.this, left.scope, named), node, "", outer)
        both = NameScope([*left.scope.sources, *right.scope.sources], left.scope.merged, outer)
        on = join.args.get("on")
        conditions: tuple[Expr, ...] = ()
        if on is not None:
            stage = Stage("ON", both)
            conditions = (self._expressions.truth(on, stage).expr,)
            if stage.pending:
                raise self._text.error(on, "a subquery cannot stand in ON of LATERAL; use WHERE")
        kind: ApplyKind = "inner" if how == "inner" else "left"
        relation: Relation = ApplyOf(left.relation, right.relation, kind, (), None, conditions, site=site)
        return self._both(relation, left.scope, right.scope, {}, how)

    def _unnested(self, left: _From, node: exp.Unnest, how: JoinKind) -> _From:
        self._text.parts_of(node, "expressions", "alias")
        lists = children_of(node, "expressions")
        if len(lists) != 1:
            raise self._text.error(node, "UNNEST takes one list")
        return self._elements(left, lists[0], node, outer=how == "left", numbered=False)

    def exploded(self, left: _From, node: exp.Expression) -> _From:
        """Return these rows with the elements of a list, as `LATERAL VIEW explode(…)` does."""
        self._text.parts_of(node, "this", "alias", "view", "outer")
        call = node.this
        if not isinstance(call, exp.Explode | exp.Posexplode):
            raise self._text.error(
                node, f"{self._text.written(node)}: LATERAL VIEW takes explode or posexplode"
            )
        self._text.parts_of(call, "this")
        outer = bool(node.args.get("outer")) or isinstance(call, exp.ExplodeOuter)
        return self._elements(left, call.this, node, outer=outer, numbered=isinstance(call, exp.Posexplode))

    def _elements(  # of two forms of the same
        self, left: _From, list_: exp.Expression, node: exp.Expression, *, outer: bool, numbered: bool
    ) -> _From:
        stage = Stage("a list", left.scope)
        value = self._expressions.read(list_, stage)
        if value.type.kind not in ("any", "array"):
            raise self._text.error(list_, f"{self._text.written(list_)} is {value.type}, and no list")
        alias = node.args.get("alias")
        labels = self._text.labels(alias) if alias is not None else []
        element_type = value.type.parts[0] if value.type.kind == "array" else any_value
        element = self._names.attribute("col", element_type.or_null(outer))
        position = self._names.attribute("pos", integer.or_null(outer)) if numbered else None
        relation = Unnesting(
            stage.attached(left.relation), value.expr, element, position, outer, site=self._text.site(node)
        )
        built = (element,) if position is None else (position, element)
        columns = self.relabelled(built, labels, node)
        source = ColumnsOf(alias.name if alias is not None else "", columns)
        return _From(relation, NameScope([*left.scope.sources, source], left.scope.merged, left.scope.parent))


def _parts(node: exp.Expression) -> list[str]:
    return [name for name, part in node.args.items() if part]


def renamed(relation: Relation, names: AttributeNames, site: CallSite) -> Relation:
    """Return a relation under new names, for each place where it is read."""
    outputs = tuple(
        (names.attribute(each.label, each.type, is_untyped=each.is_untyped), ColumnRef(each.name))
        for each in relation.attributes
    )
    return ProjectionOf(relation, outputs, site=site)
