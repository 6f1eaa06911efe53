"""Divide groups among units: each unit chooses from its rows of a group, then one operator from the choices.

An operator that chooses from a group stores all rows of the group, and a group is on one worker. So a hot key
is the work of one worker. But the first n of the first n of all shares are the first n of all, in an order
without ties or with all of them, and the least of the least is the least. So rows are placed by a hash of
the whole row, each in one unit. A first operator chooses by the keys and the unit, a second one chooses from
these choices by the keys. Equal rows are in one unit, so a row of negative multiplicity takes away there what
it would take away without units.

Sums need none of this: rows become components, added up on the way to the worker of their group
(`linear/accumulating.py`), so that a hot key sends a few rows for each batch. Distinct values
(`count_distinct`) need none of it either: each is on the worker of its own hash. A function that needs the
whole group cannot be divided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...aggregates import Aggregate
from ...expressions.expression import ColumnRef
from ...linear.placing import UNIT
from ...skew.balance import Balance
from ..nodes import Node, PlaceOnUnits, Reduce, Select, TopK

__all__ = ["divided"]

_Add = Callable[[Node], Node]
"""Enters a node into the plan, as written where the user's call is."""


def divided(add: _Add, node: TopK | Reduce, balance: Balance | None) -> Node:
    """Return `node` with its groups divided by `balance`; undivided if each key stays in one unit anyway."""
    if balance is None or balance.division is None:
        return add(node)
    placed = add(PlaceOnUnits(node.source, node.keys, 0, "divided", balance))
    keys = (*node.keys, UNIT)
    if isinstance(node, TopK):
        choice = add(TopK(placed, keys, node.order, node.limit + node.offset, ties=node.ties))
        choices = _without_unit(add, choice)
        return add(replace(node, source=choices))
    choices = _without_unit(add, add(Reduce(placed, keys, node.aggregates)))
    aggregates = tuple((name, Aggregate(aggregate.kind, name)) for name, aggregate in node.aggregates)
    return add(Reduce(choices, node.keys, aggregates))


def _without_unit(add: _Add, source: Node) -> Node:
    names = [name for name in source.schema.names if name != UNIT]
    return add(Select(source, tuple((name, ColumnRef(name)) for name in names)))
