"""A distinct of what is a set already goes.

Not of a reduce by a function, which may give a row twice, and not of an input, whose rows may be there twice
or be owed. What takes its place is consolidated, if the distinct was what made it so inside a loop.
"""

from __future__ import annotations

from ..facts import is_consolidated, is_set
from ..nodes import Consolidate, Distinct, Node

__all__ = ["drop_distinct"]


def drop_distinct(node: Node) -> Node | None:
    """What does instead of this node; None if the rule does not apply."""
    if not isinstance(node, Distinct) or not is_set(node.source):
        return None
    # Outside of loops nobody minds updates that cancel; what goes round must not hold any.
    return node.source if is_consolidated(node.source) or not node.free else Consolidate(node.source)
