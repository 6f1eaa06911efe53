"""Distances in edges from the nearest root."""

from __future__ import annotations

from differential.aggregates import min as least
from differential.algorithms.graphs import as_edges, as_nodes, whole_number
from differential.collections.collection import Collection
from differential.expressions.expression import col
from timely.user_code.short_traces import short

__all__ = ["bfs"]


@short
def bfs(
    edges: Collection,
    roots: Collection,
    *,
    src: str = "src",
    dst: str = "dst",
    node: str = "node",
    distance_max: int | None = None,
) -> Collection:
    """The nodes that can be reached from a root, and the least number of edges: `node`, `distance`.

    Breadth-first search along the edges' direction; for an undirected graph insert each edge both ways. Every
    node keeps the least distance proposed to it. Rust: `algorithms::graphs::bfs`.

    Args:
        edges: `src` and `dst` of one type. Edges from a node to itself change nothing, nor does how often an
            edge is there, as long as that is not less than zero times.
        roots: `node`, of that type. They have distance 0, whether they occur in an edge or not.
        distance_max: the greatest distance; nodes further away are not in the result.

    Cost: as many iterations as the farthest node is edges away, each edge looked at once. A change costs what
    it changes in the iterations of a search from scratch: a node whose only way is cut goes at once, its
    distance is not counted up.
    """
    along = as_edges("bfs", edges, src, dst)
    start = as_nodes("bfs", roots, node, along).select("node", distance=0)
    if distance_max is not None:
        whole_number("bfs", "distance_max", distance_max, 0)

    def further(reached: Collection) -> Collection:
        near = reached if distance_max is None else reached.filter(col.distance < distance_max)
        next_ones = near.join(along, on={"node": "src"}).select(node=col.dst, distance=col.distance + 1)
        return next_ones.concat(start).group_by("node").agg(distance=least("distance"))

    return start.iterate(further, name="bfs")
