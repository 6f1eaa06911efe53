"""Which nodes can be reached from which?"""

from __future__ import annotations

from differential.algorithms.graphs import as_edges
from differential.collections.collection import Collection
from differential.expressions.expression import col
from timely.user_code.short_traces import short

__all__ = ["transitive_closure"]


@short
def transitive_closure(edges: Collection, *, src: str = "src", dst: str = "dst") -> Collection:
    """The pairs `src`, `dst` with a way of one edge or more from the first to the second, once each.

    In every iteration, pairs are made longer by an edge. In Datalog:

        path(x, y) :- edge(x, y).
        path(x, z) :- path(x, y), edge(y, z).

    Args:
        edges: two columns of one type, directed. How often an edge is there does not matter, and one to
            oneself is a pair as others are; a node on a circle reaches itself.

    Cost: as many iterations as the longest shortest way has edges; in every one, the new pairs times the
    edges that leave their ends. The result may be as large as the square of the nodes: where only some
    sources matter, give `bfs` these as roots, or start a loop of one's own from them.
    """
    along = as_edges("transitive_closure", edges, src, dst)

    def longer(paths: Collection) -> Collection:
        steps = along.select(dst=col.src, end=col.dst)
        return paths.join(steps, on="dst").select("src", dst=col.end).concat(along).distinct()

    return along.iterate(longer, name="transitive closure")
