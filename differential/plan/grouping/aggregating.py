"""Turn `agg` into operators, also when it computes several aggregates of different classes.

    added      sums of any kind: one `Accumulate` of the rows for all of them, constant work per change
    distinct   count_distinct, sum_distinct …: the distinct values, once each, are one more source of the same
               `Accumulate`; so are the registers of approx_count_distinct
    chosen     min, argmin, first, collect …: one operator each, whose one answer per group goes into the same
               `Accumulate`. All percentiles of a column are one operator
    composed   corr …: computed of the answers of others

So one operator makes the whole row of a group. A single chosen aggregate is that operator alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...aggregates import (
    ADDED,
    CHOSEN,
    COLLECTED,
    DISTINCT,
    OF_FLOATS,
    OF_PAIRS,
    PERCENTILES,
    SPREADS,
    Aggregate,
)
from ...columns.column_types import floating
from ...errors import ExpressionError
from ...expressions.expression import ColumnRef, Expr, col, when
from ...expressions.types import type_of
from ...operators.ordered.layout import SortDirection
from ...skew.balance import Balance
from ..nodes import Accumulate, AddedColumn, Distinct, Filter, Node, OrderBy, Reduce, Select, check_order
from .choosing import best_value, first_value, most_frequent, some_value
from .collecting import collected, percentiles_of
from .composing import estimate, flattened, registers
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
    flat, finals = flattened(named)
    chosen = _all_chosen(add, source, keys, flat, balance)
    if len(chosen) == len(named) and len(set(chosen.values())) == 1:
        return next(iter(chosen.values()))
    needed: list[Node] = [source] if len(chosen) < len(flat) else []
    needed += dict.fromkeys(chosen.values())
    others: list[Node] = []
    added: list[AddedColumn] = []

    def other(node: Node) -> int:
        if node not in others:
            others.append(node)
        return len(needed) + others.index(node)

    for name, aggregate in flat.items():
        if name in chosen:
            added.append(AddedColumn(name, needed.index(chosen[name]), Aggregate("only", name)))
        elif aggregate.kind in ADDED:
            added.append(AddedColumn(name, 0, aggregate))
        elif aggregate.kind in DISTINCT:
            added.append(
                AddedColumn(name, other(_different(add, source, keys, aggregate)), _of_values(aggregate))
            )
        else:
            columns, finals[name] = _approximate(add, source, keys, (name, aggregate), other)
            added += columns
    answers = add(Accumulate((*needed, *others), keys, len(needed), tuple(added)))
    if not finals:
        return answers
    return add(Select(answers, tuple((name, finals.get(name, ColumnRef(name))) for name in (*keys, *named))))


def _approximate(
    add: _Add,
    source: Node,
    keys: tuple[str, ...],
    named: tuple[str, Aggregate],
    other: Callable[[Node], int],
) -> tuple[list[AddedColumn], Expr]:
    """Return the sums from which the number of different values is estimated, and the estimate."""
    name, aggregate = named
    assert aggregate.column is not None and isinstance(aggregate.option, float)
    node, weight = registers(add, source, keys, aggregate.column, aggregate.option)
    place = other(node)
    filled, weights = f"{name} (registers)", f"{name} (weights)"
    columns = [
        AddedColumn(filled, place, Aggregate("count")),
        AddedColumn(weights, place, Aggregate("sum", weight)),
    ]
    return columns, estimate(ColumnRef(filled), ColumnRef(weights), aggregate.option)


def _of_values(aggregate: Aggregate) -> Aggregate:
    """Return the aggregate of the distinct values that answers one of values that are taken once."""
    if aggregate.kind == "count_distinct":
        return Aggregate("count")
    return Aggregate("sum" if aggregate.kind == "sum_distinct" else "avg", aggregate.column)


def _all_chosen(
    add: _Add,
    source: Node,
    keys: tuple[str, ...],
    named: Mapping[str, Aggregate],
    balance: Balance | None,
) -> dict[str, Node]:
    """Return for each chosen aggregate a node with at most one row per group: the keys, and its name."""
    percentiles: dict[str, list[tuple[str, Aggregate]]] = {}
    for name, aggregate in named.items():
        if aggregate.kind in PERCENTILES and aggregate.column is not None:
            percentiles.setdefault(aggregate.column, []).append((name, aggregate))
    together = {
        name: node
        for column, some in percentiles.items()
        for node in [percentiles_of(add, source, keys, column, some)]
        for name, _ in some
    }
    return {
        name: together[name] if name in together else _chosen(add, source, keys, name, a, balance)
        for name, a in named.items()
        if _is_chosen(a)
    }


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
    if kind in COLLECTED:
        return collected(add, source, keys, name, aggregate)
    if kind == "mode":
        return most_frequent(add, source, keys, name, column)
    if kind == "any_value":
        if not source.schema[column].type.has_order:
            return some_value(add, source, keys, name, column)
        # Which value it is stays open; the least one costs least.
        kind, aggregate = "min", Aggregate("min", column)
    if kind in ("min", "max"):
        type_ = source.schema[column].type
        if type_.is_ordered and type_.words == 1:
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


def _of_one_word(source: Node, aggregate: Aggregate) -> Expr | None:
    """Return the argument of a spread or a percentile, a wide decimal as a float: those are of one word."""
    argument, column = aggregate.argument, aggregate.column
    values = ColumnRef(column) if argument is None and column is not None else argument
    assert values is not None
    if not type_of(values, source.schema).is_wide:
        return argument
    if aggregate.kind == "percentile_disc":
        raise ExpressionError(
            f"{aggregate.describe()} takes decimals of at most 18 digits: write "
            f"{values.describe()}.cast('decimal(18, 2)'), or .cast('float')"
        )
    return values.cast(floating)


def _with_arguments(
    add: _Add, source: Node, keys: Sequence[str], aggregates: Mapping[str, Aggregate]
) -> tuple[Node, dict[str, Aggregate]]:
    """Add a column to `source` for each argument that is computed, or cast, or is a key to be chosen from."""
    arguments: dict[tuple[str, int], Expr] = {}
    for name, aggregate in aggregates.items():
        argument = aggregate.argument
        if aggregate.kind in SPREADS | PERCENTILES:
            argument = _of_one_word(source, aggregate)
        if argument is None and aggregate.column and aggregate.column in keys and _is_chosen(aggregate):
            argument = ColumnRef(aggregate.column)
        if aggregate.kind in OF_FLOATS:
            _check_numbers(source, aggregate)
            first, *others = _floats(aggregate)
            arguments[name, 0] = first
            if others:
                arguments[name, 1] = others[0]
        elif argument is not None:
            arguments[name, 0] = argument
    source, columns = with_columns(add, source, list(arguments.values()))
    named = dict(zip(arguments, columns, strict=True))
    return source, {
        name: Aggregate(
            aggregate.kind,
            named[name, 0],
            by=aggregate.by,
            second=named.get((name, 1)),
            option=aggregate.option,
        )
        if (name, 0) in named
        else aggregate
        for name, aggregate in aggregates.items()
    }


def _floats(aggregate: Aggregate) -> list[Expr]:
    """Return the columns of an aggregate of floats; of a pair both are null where one is."""
    first = _first_of(aggregate).cast("float")
    if aggregate.kind not in OF_PAIRS:
        return [first]
    second = _expr_of(aggregate.second).cast("float")
    both = first.is_not_null() & second.is_not_null()
    return [when(both).then(first), when(both).then(second)]


def _first_of(aggregate: Aggregate) -> Expr:
    return _expr_of(aggregate.column if aggregate.argument is None else aggregate.argument)


def _expr_of(argument: str | Expr | None) -> Expr:
    assert argument is not None
    return col(argument) if isinstance(argument, str) else argument


def _check_numbers(source: Node, aggregate: Aggregate) -> None:
    """Raise ExpressionError unless an aggregate of floats is one of numbers."""
    second = [] if aggregate.second is None else [_expr_of(aggregate.second)]
    for each in (_first_of(aggregate), *second):
        type_ = type_of(each, source.schema)
        if not type_.is_number:
            raise ExpressionError(f"{aggregate.written()} is of numbers, not of {type_}: cast it to float")
