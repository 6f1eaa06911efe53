"""Collect the values of a group: as a list, as one text, or to choose those at some places of their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...aggregates import Aggregate
from ...errors import ExpressionError
from ...expressions.expression import ColumnRef
from ..nodes import GroupCall, GroupValues, Node, OrderBy, Select, check_order
from .computing import order_of

__all__ = ["collected", "percentiles_of"]

_Add = Callable[[Node], Node]
"""Enters a node into the plan, as written where the user's call is."""


def collected(add: _Add, source: Node, keys: tuple[str, ...], name: str, aggregate: Aggregate) -> Node:
    """Return the list of the non-null values of a column in each group, or their text, as `name` beside the
    keys.
    """
    column, separator = aggregate.column, aggregate.option
    assert column is not None
    kind = source.schema[column].type.kind
    if aggregate.kind in ("string_agg", "string_agg_set") and kind != "string":
        raise ExpressionError(
            f"{aggregate.written()} is of texts, not of {source.schema[column].type}: write "
            f"col.{column}.cast('string')"
        )
    source, order = order_of(add, source, aggregate.by)
    places: dict[str, OrderBy] = {}
    for each in order:
        check_order(source.schema, each.column, aggregate.describe())
        if each.column not in keys:
            places.setdefault(each.column, each)
    names = dict.fromkeys((*keys, *places, column))
    rows = add(Select(source, tuple((each, ColumnRef(each)) for each in names)))
    call = GroupCall(name, aggregate.kind, separator)
    return add(GroupValues(rows, keys, column, tuple(places.values()), (call,)))


def percentiles_of(
    add: _Add, source: Node, keys: tuple[str, ...], column: str, named: Sequence[tuple[str, Aggregate]]
) -> Node:
    """Return the values of a column at some places of its order, each under its name beside the keys."""
    rows = add(Select(source, tuple((each, ColumnRef(each)) for each in (*keys, column))))
    calls = tuple(GroupCall(name, aggregate.kind, aggregate.option) for name, aggregate in named)
    return add(GroupValues(rows, keys, column, (), calls))
