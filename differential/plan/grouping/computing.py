"""Add columns for computed arguments of aggregates and orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...expressions.expression import ColumnRef, Expr, Ordering
from ...expressions.pending import over_rows
from ...operators.ordered.layout import SortDirection
from ..nodes import Node, OrderBy, Select

__all__ = ["order_of", "with_columns"]

_Add = Callable[[Node], Node]
"""Enters a node into the plan, as written where the user's call is."""


def with_columns(add: _Add, source: Node, exprs: Sequence[Expr]) -> tuple[Node, list[str]]:
    """Add one column to `source` for each different expression; return it, and the column of each."""
    computed: dict[str, Expr] = {}
    names: list[str] = []
    for expr in (over_rows(each, source) for each in exprs):
        name = expr.describe()
        while name in source.schema:
            name += "'"
        computed[name] = expr
        names.append(name)
    if computed:
        columns = {name: ColumnRef(name) for name in source.schema.names}
        source = add(Select(source, (*columns.items(), *computed.items())))
    return source, names


def order_of(add: _Add, source: Node, by: Sequence[Ordering]) -> tuple[Node, list[OrderBy]]:
    """Add columns to `source` for the computed parts of an order; return it, and the order by columns."""
    exprs = [over_rows(each.expr, source) for each in by]
    source, names = with_columns(add, source, [each for each in exprs if not isinstance(each, ColumnRef)])
    computed = iter(names)
    order: list[OrderBy] = []
    for each, expr in zip(by, exprs, strict=True):
        name = expr.name if isinstance(expr, ColumnRef) else next(computed)
        order.append(OrderBy(name, SortDirection(each.descending, each.nulls_last)))
    return source, order
