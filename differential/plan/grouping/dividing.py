"""Groups that are divided among units: each makes the first rows of its part, of which come the first ones.

What is chosen of a group keeps all of its rows, and a group is in one place; so a hot key is the work of one
worker. But the first n of the first n of all parts are the first n of all, in an order without ties, and the
least of the least is the least. So the rows are placed by a hash of themselves, each in one unit, chosen of
there by their keys and the unit, and what is chosen is chosen of once more, by the keys. Equal rows are in
one unit: what is there less than never there takes away what it would take away.

Sums need none of this: rows become components, added up on their way to where their group is
(`linear/accumulating.py`), so that a hot key sends a few rows for each batch. Nor do different values
(`count_distinct`), which are where they themselves belong. What needs the whole group cannot be divided.
"""

from __future__ import annotations

from collections.abc import Callable

from ...aggregates import Aggregate
from ...expressions.expression import ColumnRef
from ...linear.placing import UNIT
from ...skew.balance import Balance
from ..nodes import Node, PlaceOnUnits, Reduce, Select, TopK

__all__ = ["divided"]

_Add = Callable[[Node], Node]
"""Enters a node into the plan, as written where the user's call is."""


def divided(add: _Add, node: TopK | Reduce, balance: Balance | None) -> Node:
    """`node`, of groups that `balance` divides; as it is without one, or if each key is in one unit by it."""
    if balance is None or balance.division is None:
        return add(node)
    placed = add(PlaceOnUnits(node.source, node.keys, 0, "divided", balance))
    keys = (*node.keys, UNIT)
    if isinstance(node, TopK):
        part = add(TopK(placed, keys, node.order, node.limit + node.offset))
        parts = _without_unit(add, part)
        return add(TopK(parts, node.keys, node.order, node.limit, node.offset, node.rank))
    parts = _without_unit(add, add(Reduce(placed, keys, node.aggregates)))
    again = tuple((name, Aggregate(aggregate.kind, name)) for name, aggregate in node.aggregates)
    return add(Reduce(parts, node.keys, again))


def _without_unit(add: _Add, source: Node) -> Node:
    names = [name for name in source.schema.names if name != UNIT]
    return add(Select(source, tuple((name, ColumnRef(name)) for name in names)))
