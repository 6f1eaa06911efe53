"""Reachability between all pairs of nodes."""

from __future__ import annotations

from differential.algorithms.graphs import as_edges
from differential.collections.collection import Collection
from differential.expressions.expression import col
from timely.user_code.short_traces import short

__all__ = ["transitive_closure"]


@short
def transitive_closure(edges: Collection, *, src: str = "src", dst: str = "dst") -> Collection:
    """The pairs `src`, `dst` with a way of one edge or more from the first to the second, once each.

    In every iteration the pairs grow by one edge. In Datalog:

        path(x, y) :- edge(x, y).
        path(x, z) :- path(x, y), edge(y, z).

    Args:
        edges: two columns of one type, directed. Multiplicities do not matter. An edge from a node to itself
            is a pair like any other; a node on a circle reaches itself.

    Cost: as many iterations as the longest shortest way has edges; in each, the new pairs times the edges
    that leave their ends. The result may be as large as the square of the nodes: if only some sources matter,
    use `bfs` with these as roots, or start a loop of your own from them.
    """
    along = as_edges("transitive_closure", edges, src, dst)

    def longer(paths: Collection) -> Collection:
        steps = along.select(dst=col.src, end=col.dst)
        return paths.join(steps, on="dst").select("src", dst=col.end).concat(along).distinct()

    return along.iterate(longer, name="transitive closure")
