"""Distances between two given nodes, searched from both of them until the searches meet."""

from __future__ import annotations

from differential.aggregates import min as least
from differential.algorithms.graphs import as_edges, as_nodes
from differential.collections.collection import Collection
from differential.expressions.expression import col
from timely.user_code.short_traces import short

__all__ = ["bidirectional_shortest_paths"]

_NAME = "bidirectional_shortest_paths"
_FORWARDS, _BACKWARDS = 0, 1


@short
def bidirectional_shortest_paths(
    edges: Collection,
    pairs: Collection,
    *,
    src: str = "src",
    dst: str = "dst",
    source: str = "source",
    target: str = "target",
) -> Collection:
    """The least number of edges from source to target of each pair: `source`, `target`, `distance`.

    Pairs without a way are not in the result. In every iteration each search, forwards from a source or
    backwards from a target, goes one edge further, unless all of its pairs have met. The first meeting of a
    pair is on a shortest way. Rust: `algorithms::graphs::bijkstra`.

    Args:
        edges: two columns of one type, directed. Multiplicities do not matter, nor do edges from a node to
            itself.
        pairs: `source` and `target`, of that type; once each, however often they are there. From a node to
            itself the distance is 0, whether it occurs in an edge or not.

    Cost: half as many iterations as the longest of the distances; in each, the edges at the rims of the
    searches; there is one search for each source and each target. If a pair has no way: everything that
    either side can reach.
    """
    along = as_edges(_NAME, edges, src, dst)
    as_nodes(_NAME, pairs, source, along, "pairs")
    as_nodes(_NAME, pairs, target, along, "pairs")
    goals = pairs.select(source=col(source), target=col(target)).distinct()
    start = goals.select(side=_FORWARDS, root=col.source, node=col.source, distance=0).concat(
        goals.select(side=_BACKWARDS, root=col.target, node=col.target, distance=0)
    )
    steps = along.select(side=_FORWARDS, node=col.src, next=col.dst).concat(
        along.select(side=_BACKWARDS, node=col.dst, next=col.src)
    )

    def further(reached: Collection) -> Collection:
        met = _met(reached, goals).select("source", "target")
        # All goals, each once, minus those that have met: the ones that have not met.
        apart = goals.concat(met.negate())
        searching = (
            apart.select(side=_FORWARDS, root=col.source)
            .concat(apart.select(side=_BACKWARDS, root=col.target))
            .distinct()
        )
        rims = reached.join(searching, on=("side", "root")).join(steps, on=("side", "node"))
        next_ones = rims.select("side", "root", node=col.next, distance=col.distance + 1)
        return next_ones.concat(reached).group_by("side", "root", "node").agg(distance=least("distance"))

    return _met(start.distinct().iterate(further, name="from both sides"), goals)


def _met(reached: Collection, goals: Collection) -> Collection:
    """Return the goals whose two searches have a node in common, and the least sum of distances there."""
    forwards = reached.filter(col.side == _FORWARDS).select(source=col.root, node=col.node, a=col.distance)
    backwards = reached.filter(col.side == _BACKWARDS).select(target=col.root, node=col.node, b=col.distance)
    ways = goals.join(forwards, on="source").join(backwards, on=("target", "node"))
    lengths = ways.select("source", "target", distance=col.a + col.b)
    return lengths.group_by("source", "target").agg(distance=least("distance"))
