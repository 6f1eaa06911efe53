"""Strong components: nodes that can reach one another. A loop with two loops in it."""

from __future__ import annotations

from differential.algorithms.graphs import as_edges, ends, least_labels
from differential.collections.collection import Collection
from differential.expressions.expression import col
from timely.user_code.short_traces import short

__all__ = ["edges_inside_components", "strongly_connected_components"]


@short
def strongly_connected_components(edges: Collection, *, src: str = "src", dst: str = "dst") -> Collection:
    """The strong component of every node of a directed graph: `node`, `component`, its least node.

    Two nodes are in one component if there are ways both ways between them; a node that is on no circle is a
    component of its own. Rust: `algorithms::graphs::scc`, which returns the edges inside components, as
    `edges_inside_components` does.

    Args:
        edges: two columns of one type whose values have an order. Edges from a node to itself, and
            multiplicities, do not matter.

    Cost: that of `edges_inside_components`, and one more round of labels along the edges that remain.
    """
    along = as_edges("strongly_connected_components", edges, src, dst)
    own = ends(along).select("node", label=col.node)
    # Along edges inside components, a label that reaches a node reaches all of its component, and no other.
    return least_labels(own, _inside(along), "labels of components").rename(label="component")


@short
def edges_inside_components(edges: Collection, *, src: str = "src", dst: str = "dst") -> Collection:
    """The edges (`src`, `dst`) from whose target their source can be reached, as often as they are there.

    All nodes send their labels along the edges. A label that reaches one node of a component reaches all of
    it. So an edge whose ends have different least labels is in no component, and is dropped. Then the same is
    done against the direction of the edges, and so on, along the remaining edges, until no edge is dropped
    any more.

    Args:
        edges: two columns of one type whose values have an order. An edge from a node to itself is inside.

    Cost: few rounds as a rule, each of two loops that take as many iterations as labels go far. A change that
    cuts a large component costs about as much as that component did.
    """
    return _inside(as_edges("edges_inside_components", edges, src, dst))


def _inside(edges: Collection) -> Collection:
    reverse = _reversed(edges)
    forward_own, backward_own = (
        side.select(node=col.dst, label=col.dst).distinct() for side in (edges, reverse)
    )

    def trim(left: Collection) -> Collection:
        forwards = _trimmed(left, edges, forward_own)
        return _reversed(_trimmed(_reversed(forwards), reverse, backward_own))

    return edges.iterate(trim, name="components")


def _reversed(edges: Collection) -> Collection:
    return edges.select(src=col.dst, dst=col.src)


def _trimmed(left: Collection, edges: Collection, own: Collection) -> Collection:
    """Return those of `edges` whose ends get the same least label along the edges `left`."""
    labels = least_labels(own, left, "labels")
    return (
        edges.join(labels.select(src=col.node, a=col.label), on="src")
        .join(labels.select(dst=col.node, b=col.label), on="dst")
        .filter(col.a == col.b)
        .select("src", "dst")
    )
