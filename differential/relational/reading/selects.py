"""SELECT: from its FROM to its LIMIT, in the order in which SQL computes it.

FROM → WHERE → GROUP BY, aggregates → HAVING → windows → QUALIFY → SELECT → DISTINCT → ORDER BY, LIMIT
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from ...expressions.expression import ColumnRef, Expr
from ..algebra.attributes import Attribute, AttributeNames, schema_of
from ..algebra.relations import (
    AggregateCall,
    Aggregation,
    DistinctRows,
    FirstRowsOf,
    ProjectionOf,
    Relation,
    SortKey,
)
from .conditions import Conditions
from .expressions.calls import aggregate_kind
from .expressions.moments import bounds_of, reads_now
from .expressions.scopes import AmbiguousName, NameScope, same_name
from .expressions.special import SpecialReader
from .expressions.stages import AggregateCalls, Stage, WindowCalls, replaced
from .expressions.values import Value
from .groupings import GroupKeys, keys_of
from .lists_of_select import list_apart
from .sources import NamedRelations, Sources
from .texts import SqlText, children_of

__all__ = ["SelectReader", "limits_of"]


@dataclass(frozen=True)
class _Item:
    """An item of SELECT; `node` is None for a column that `*` stands for."""

    label: str
    node: exp.Expression
    value: Value


class SelectReader:
    """Reads one SELECT after another."""

    def __init__(
        self, text: SqlText, names: AttributeNames, sources: Sources, special: SpecialReader
    ) -> None:
        self._text, self._names, self._sources, self._special = text, names, sources, special
        self._expressions = special.expressions

    def read(self, node: exp.Select, outer: NameScope | None, named: NamedRelations) -> Relation:
        """Return a SELECT as a relation."""
        self._text.parts_of(
            node, "expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify",
            "windows", "distinct", "order", "limit", "offset", "with_",
        )  # fmt: skip
        node, list_of_select = list_apart(self._text, node)
        source = self._sources.read(node, outer, named)
        relation, scope = source.relation, source.scope
        if node.args.get("where") is not None:
            self._text.parts_of(node.args["where"], "this")
            relation = self._filtered(relation, node.args["where"].this, Stage("WHERE", scope), _as_it_is)
        if list_of_select is not None:
            source = self._sources.exploded(replace(source, relation=relation), list_of_select)
            relation, scope = source.relation, source.scope
        inner = Stage("the operand of an aggregate", scope)
        aggregates, windows = AggregateCalls(), WindowCalls()
        named_windows = self._named_windows(node)
        keys = self._keys(node, scope)
        key_stage = Stage("GROUP BY", scope)
        key_values = [self._expressions.read(key, key_stage) for key in keys.nodes] if keys else []
        aggregates.keys += [value.expr.describe() for value in key_values]
        stage = Stage("SELECT", scope, aggregates, windows, [], {}, inner, named_windows)
        items = self._items(node, stage)
        having = Stage("HAVING", scope, aggregates, None, [], stage.aliases, inner)
        qualify = Stage("QUALIFY", scope, aggregates, windows, [], stage.aliases, inner, named_windows)
        conditions = {}
        for name, at in (("having", having), ("qualify", qualify)):
            if node.args.get(name) is not None:
                self._text.parts_of(node.args[name], "this")
                conditions[name] = self._conditions(node.args[name].this, at)
        order = self._order(node, items, stage)
        unused = self._special.unused_windows(stage)
        distinct_on = self._distinct_on(node, stage)
        change: Callable[[Expr], Expr] = _as_it_is
        is_grouped = keys is not None or bool(aggregates.calls) or "having" in conditions
        if is_grouped:
            relation = inner.attached(key_stage.attached(relation))
            relation, change = self._grouped(relation, keys, key_values, aggregates, node)
            read = [(each.node, each.value.expr) for each in items]
            read += [(node.args["order"], each.expr) for each in order]
            read += [(node.args[name].this, each) for name, part in conditions.items() for each in part.exprs]
            read += [(node, each) for window in windows.windows.values() for each in window.reads] + unused
            self._check_grouped(relation, scope, [(at, change(expr)) for at, expr in read])
        if "having" in conditions:
            relation = self._where(relation, conditions["having"], having, change)
        late = [each for each in stage.pending if _reads_window(each.members, windows)]
        stage.pending = [each for each in stage.pending if each not in late]
        relation = stage.attached(relation, change)
        for window in windows.windows.values():
            relation = window.over(relation, change)
        for each in late:
            relation = each.to(relation, change)
        if "qualify" in conditions:
            relation = self._where(relation, conditions["qualify"], qualify, change)
        items = [replace(each, value=replace(each.value, expr=change(each.value.expr))) for each in items]
        order = tuple(replace(each, expr=change(each.expr)) for each in order)
        return self._put_out(node, relation, items, order, [change(each) for each in distinct_on])

    def _named_windows(self, node: exp.Select) -> dict[str, exp.Expression]:
        named: dict[str, exp.Expression] = {}
        for each in children_of(node, "windows"):
            if each.name.lower() in named:
                raise self._text.error(each, f"two windows are called {each.name}")
            named[each.name.lower()] = each
        return named

    # FROM and WHERE

    def _filtered(
        self, relation: Relation, node: exp.Expression, stage: Stage, change: Callable[[Expr], Expr]
    ) -> Relation:
        return self._where(relation, self._conditions(node, stage), stage, change)

    def _conditions(self, node: exp.Expression, stage: Stage) -> Conditions:
        """Read a condition: EXISTS and IN that must hold, or must not, are apart from all else."""
        outcome = Conditions(node)
        waiting = [node]
        while waiting:
            top = waiting.pop()
            if isinstance(top, exp.And):
                self._text.parts_of(top, "this", "expression")
                waiting += [top.args["expression"], top.this]
                continue
            negated, bare = False, top
            while isinstance(bare, exp.Not | exp.Paren):
                self._text.parts_of(bare, "this")
                negated, bare = negated != isinstance(bare, exp.Not), bare.this
            if isinstance(bare, exp.And) and not negated:
                waiting.append(bare)
            elif isinstance(bare, exp.Exists) or (
                isinstance(bare, exp.In) and bare.args.get("query") is not None
            ):
                outcome.memberships.append(
                    self._special.membership(bare, "anti" if negated else "semi", stage)
                )
            else:
                if not negated and reads_now(bare):
                    read = partial(self._expressions.read, stage=stage)
                    outcome.bounds.extend(bounds_of(self._text, bare, read))
                    continue
                outcome.plain.append(self._expressions.truth(top, stage).expr)
        return outcome

    def _where(
        self, relation: Relation, conditions: Conditions, stage: Stage, change: Callable[[Expr], Expr]
    ) -> Relation:
        """Return the rows where conditions hold, with the subqueries that wait in their stage."""
        pending, stage.pending = stage.pending, []
        site = self._text.site(conditions.node)
        return replace(conditions, pending=pending).over(relation, site, change)

    # SELECT

    def _items(self, node: exp.Select, stage: Stage) -> list[_Item]:
        items: list[_Item] = []
        for each in children_of(node, "expressions"):
            if isinstance(each, exp.Star) or (
                isinstance(each, exp.Column) and isinstance(each.this, exp.Star)
            ):
                items += self._star(each, stage.scope)
                continue
            body, label = each, self._label(each)
            if isinstance(each, exp.Alias):
                self._text.parts_of(each, "this", "alias")
                body = each.this
            value = self._expressions.read(body, stage)
            if isinstance(each, exp.Alias):
                stage.aliases.setdefault(label.lower(), value)
            items.append(_Item(label, body, value))
        if not items:
            raise self._text.error(node, "SELECT has no columns")
        return items

    def _label(self, node: exp.Expression) -> str:
        name = str(node.alias_or_name) if isinstance(node, exp.Alias | exp.Column) else ""
        return name or self._text.label(node)

    def _star(self, node: exp.Expression, scope: NameScope) -> list[_Item]:
        table = node.text("table") or None
        star = node.this if isinstance(node, exp.Column) else node
        self._text.parts_of(star, "except_")
        if table is not None and not scope.has_table(table):
            raise self._text.error(node, f"there is no table {table} in FROM")
        without = {each.name.lower() for each in children_of(star, "except_")}
        columns = [(label, value) for label, value in scope.star(table) if label.lower() not in without]
        if not columns:
            raise self._text.error(node, "* stands for no columns here: there is no FROM")
        return [_Item(label, node, value) for label, value in columns]

    # GROUP BY

    def _keys(self, node: exp.Select, scope: NameScope) -> GroupKeys | None:
        group = node.args.get("group")
        if group is None:
            return None
        items = [
            each.this if isinstance(each, exp.Alias) else each for each in children_of(node, "expressions")
        ]
        if group.args.get("all") is True:
            self._text.parts_of(group, "all")
            return GroupKeys([each for each in items if not _has_aggregate(each)], None)

        def meant(key: exp.Expression) -> exp.Expression:
            if isinstance(key, exp.Literal) and not key.args.get("is_string"):
                return self._numbered(key, items)
            if isinstance(key, exp.Column) and not key.text("table"):
                for each in children_of(node, "expressions"):
                    if (
                        isinstance(each, exp.Alias)
                        and same_name(each.alias, key.name)
                        and not _is_own(key, scope)
                    ):
                        body: exp.Expression = each.this
                        return body
            return key

        return keys_of(self._text, group, meant)

    def _numbered(self, key: exp.Expression, items: Sequence[exp.Expression]) -> exp.Expression:
        number = int(str(key.this)) if str(key.this).isdigit() else 0
        if not 1 <= number <= len(items) or isinstance(items[number - 1], exp.Star):
            raise self._text.error(key, f"{key.this} is the number of no column of SELECT")
        return items[number - 1]

    def _grouped(
        self,
        relation: Relation,
        keys: GroupKeys | None,
        values: list[Value],
        aggregates: AggregateCalls,
        node: exp.Select,
    ) -> tuple[Relation, Callable[[Expr], Expr]]:
        """Return the groups, and what changes expressions over rows to ones over groups."""
        sets = None if keys is None or keys.sets is None else tuple(keys.sets)
        attributes: list[tuple[Attribute, Expr]] = []
        by_text: dict[str, Expr] = {}
        seen: set[str] = set()
        for value in values:
            own = isinstance(value.expr, ColumnRef) and value.expr.name in relation.names
            if isinstance(value.expr, ColumnRef) and own and value.expr.name not in seen:
                attribute = Attribute(value.expr.name, value.expr.name, value.type.or_null(sets is not None))
            else:
                attribute = self._names.attribute("key", value.type.or_null(sets is not None))
                by_text.setdefault(value.expr.describe(), ColumnRef(attribute.name))
            seen.add(attribute.name)
            attributes.append((attribute, value.expr))
        calls: tuple[AggregateCall, ...] = tuple(aggregates.calls)
        groupings = tuple((attribute, places) for places, attribute in aggregates.groupings.items())
        if groupings and sets is None:
            sets = (tuple(range(len(attributes))),)
        site = self._text.site(node.args.get("group") or node)
        grouped = Aggregation(relation, tuple(attributes), calls, sets, groupings, site=site)
        return grouped, lambda expr: replaced(expr, by_text)

    def _check_grouped(
        self, relation: Relation, scope: NameScope, read: list[tuple[exp.Expression, Expr]]
    ) -> None:
        """Raise SqlError for a column that is neither a key nor in an aggregate; `read` are expressions over
        the groups, and where they stand.
        """
        own = {each.name: each.label for source in scope.sources for each in source.columns}
        there = frozenset(relation.names)
        for node, expr in read:
            for name in sorted(expr.columns() - there):
                if name in own:
                    raise self._text.error(
                        _column_node(node, own[name]),
                        f"the column {own[name]} is neither in GROUP BY nor in an aggregate",
                    )

    # ORDER BY, LIMIT, DISTINCT

    def _order(self, node: exp.Select, items: list[_Item], stage: Stage) -> tuple[SortKey, ...]:
        order = node.args.get("order")
        if order is None:
            return ()
        self._text.parts_of(order, "expressions")
        keys = []
        for each in children_of(order, "expressions"):
            keys.append(self._special.sort_key(each, self._ordered_by(each.this, items, stage)))
        return tuple(keys)

    def _ordered_by(self, node: exp.Expression, items: list[_Item], stage: Stage) -> Value:
        if isinstance(node, exp.Literal) and not node.args.get("is_string"):
            number = int(str(node.this)) if str(node.this).isdigit() else 0
            if not 1 <= number <= len(items):
                raise self._text.error(node, f"{node.this} is the number of no column of SELECT")
            return items[number - 1].value
        if isinstance(node, exp.Column) and not node.text("table"):
            outcome = [each.value for each in items if same_name(each.label, node.name)]
            if outcome:
                return outcome[0]
        return self._expressions.read(node, stage)

    def _distinct_on(self, node: exp.Select, stage: Stage) -> list[Expr]:
        distinct = node.args.get("distinct")
        if distinct is None:
            return []
        self._text.parts_of(distinct, "on")
        on = distinct.args.get("on")
        if on is None:
            return []
        nodes = children_of(on, "expressions") if isinstance(on, exp.Tuple) else [on]
        return [self._expressions.read(each, stage).expr for each in nodes]

    def _put_out(  # the last steps of a SELECT
        self, node: exp.Select, relation: Relation, items: list[_Item], order: tuple[SortKey, ...],
        distinct_on: list[Expr],
    ) -> Relation:  # fmt: skip
        site = self._text.site(node)
        outputs: list[tuple[Attribute, Expr]] = []
        taken: set[str] = set()
        for item in items:
            expr, type_ = item.value.expr, item.value.type
            if isinstance(expr, ColumnRef) and expr.name not in taken and expr.name in relation.names:
                attribute = Attribute(expr.name, item.label, type_, item.value.is_untyped)
            else:
                attribute = self._names.attribute(item.label, type_, is_untyped=item.value.is_untyped)
            taken.add(attribute.name)
            outputs.append((attribute, expr))
        distinct = node.args.get("distinct") is not None and not distinct_on
        limit, offset = limits_of(self._text, node)
        is_cut = limit is not None or offset > 0
        if not is_cut and not distinct_on:
            projected = ProjectionOf(relation, tuple(outputs), site=site)
            return DistinctRows(projected, site=site) if distinct else projected
        by_text = {expr.describe(): attribute.name for attribute, expr in reversed(outputs)}
        hidden: list[tuple[Attribute, Expr]] = []

        def shown(expr: Expr) -> Expr:
            name = by_text.get(expr.describe())
            if name is None:
                if distinct:
                    raise self._text.error(
                        node.args["order"], "ORDER BY of SELECT DISTINCT names columns of SELECT only"
                    )
                attribute = self._names.attribute("order", expr.type_in(schema_of(relation.attributes)))
                hidden.append((attribute, expr))
                name = by_text[expr.describe()] = attribute.name
            return ColumnRef(name)

        keys = tuple(replace(each, expr=shown(each.expr)) for each in order)
        groups = tuple(shown(each) for each in distinct_on)
        rows: Relation = ProjectionOf(relation, (*outputs, *hidden), site=site)
        if distinct:
            rows = DistinctRows(rows, site=site)
        if groups:
            rows = FirstRowsOf(rows, keys, 1, 0, groups, site=site)
        if is_cut:
            rows = FirstRowsOf(rows, keys, limit, offset, site=site)
        if hidden:
            rows = ProjectionOf(rows, tuple((each, ColumnRef(each.name)) for each, _ in outputs), site=site)
        return rows


def _as_it_is(expr: Expr) -> Expr:
    return expr


def _reads_window(members: tuple[Expr, ...], windows: WindowCalls) -> bool:
    built = {answer.attribute.name for parts in windows.windows.values() for answer in parts.answers}
    return any(not built.isdisjoint(each.columns()) for each in members)


def _is_own(key: exp.Expression, scope: NameScope) -> bool:
    try:
        return scope.own(key.name, None) is not None
    except AmbiguousName:
        return True


def _column_node(node: exp.Expression, label: str) -> exp.Expression:
    """Return where a column stands in an item of SELECT."""
    return next((each for each in node.find_all(exp.Column) if same_name(each.name, label)), node)


def _has_aggregate(node: exp.Expression) -> bool:
    """Return True if an item has an aggregate of its own query, and not only in a window or a subquery."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):
        return any(_has_aggregate(each) for each in node.this.iter_expressions())
    return aggregate_kind(node) is not None or any(_has_aggregate(each) for each in node.iter_expressions())


def limits_of(text: SqlText, node: exp.Expression) -> tuple[int | None, int]:
    """Return LIMIT, None for none, and OFFSET."""
    limit = node.args.get("limit")
    outcome: list[int | None] = [None, 0]
    for place, each in enumerate((limit, node.args.get("offset"))):
        if each is None:
            continue
        part = each.args.get("count") if isinstance(each, exp.Fetch) else each.args.get("expression")
        text.parts_of(each, *(("count", "direction") if isinstance(each, exp.Fetch) else ("expression",)))
        if not isinstance(part, exp.Literal) or not str(part.this).isdigit():
            raise text.error(each, "LIMIT and OFFSET take a whole number as a constant")
        outcome[place] = int(str(part.this))
    return outcome[0], outcome[1] or 0
