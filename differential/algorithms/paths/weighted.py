"""Lengths of the shortest ways from the roots, along edges that have lengths."""

from __future__ import annotations

from differential.aggregates import min as least
from differential.algorithms.graphs import as_edges, as_nodes
from differential.collections.collection import Collection
from differential.expressions.expression import col, lit
from timely.user_code.short_traces import short

__all__ = ["weighted_shortest_paths"]


@short
def weighted_shortest_paths(
    edges: Collection,
    roots: Collection,
    *,
    src: str = "src",
    dst: str = "dst",
    weight: str = "weight",
    node: str = "node",
) -> Collection:
    """The nodes that can be reached from some root, and the length of the shortest way: `node`, `distance`.

    As Bellman and Ford do it: in every iteration each node takes the least sum of a neighbour's distance and
    the length of the edge between. Distances are of the weights' type.

    Args:
        edges: `src` and `dst` of one type, `weight` int or float. Directed; of parallel edges the lightest
            counts; edges from a node to itself change nothing. Weights may be negative, but a circle must not
            have a negative sum: there the loop has no end, and stops with an error that names it.
        roots: `node`, of the type of the ends. They have distance 0.

    Cost: at most as many iterations as a shortest way has edges; an edge is looked at whenever its source has
    come nearer. A change costs what it changes in the iterations of a search from scratch.
    """
    along = as_edges("weighted_shortest_paths", edges, src, dst, weight)
    zero = lit(0) if along.schema["weight"].type.kind == "int" else lit(0.0)
    start = as_nodes("weighted_shortest_paths", roots, node, along).select("node", distance=zero)

    def further(reached: Collection) -> Collection:
        next_ones = reached.join(along, on={"node": "src"}).select(
            node=col.dst, distance=col.distance + col.weight
        )
        return next_ones.concat(start).group_by("node").agg(distance=least("distance"))

    return start.iterate(further, name="weighted shortest paths")
