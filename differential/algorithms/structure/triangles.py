"""Triangles: three nodes that are all neighbours of one another."""

from __future__ import annotations

from differential.algorithms.graphs import as_edges
from differential.collections.collection import Collection
from differential.expressions.expression import col, max_of, min_of
from timely.user_code.short_traces import short

__all__ = ["triangles"]


@short
def triangles(edges: Collection, *, src: str = "src", dst: str = "dst") -> Collection:
    """The triangles of an undirected graph, once each: `a`, `b`, `c` with a < b < c.

    These are three joins that close a circle; the plan merges them into one, and keeps nothing but the edges,
    by either end. To count the triangles of each node, concat the three columns, and count.

    Args:
        edges: two columns of one type whose values have an order. Directions do not matter, an edge counts
            once however often it is there, and an edge from a node to itself does not count.

    Cost: for each edge the neighbours of the end that has fewer. A change of an edge costs the same, at both
    ends and between them.
    """
    pairs = as_edges("triangles", edges, src, dst).filter(col.src != col.dst)
    upwards = pairs.select(a=min_of(col.src, col.dst), b=max_of(col.src, col.dst)).distinct()
    ways = upwards.join(upwards.select(b=col.a, c=col.b), on="b")
    return ways.join(upwards.select(a=col.a, c=col.b), on=("a", "c")).select("a", "b", "c")
