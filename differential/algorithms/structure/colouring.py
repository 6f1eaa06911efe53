"""Which colours for the nodes, so that no two neighbours have the same?"""

from __future__ import annotations

from differential.aggregates import min as least
from differential.algorithms.graphs import as_edges, ends
from differential.collections.collection import Collection
from differential.expressions.expression import col, max_of, min_of
from timely.user_code.short_traces import short

__all__ = ["graph_colouring"]


@short
def graph_colouring(edges: Collection, *, src: str = "src", dst: str = "dst") -> Collection:
    """A colour 0, 1, … for every node, `node` and `colour`: the least that no smaller neighbour has.

    What a greedy colouring in the order of the nodes gives: no two neighbours have the same colour, there are
    at most as many colours as the greatest degree and one, and which ones is a function of the graph alone.
    Rust: `algorithms::graphs::sequential::color`, whose colours begin with 1.

    Args:
        edges: two columns of one type whose values have an order. Directions do not matter, nor how often an
            edge is there; one to oneself makes its end a node, and is no neighbourhood.

    Cost: all nodes begin with colour 0, and correct themselves from the least up; at most as many iterations
    as the longest way on which nodes grow. A change: the colours that it changes on the way.
    """
    pairs = as_edges("graph_colouring", edges, src, dst)
    upwards = pairs.filter(col.src != col.dst).select(
        smaller=min_of(col.src, col.dst), node=max_of(col.src, col.dst)
    )
    first = ends(pairs).select("node", colour=0)

    def recolour(colours: Collection) -> Collection:
        used = colours.select(smaller=col.node, colour=col.colour).join(upwards, on="smaller")
        used = used.select("node", "colour").distinct()
        # The least colour that is not used is 0, or comes right after one that is. Taking away those that are
        # used leaves none of them more than zero times, and min sees only what is there more often than that.
        free = first.concat(used.select("node", colour=col.colour + 1), used.negate())
        return free.group_by("node").agg(colour=least("colour"))

    return first.iterate(recolour, name="colouring")
