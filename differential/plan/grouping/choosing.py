"""Choose one value of each group by an order: the least, the greatest, or the value beside it.

    best_value    v where x is least, or greatest, among the rows where x is not null; null if there is none.
                  With v = x itself: min and max; else argmin and argmax
    first_value   v of the first row in an order, in which null has its place
    some_value    v that is not null, the first one in the order of its words
    most_frequent v that is there most often, null aside

Ties go to the least v. Each is the first row (`TopK`) of the group, cut to the named columns: rows that
differ only in others count as one, as for all aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...aggregates import Aggregate
from ...expressions.expression import ColumnRef, Expr, when
from ...operators.ordered.layout import SortDirection
from ...skew.balance import Balance
from ..nodes import Accumulate, AddedColumn, Filter, Node, OrderBy, Select, TopK
from .dividing import divided

__all__ = ["best_value", "first_value", "most_frequent", "some_value"]

_Add = Callable[[Node], Node]
"""Enters a node into the plan, as written where the user's call is."""


def best_value(
    add: _Add,
    source: Node,
    keys: tuple[str, ...],
    name: str,
    value: str,
    by: OrderBy,
    balance: Balance | None,
) -> Node:
    """Return `value` of the first row in the order `by`, in which null is last, as `name` beside the keys."""
    first = _first(add, source, keys, [by], value, balance)
    chosen: Expr = ColumnRef(value)
    if by.column != value and source.schema[by.column].type.nullable:
        # If all values of the order are null, there is nothing to choose.
        chosen = when(~ColumnRef(by.column).is_null()).then(chosen)
    return _named(add, first, keys, name, chosen)


def first_value(
    add: _Add,
    source: Node,
    keys: tuple[str, ...],
    name: str,
    value: str,
    order: Sequence[OrderBy],
    balance: Balance | None,
) -> Node:
    """Return `value` of the first row of each group in an order, as `name` beside the keys."""
    return _named(add, _first(add, source, keys, order, value, balance), keys, name, ColumnRef(value))


def some_value(add: _Add, source: Node, keys: tuple[str, ...], name: str, value: str) -> Node:
    """Return a value of each group, of any type, that is not null if there is one, as `name` beside the
    keys.
    """
    is_null = f"{value} (is null)"
    named = [(key, ColumnRef(key)) for key in dict.fromkeys((*keys, value))]
    rows = add(Select(source, (*named, (is_null, ColumnRef(value).is_null().cast("int")))))
    return first_value(add, rows, keys, name, value, [OrderBy(is_null)], None)


def most_frequent(add: _Add, source: Node, keys: tuple[str, ...], name: str, value: str) -> Node:
    """Return the most frequent value of each group, the least of several, as `name` beside the keys.

    Values are counted first, each once for all its rows. Null counts if there is nothing else.
    """
    count, is_null = f"{value} (rows)", f"{value} (is null)"
    named = [(key, ColumnRef(key)) for key in (*keys, value)]
    counted = add(Accumulate((source,), (*keys, value), 1, (AddedColumn(count, 0, Aggregate("count")),)))
    there = add(Filter(counted, ColumnRef(count) > 0))
    null = ColumnRef(value).is_null().cast("int")
    rows = add(Select(there, (*named, (count, ColumnRef(count)), (is_null, null))))
    order = [OrderBy(is_null), OrderBy(count, SortDirection(descending=True))]
    return first_value(add, rows, keys, name, value, order, None)


def _first(
    add: _Add,
    source: Node,
    keys: tuple[str, ...],
    order: Sequence[OrderBy],
    value: str,
    balance: Balance | None,
) -> Node:
    whole: dict[str, OrderBy] = {}
    for each in order:
        # A key is the same in all of a group, and a second mention of a column adds nothing.
        if each.column not in keys:
            whole.setdefault(each.column, each)
    if source.schema[value].type.has_order and value not in (*keys, *whole):
        whole[value] = OrderBy(value, SortDirection(nulls_last=True))
    names = dict.fromkeys((*keys, *whole, value))
    rows = add(Select(source, tuple((name, ColumnRef(name)) for name in names)))
    return divided(add, TopK(rows, keys, tuple(whole.values()), 1), balance)


def _named(add: _Add, first: Node, keys: tuple[str, ...], name: str, chosen: Expr) -> Node:
    return add(Select(first, (*((key, ColumnRef(key)) for key in keys), (name, chosen))))
