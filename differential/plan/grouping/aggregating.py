"""Turn `agg` into operators, also when it computes several aggregates of different classes.

    added      sums of any kind: one `Accumulate` of the rows for all of them, constant work per change
    distinct   count_distinct: the distinct values, once each, are one more source of the same `Accumulate`
    chosen     min, argmin, first, collect …: one operator each, whose one answer per group goes into the same
               `Accumulate`

So one operator makes the whole row of a group. A single chosen aggregate is that operator alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...aggregates import ADDED, CHOSEN, Aggregate
from ...expressions.expression import ColumnRef, Expr
from ...operators.ordered.layout import SortDirection
from ...skew.balance import Balance
from ..nodes import Accumulate, AddedColumn, Distinct, Filter, Node, OrderBy, Reduce, Select, check_order
from .choosing import best_value, first_value
from .collecting import collected
from .computing import order_of, with_columns
from .dividing import divided

__all__ = ["aggregated"]

_Add = Callable[[Node], Node]
"""Enters a node into the plan, as written where the user's call is."""


def aggregated(
    add: _Add,
    source: Node,
    keys: tuple[str, ...],
    aggregates: Mapping[str, Aggregate],
    balance: Balance | None = None,
) -> Node:
    """Return a node with one row per group of `source`: the keys, and each aggregate under its name.

    `balance` divides the groups of chosen aggregates among units.
    """
    source, named = _with_arguments(add, source, keys, aggregates)
    chosen = {
        name: _chosen(add, source, keys, name, a, balance) for name, a in named.items() if _is_chosen(a)
    }
    if len(chosen) == len(named) == 1:
        return next(iter(chosen.values()))
    needed: list[Node] = [source] if len(chosen) < len(named) else []
    needed += [node for node in chosen.values() if node not in needed]
    others: list[Node] = []
    added: list[AddedColumn] = []
    for name, aggregate in named.items():
        if name in chosen:
            added.append(AddedColumn(name, needed.index(chosen[name]), Aggregate("only", name)))
        elif aggregate.kind in ADDED:
            added.append(AddedColumn(name, 0, aggregate))
        else:
            values = _different(add, source, keys, aggregate)
            if values not in others:
                others.append(values)
            added.append(AddedColumn(name, len(needed) + others.index(values), Aggregate("count")))
    return add(Accumulate((*needed, *others), keys, len(needed), tuple(added)))


def _is_chosen(aggregate: Aggregate) -> bool:
    return aggregate.kind in CHOSEN


def _chosen(
    add: _Add,
    source: Node,
    keys: tuple[str, ...],
    name: str,
    aggregate: Aggregate,
    balance: Balance | None,
) -> Node:
    """Return a node with at most one row per group: the keys, and `name`."""
    kind, column = aggregate.kind, aggregate.column
    assert column is not None
    if kind in ("collect", "collect_set"):
        return collected(add, source, keys, name, column, once=kind == "collect_set")
    if kind in ("min", "max"):
        type_ = source.schema[column].type
        if type_.is_ordered and not type_.nullable:
            return divided(
                add, Reduce(_read(add, source, keys, column, balance), keys, ((name, aggregate),)), balance
            )
        check_order(source.schema, column, aggregate.describe())
        return best_value(add, source, keys, name, column, _best(column, kind == "max"), balance)
    source, order = order_of(add, source, aggregate.by)
    for each in order:
        check_order(source.schema, each.column, aggregate.describe())
    if kind in ("argmin", "argmax"):
        by = _best(order[0].column, kind == "argmax")
        return best_value(add, source, keys, name, column, by, balance)
    return first_value(add, source, keys, name, column, order, balance)


def _best(column: str, descending: bool) -> OrderBy:
    """Return the order with the least value first, or the greatest, and null last."""
    return OrderBy(column, SortDirection(descending, nulls_last=True))


def _read(add: _Add, source: Node, keys: Sequence[str], column: str, balance: Balance | None) -> Node:
    """Return only the needed columns if rows are divided, since the division depends on all columns."""
    if balance is None:
        return source
    names = dict.fromkeys((*keys, column))
    return add(Select(source, tuple((name, ColumnRef(name)) for name in names)))


def _different(add: _Add, source: Node, keys: tuple[str, ...], aggregate: Aggregate) -> Node:
    """Return the distinct values of a column in each group, without null."""
    column = aggregate.column
    assert column is not None
    aggregate.type_in(source.schema)
    if source.schema[column].type.nullable:
        source = add(Filter(source, ~ColumnRef(column).is_null()))
    names = tuple(dict.fromkeys((*keys, column)))
    return add(Distinct(add(Select(source, tuple((name, ColumnRef(name)) for name in names)))))


def _with_arguments(
    add: _Add, source: Node, keys: Sequence[str], aggregates: Mapping[str, Aggregate]
) -> tuple[Node, dict[str, Aggregate]]:
    """Add a column to `source` for each argument that is computed, or is a key to be chosen from."""
    arguments: dict[str, Expr] = {}
    for name, aggregate in aggregates.items():
        argument = aggregate.argument
        if argument is None and aggregate.column and aggregate.column in keys and _is_chosen(aggregate):
            argument = ColumnRef(aggregate.column)
        if argument is not None:
            arguments[name] = argument
    source, columns = with_columns(add, source, list(arguments.values()))
    columns_by_name = dict(zip(arguments, columns, strict=True))
    return source, {
        name: Aggregate(aggregate.kind, columns_by_name[name], by=aggregate.by)
        if name in columns_by_name
        else aggregate
        for name, aggregate in aggregates.items()
    }
