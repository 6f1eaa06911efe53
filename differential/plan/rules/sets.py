"""Remove a distinct of a collection that is a set already, and a `Keys` of a group by just these keys.

A reduce by a function is no such set, since it may give a row twice. An input is none either: it may have a
row twice, or with a negative multiplicity. Inside a loop, the replacement is consolidated if only the
distinct made it so.
"""

from __future__ import annotations

from ...expressions.expression import ColumnRef
from ..facts import is_consolidated, is_set, moves_columns
from ..nodes import Accumulate, Consolidate, Distinct, Keys, Node, Reduce, Select

__all__ = ["drop_distinct"]


def drop_distinct(node: Node) -> Node | None:
    """Return what replaces this node; None if the rule does not apply."""
    if isinstance(node, Keys):
        return _without_keys(node)
    if not isinstance(node, Distinct) or not is_set(node.source):
        return None
    # Outside of loops updates that cancel do no harm; rows that go round in a loop must not hold any.
    return node.source if is_consolidated(node.source) or not node.free else Consolidate(node.source)


def _without_keys(node: Keys) -> Node | None:
    """Return the key columns of the operator beneath, if it has one row for each of just these keys."""
    if node.free or not node.keys:
        # In a loop the node stays: without other columns, a reduce's corrections cancel. Without keys it says
        # only whether there is a row, and there is no row without columns.
        return None
    below, names = node.source, list(node.keys)
    while isinstance(below, Select):
        moved = moves_columns(below)
        if moved is None:
            return None
        below, names = below.source, [moved[name] for name in names]
    keys = below.keys if isinstance(below, Accumulate | Reduce | Keys) else below.schema.names
    if not isinstance(below, Accumulate | Reduce | Keys | Distinct) or sorted(names) != sorted(keys):
        return None
    return Select(below, tuple((name, ColumnRef(old)) for name, old in zip(node.keys, names, strict=True)))
