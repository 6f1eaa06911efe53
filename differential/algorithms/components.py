"""Connected components by label propagation."""

from __future__ import annotations

from differential.algorithms.graphs import as_edges, as_nodes, both_ways, least_labels
from differential.collections.collection import Collection
from differential.expressions.expression import col

__all__ = ["connected_components"]


def connected_components(
    edges: Collection,
    nodes: Collection | None = None,
    *,
    src: str = "src",
    dst: str = "dst",
    node: str = "node",
) -> Collection:
    """The component of every node of an undirected graph: columns `node`, `component`.

    `edges` has two columns of one type. Directions do not matter, nor how often an edge is
    there, as long as that is not less than zero times: while an edge is removed that was never inserted,
    labels may swing for ever (`edges.distinct()` guards against it). A node's component is the smallest node
    in it. The nodes are those that occur in an edge, or those of `nodes` (column `node`), which must then
    include all of them.

    In every iteration a node takes the least label among its own identity and its neighbours' labels; a label
    has reached its whole component after as many iterations as its farthest node is edges away.
    """
    both = both_ways(as_edges("connected_components", edges, src, dst))
    if nodes is None:
        present = both.select(node=col.src).distinct()
    else:
        present = as_nodes("connected_components", nodes, node, both, "nodes")
    labels = least_labels(present.select(node=col.node, label=col.node), both, "components")
    return labels.rename(label="component")
