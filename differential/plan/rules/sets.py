"""A distinct of what is a set already goes, and so does the question which keys a group by these has.

Not of a reduce by a function, which may give a row twice, and not of an input, whose rows may be there twice
or be owed. What takes its place is consolidated, if the distinct was what made it so inside a loop.
"""

from __future__ import annotations

from ...expressions.expression import ColumnRef
from ..facts import is_consolidated, is_set, moves_columns
from ..nodes import Accumulate, Consolidate, Distinct, Keys, Node, Reduce, Select

__all__ = ["drop_distinct"]


def drop_distinct(node: Node) -> Node | None:
    """What does instead of this node; None if the rule does not apply."""
    if isinstance(node, Keys):
        return _without_keys(node)
    if not isinstance(node, Distinct) or not is_set(node.source):
        return None
    # Outside of loops nobody minds updates that cancel; what goes round must not hold any.
    return node.source if is_consolidated(node.source) or not node.free else Consolidate(node.source)


def _without_keys(node: Keys) -> Node | None:
    """The key columns of what has one row for each of just these keys."""
    if node.free or not node.keys:
        # In loops it is kept: without other columns, a reduce's corrections cancel. Without keys it says only
        # whether there is a row, and there is no row without columns.
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
