"""Nodes that hang together closely, by peeling a graph."""

from __future__ import annotations

from differential.aggregates import count
from differential.algorithms.graphs import as_edges, neighbours, whole_number
from differential.collections.collection import Collection
from differential.expressions.expression import col
from timely.user_code.short_traces import short

__all__ = ["k_core"]


@short
def k_core(edges: Collection, k: int, *, src: str = "src", dst: str = "dst") -> Collection:
    """The nodes (`node`) of the k-core: the largest set in which each has at least `k` neighbours in the set.

    By peeling: it begins with all nodes, and keeps, again and again, those that have `k` neighbours left. For
    the edges of the core, join edges with these nodes at both ends. Source: S. B. Seidman, *Network structure
    and minimum degree*, 1983.

    Args:
        edges: two columns of one type. Directions do not matter, an edge counts once however often it is
            there, and an edge from a node to itself does not count.
        k: from 1 up.

    Cost: as many iterations as there are layers to peel; in each, the edges of the nodes that go. A change
    costs the layers that it moves.
    """
    whole_number("k_core", "k", k)
    links = neighbours(as_edges("k_core", edges, src, dst))

    def enough(nodes: Collection) -> Collection:
        degrees = links.join(nodes, on={"dst": "node"}).group_by("src").agg(degree=count())
        return degrees.filter(col.degree >= k).select(node=col.src)

    return links.select(node=col.src).distinct().iterate(enough, name=f"{k}-core")
