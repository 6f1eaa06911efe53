"""Which nodes hang together closely? Peeling a graph."""

from __future__ import annotations

from differential.aggregates import count
from differential.algorithms.graphs import as_edges, neighbours, whole_number
from differential.collections.collection import Collection
from differential.expressions.expression import col
from timely.user_code.short_traces import short

__all__ = ["k_core"]


@short
def k_core(edges: Collection, k: int, *, src: str = "src", dst: str = "dst") -> Collection:
    """The nodes (`node`) of the k-core: the largest set in which each has `k` neighbours in the set, or more.

    Peeling: all nodes to begin with; then, again and again, those that have `k` neighbours left. The edges of
    the core are those that a join with the nodes leaves at both ends. Source: S. B. Seidman, *Network
    structure and minimum degree*, 1983.

    Args:
        edges: two columns of one type. Directions do not matter, an edge counts once however often it is
            there, and one to oneself not at all.
        k: from 1 up.

    Cost: as many iterations as there are layers to peel; in each, the edges of the nodes that go. A change:
    the layers that it moves.
    """
    whole_number("k_core", "k", k)
    links = neighbours(as_edges("k_core", edges, src, dst))

    def enough(nodes: Collection) -> Collection:
        degrees = links.join(nodes, on={"dst": "node"}).group_by("src").agg(degree=count())
        return degrees.filter(col.degree >= k).select(node=col.src)

    return links.select(node=col.src).distinct().iterate(enough, name=f"{k}-core")
