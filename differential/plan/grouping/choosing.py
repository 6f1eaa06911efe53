"""One value of each group, chosen by an order: the least, the greatest, or what stands beside it.

    best_value    v where x is least, or greatest, of the rows where x is not null; null if there is none.
                  With v = x itself: min and max; else argmin and argmax
    first_value   v of the first row in an order, in which null has its place

Where several rows are alike in that, the least v. Each is the first row (`TopK`) of the group, cut to the
columns that are named: rows that differ elsewhere count as one, as for all aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...columns.column_types import ColumnType
from ...errors import ExpressionError
from ...expressions.expression import ColumnRef, Expr, Ordering, when
from ...operators.ordered.layout import Turn, has_order
from ..nodes import Node, OrderBy, Select, TopK

__all__ = ["best_value", "first_value", "order_of"]

_Add = Callable[[Node], Node]
"""Enters a node into the plan, as written where the user's call is."""


def best_value(
    add: _Add, source: Node, keys: tuple[str, ...], name: str, value: str, by: str, descending: bool
) -> Node:
    """`value` of the row whose `by` is least, or greatest (`descending`), as `name` beside the keys."""
    first = _first(add, source, keys, [OrderBy(by, Turn(descending, nulls_last=True))], value)
    chosen: Expr = ColumnRef(value)
    if by != value and source.schema[by].type.nullable:
        # With nothing to compare by there is nothing to choose.
        chosen = when(~ColumnRef(by).is_null()).then(chosen)
    return _named(add, first, keys, name, chosen)


def first_value(
    add: _Add, source: Node, keys: tuple[str, ...], name: str, value: str, order: Sequence[OrderBy]
) -> Node:
    """`value` of the first row of each group in an order, as `name` beside the keys."""
    return _named(add, _first(add, source, keys, order, value), keys, name, ColumnRef(value))


def order_of(add: _Add, source: Node, by: Sequence[Ordering]) -> tuple[Node, list[OrderBy]]:
    """`source` with what an order computes as columns, and the order of columns."""
    computed: dict[str, Expr] = {}
    found: list[OrderBy] = []
    for each in by:
        name = f"{each.expr.describe()} (in order)"
        if isinstance(each.expr, ColumnRef):
            name = each.expr.name
        else:
            computed[name] = each.expr
        found.append(OrderBy(name, Turn(each.descending, each.nulls_last)))
    if computed:
        kept = {name: ColumnRef(name) for name in source.schema.names}
        source = add(Select(source, (*kept.items(), *computed.items())))
    return source, found


def _check_order(type_: ColumnType, described: str, column: str) -> None:
    """Raise ExpressionError if values of this type cannot be put in order."""
    if not has_order(type_):
        raise ExpressionError(f"{described}: column {column!r} is {type_}, and its values have no order")


def _first(add: _Add, source: Node, keys: tuple[str, ...], order: Sequence[OrderBy], value: str) -> Node:
    for each in order:
        _check_order(source.schema[each.column].type, each.describe(), each.column)
    whole = [each for each in order if each.column not in keys]
    if has_order(source.schema[value].type) and value not in (*keys, *(each.column for each in whole)):
        whole.append(OrderBy(value, Turn(nulls_last=True)))
    names = dict.fromkeys((*keys, *(each.column for each in whole), value))
    rows = add(Select(source, tuple((name, ColumnRef(name)) for name in names)))
    return add(TopK(rows, keys, tuple(whole), 1))


def _named(add: _Add, first: Node, keys: tuple[str, ...], name: str, chosen: Expr) -> Node:
    return add(Select(first, (*((key, ColumnRef(key)) for key in keys), (name, chosen))))
