"""Collect the values of a group as a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from ...columns.schema import Schema
from ...expressions.expression import ColumnRef
from ..functions import UserFunction
from ..nodes import Node, ReduceFunction, Select

__all__ = ["collected", "values_of", "values_once"]

_Members = Sequence[tuple[tuple[object, ...], int]]
"""Rows of one column, and the multiplicity of each."""


def collected(
    add: Callable[[Node], Node], source: Node, keys: tuple[str, ...], name: str, column: str, once: bool
) -> Node:
    """Return the list of non-null values of `column` in each group, in order, as `name` beside the keys."""
    named = {key: ColumnRef(key) for key in keys}
    rows = add(Select(source, (*named.items(), (f"{column} (collected)", ColumnRef(column)))))
    function = UserFunction.of(values_once if once else values_of)
    return add(ReduceFunction(rows, keys, function, Schema.of({name: "any"})))


def values_of(key: object, members: _Members) -> list[tuple[object]]:
    """Return one row: the values in order, each as often as its multiplicity says."""
    del key
    return [([value for (value,), count in _in_order(members) for _ in range(count)],)]


def values_once(key: object, members: _Members) -> list[tuple[object]]:
    """Return one row: the distinct values in order."""
    del key
    return [([value for (value,), _ in _in_order(members)],)]


def _in_order(members: _Members) -> _Members:
    present = [(row, count) for row, count in members if count > 0 and row[0] is not None]
    try:
        return sorted(present, key=lambda member: cast("int", member[0][0]))
    except TypeError:  # values of several types
        return sorted(present, key=lambda member: (type(member[0][0]).__name__, repr(member[0][0])))
