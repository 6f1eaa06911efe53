"""Labels that spread along edges."""

from __future__ import annotations

from differential.algorithms.graphs import as_edges, as_nodes, least_labels
from differential.collections.collection import Collection
from differential.expressions.expression import col
from timely.user_code.short_traces import short

__all__ = ["propagate"]


@short
def propagate(
    edges: Collection,
    labels: Collection,
    *,
    src: str = "src",
    dst: str = "dst",
    node: str = "node",
    label: str = "label",
) -> Collection:
    """The least label that reaches each node along the edges: `node`, `label`.

    A node has its own labels, and gets those of all nodes from which a way leads to it. Nodes that no label
    reaches are not in the result. If every node is labelled by itself and edges go both ways, the labels are
    the connected components. Rust: `algorithms::graphs::propagate`.

    Args:
        edges: two columns of one type, directed. Multiplicities do not matter, nor do edges from a node to
            itself.
        labels: `node` of that type, and `label` of any type whose values have an order; a node may have
            several.

    Cost: as many iterations as a label goes far; in each, the edges of the nodes that got a smaller one.
    """
    along = as_edges("propagate", edges, src, dst)
    as_nodes("propagate", labels, node, along, "labels")
    return least_labels(labels.select(node=col(node), label=col(label)), along, "propagate")
