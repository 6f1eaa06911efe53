"""One expression of SQL over the columns of a collection."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...collections.texts.aggregates_as_text import GroupedText
from ...columns.schema import Schema
from ...expressions.expression import ColumnRef, Expr
from ...expressions.pending import SqlExpr
from ..algebra.attributes import Attribute, AttributeNames
from ..algebra.relations import Relation
from ..lowering.groups import aggregate_of, is_apart
from .expressions.calls import aggregate_kind
from .expressions.scopes import ColumnsOf, NameScope
from .expressions.special import SpecialReader
from .expressions.stages import AggregateCalls, Stage
from .texts import SqlText, children_of

__all__ = ["column_of", "grouped_over", "has_aggregates", "value_over"]

_BEFORE = "SELECT "
"""sqlglot reads statements: without this, `date > '2024-01-01'` or `set = 1` would be one of another kind."""


def column_of(name: str, text: str, dialect: str) -> tuple[str, bool]:
    """Return the name of the column that a text makes, and whether it gives the name by AS. "*" is all
    columns, "a.*" those of a side. `name` begins the messages of errors. Raises SqlError for a text that is
    no single expression.
    """
    source, node = _read(name, text, dialect)
    if isinstance(node, exp.Alias):
        source.parts_of(node, "this", "alias")
        return str(node.alias), True
    if isinstance(node, exp.Star):
        source.parts_of(node)
        return "*", False
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        source.parts_of(node, "this", "table")
        source.parts_of(node.this)
        return f"{node.table}.*", False
    label = str(node.name) if isinstance(node, exp.Column) else ""
    return label or source.label(node), False


def value_over(name: str, sql: SqlExpr, schema: Schema) -> Expr:
    """Return what a text means over the columns of `schema`; raises SqlError if it means nothing."""
    source, node = _read(name, sql.text, sql.dialect)
    stage = Stage("an expression of a collection", _scope(sql, schema))
    reader = SpecialReader(source, AttributeNames(), _Subqueries(source)).expressions
    if sql.form:
        value = reader.truth(node, stage)
    else:
        value = reader.read(node.this if isinstance(node, exp.Alias) else node, stage)
    return value.expr


def has_aggregates(name: str, sql: SqlExpr) -> bool:
    """Return True if there is an aggregate in a text that is none of a window."""
    _, node = _read(name, sql.text, sql.dialect)
    parts = [each for each in node.walk() if isinstance(each, exp.Expression)]
    return any(aggregate_kind(each) is not None and each.find_ancestor(exp.Window) is None for each in parts)


def grouped_over(name: str, sql: SqlExpr, schema: Schema, keys: Sequence[str]) -> GroupedText:
    """Return what a text means over the groups by `keys`; raises SqlError if it means nothing."""
    source, node = _read(name, sql.text, sql.dialect)
    scope = _scope(sql, schema)
    calls = AggregateCalls(keys=[ColumnRef(key).describe() for key in keys])
    stage = Stage("agg", scope, calls, inner=Stage("the operand of an aggregate", scope))
    reader = SpecialReader(source, AttributeNames(), _Subqueries(source)).expressions
    expr = reader.read(node.this if isinstance(node, exp.Alias) else node, stage).expr
    aggregates = {call.attribute.name: aggregate_of(call) for call in calls.calls}
    for call in calls.calls:
        if is_apart(call) or calls.groupings:
            raise source.error(node, "is of a whole query: write dd.sql(flow, 'select …', rows=rows)")
    ungrouped = sorted(expr.columns() - aggregates.keys() - set(keys))
    if ungrouped:
        raise source.error(node, f"{ungrouped[0]} is no key, and in no aggregate: write max({ungrouped[0]})")
    return GroupedText(expr, aggregates)


def _scope(sql: SqlExpr, schema: Schema) -> NameScope:
    """Return the columns of the rows, and the sides that the text may name, as in a.x. The columns of a side
    are those of the rows once more.
    """
    sides = [
        ColumnsOf(
            alias,
            tuple(Attribute(name, own, schema[name].type) for own, name in columns.items()),
            frozenset(columns.values()),
        )
        for alias, columns in sql.sides.items()
    ]
    return NameScope(
        [ColumnsOf("", tuple(Attribute(each.name, each.name, each.type) for each in schema)), *sides]
    )


class _Subqueries:
    """Refuses the subqueries of a text."""

    def __init__(self, text: SqlText) -> None:
        self._text = text

    def __call__(self, node: exp.Expression, outer: NameScope | None) -> Relation:
        raise self._text.error(
            node,
            f"{self._text.written(node)}: a subquery reads other collections: write the whole query, "
            "dd.sql(flow, 'select …', orders=orders)",
        )


def _read(name: str, text: str, dialect: str) -> tuple[SqlText, exp.Expression]:
    source = SqlText(_BEFORE + text, dialect, name, (0, -len(_BEFORE)))
    if not text.strip():
        raise source.error_of_place(len(_BEFORE), "the text is empty")
    select = source.statement()
    items = children_of(select, "expressions")
    if not isinstance(select, exp.Select) or len(items) != 1:
        raise source.error_of_place(len(_BEFORE), "needs one expression")
    for part, value in select.args.items():
        if value and part != "expressions":
            raise source.error_of_place(
                len(_BEFORE), f"needs one expression, and has {part.strip('_').upper()} besides"
            )
    return source, items[0]
