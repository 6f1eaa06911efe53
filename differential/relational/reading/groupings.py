"""GROUP BY: which expressions are keys, and which sets of them make groups."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import NamedTuple

from sqlglot import exp

from .texts import SqlText, children_of

__all__ = ["GroupKeys", "keys_of"]

_SETS_MAX = 512
"""Most sets of keys of one query; CUBE of nine columns has as many."""


class GroupKeys(NamedTuple):
    """The nodes of the keys, each once, and the sets by their places; None: one set of all."""

    nodes: list[exp.Expression]
    sets: list[tuple[int, ...]] | None


_Sets = list[tuple[exp.Expression, ...]]


def keys_of(text: SqlText, group: exp.Group, meant: Callable[[exp.Expression], exp.Expression]) -> GroupKeys:
    """Return the keys of GROUP BY. `meant` returns what one stands for: an item of SELECT, of a number."""
    text.parts_of(group, "expressions", "rollup", "cube", "grouping_sets")
    factors: list[_Sets] = []
    plain: list[exp.Expression] = []
    for node in children_of(group, "expressions"):
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            factors.append(_sets_of(text, node, meant))
        else:
            plain.append(meant(node))
    nodes = list(plain)
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube), ("grouping_sets", exp.GroupingSets)):
        for node in children_of(group, name):
            whole = kind(expressions=[each.copy() for each in plain])  # WITH ROLLUP, of all keys before it
            factors.append(_sets_of(text, node if children_of(node, "expressions") else whole, meant))
            plain = []
    for factor in factors:
        nodes += [node for each in factor for node in each]
    unique: list[exp.Expression] = []
    for node in nodes:
        if not any(node == other for other in unique):
            unique.append(node)
    if not factors:
        return GroupKeys(unique, None)
    sets: list[tuple[int, ...]] = []
    for chosen in product(*factors):
        wanted = [*plain, *(node for each in chosen for node in each)]
        sets.append(tuple(place for place, node in enumerate(unique) if any(node == one for one in wanted)))
        if len(sets) > _SETS_MAX:
            raise text.error(group, f"GROUP BY has more than {_SETS_MAX} sets of keys")
    return GroupKeys(unique, sets)


def _sets_of(text: SqlText, node: exp.Expression, meant: Callable[[exp.Expression], exp.Expression]) -> _Sets:
    text.parts_of(node, "expressions")
    members = children_of(node, "expressions")
    if isinstance(node, exp.GroupingSets):
        outcome: _Sets = []
        for member in members:
            if isinstance(member, exp.Rollup | exp.Cube | exp.GroupingSets):
                outcome += _sets_of(text, member, meant)
            else:
                outcome.append(_members(member, meant))
        return outcome
    parts = [_members(member, meant) for member in members]
    if len(parts) > 12:
        raise text.error(node, "ROLLUP and CUBE take twelve keys at most")
    sizes = range(len(parts), -1, -1)
    if isinstance(node, exp.Rollup):
        chosen = [parts[:size] for size in sizes]
    else:
        chosen = [list(each) for size in sizes for each in combinations(parts, size)]
    return [tuple(node for part in each for node in part) for each in chosen]


def _members(
    node: exp.Expression, meant: Callable[[exp.Expression], exp.Expression]
) -> tuple[exp.Expression, ...]:
    if isinstance(node, exp.Tuple):
        return tuple(meant(each) for each in children_of(node, "expressions"))
    while isinstance(node, exp.Paren):
        node = node.this
    return (meant(node),)
