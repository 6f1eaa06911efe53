"""What is known of a collection from its plan alone, whatever its inputs hold."""

from __future__ import annotations

from .nodes import Consolidate, Distinct, Negate, Node, Reduce, ReduceFunction, Select

__all__ = ["is_consolidated"]


def is_consolidated(node: Node) -> bool:
    """Whether no update in it cancels, or repeats, another one of the same time.

    A reduce sends corrections that are sums already; what leaves a loop are all its iterations, most of which
    cancel. To be asked after all other changes to a plan: what it rests on must still be there.
    """
    while isinstance(node, Negate) or (isinstance(node, Select) and _only_names(node)):
        node = node.children[0]
    return isinstance(node, Consolidate | Distinct | Reduce | ReduceFunction)


def _only_names(select: Select) -> bool:
    """Whether every column goes on, once, perhaps under another name: different rows stay different."""
    from ..expressions.expression import ColumnRef

    kept = [expr.name for _, expr in select.columns if isinstance(expr, ColumnRef)]
    return len(kept) == len(select.columns) and sorted(kept) == sorted(select.source.schema.names)
