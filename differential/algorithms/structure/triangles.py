"""Which three nodes are all neighbours of one another?"""

from __future__ import annotations

from differential.algorithms.graphs import as_edges
from differential.collections.collection import Collection
from differential.expressions.expression import col, max_of, min_of

__all__ = ["triangles"]


def triangles(edges: Collection, *, src: str = "src", dst: str = "dst") -> Collection:
    """The triangles of an undirected graph, once each: `a`, `b`, `c` with a < b < c.

    Two joins: ways of two edges from a smaller node to a greater one to a still greater one, and of these
    those whose ends are neighbours. How many triangles a node is in: concat its three columns, and count.

    Args:
        edges: two columns of one type whose values have an order. Directions do not matter, an edge counts
            once however often it is there, and one to oneself not at all.

    Cost: that of the ways of two edges, which may be many more than there are triangles: at each node,
    its smaller neighbours times its greater ones. Nothing of them is kept but by the second join. Numbering
    the nodes by their degree makes them few. A change of an edge: the ways that it is part of.
    """
    pairs = as_edges("triangles", edges, src, dst).filter(col.src != col.dst)
    upwards = pairs.select(a=min_of(col.src, col.dst), b=max_of(col.src, col.dst)).distinct()
    ways = upwards.join(upwards.select(b=col.a, c=col.b), on="b")
    return ways.join(upwards.select(a=col.a, c=col.b), on=("a", "c")).select("a", "b", "c")
