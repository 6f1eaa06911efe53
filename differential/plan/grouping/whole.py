"""Aggregates of a whole collection: one row at every time, also of no rows.

    answer = result + (one row - result) as the row of nothing

*result* has one row while there is something to aggregate, and none otherwise. The second part is linear: it
costs no stage beside the constant row, and stores nothing. In a loop the constant row is there from iteration
0 on, as all that enters a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...aggregates import Aggregate
from ...columns.column_types import ColumnType
from ...expressions.expression import ColumnRef, Expr, lit
from ..nodes import Concat, Negate, Node, OneRow, Select

__all__ = ["always_one_row"]

_COUNTS: Final = ("count", "count_if", "count_distinct", "approx_count_distinct")
_LISTS: Final = ("collect", "collect_set")


def always_one_row(add: Callable[[Node], Node], result: Node, aggregates: Mapping[str, Aggregate]) -> Node:
    """Complete `result`, which has the columns `aggregates`: where it has no row, add the row of nothing."""
    types = {name: _type(result.schema[name].type, aggregate) for name, aggregate in aggregates.items()}
    columns: list[tuple[str, Expr]] = []
    for name, type_ in types.items():
        is_same = result.schema[name].type == type_
        columns.append((name, ColumnRef(name) if is_same else ColumnRef(name).cast(type_)))
    one = add(OneRow())
    (flag,) = one.schema.names
    missing = add(Concat((one, add(Negate(add(Select(result, ((flag, lit(1)),))))))))
    nothing = add(
        Select(missing, tuple((name, _of_nothing(aggregates[name], types[name])) for name in types))
    )
    return add(Concat((add(Select(result, tuple(columns))), nothing)))


def _type(type_: ColumnType, aggregate: Aggregate) -> ColumnType:
    return type_ if aggregate.kind in (*_COUNTS, *_LISTS) else type_.or_null()


def _of_nothing(aggregate: Aggregate, type_: ColumnType) -> Expr:
    if aggregate.kind in _COUNTS:
        return lit(0)
    return lit([], type_) if aggregate.kind in _LISTS else lit(None, type_)
