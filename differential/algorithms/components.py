"""Connected components by label propagation."""

from __future__ import annotations

from differential.aggregates import min as least
from differential.collections.collection import Collection
from differential.expressions.expression import col

__all__ = ["connected_components"]


def connected_components(edges: Collection, nodes: Collection | None = None) -> Collection:
    """The component of every node of an undirected graph: columns `node`, `component`.

    `edges` has the columns `src` and `dst` of one type. Directions do not matter, nor how often an edge is
    there, as long as that is not less than zero times: while an edge is removed that was never inserted,
    labels may swing for ever (`edges.distinct()` guards against it). A node's component is the smallest node
    in it. The nodes are those that occur in an edge, or those of `nodes` (column `node`), which must then
    include all of them.

    In every iteration a node takes the least label among its own identity and its neighbours' labels; a label
    has reached its whole component after as many iterations as its farthest node is edges away.
    """
    both = edges.select(src=col.src, dst=col.dst).concat(edges.select(src=col.dst, dst=col.src))
    if nodes is None:
        present = both.select(node=col.src).distinct()
    else:
        present = nodes.select("node")
    own = present.select(node=col.node, component=col.node)

    def propagate(labels: Collection) -> Collection:
        proposals = labels.join(both, on={"node": "src"}).select(node=col.dst, component=col.component)
        return proposals.concat(own).group_by("node").agg(component=least("component"))

    return own.iterate(propagate, name="components")
