"""Colours for the nodes, such that no two neighbours have the same."""

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

    This is the greedy colouring in the order of the nodes: no two neighbours have the same colour, there are
    at most one more colours than the greatest degree, and the colours are a function of the graph alone.
    Rust: `algorithms::graphs::sequential::color`, whose colours begin with 1.

    Args:
        edges: two columns of one type whose values have an order. Directions and multiplicities do not
            matter. An edge from a node to itself makes it a node, but not its own neighbour.

    Cost: all nodes begin with colour 0, and are corrected from the least up; at most as many iterations as
    the longest way on which nodes grow. A change costs the colours that it changes on that way.
    """
    pairs = as_edges("graph_colouring", edges, src, dst)
    upwards = pairs.filter(col.src != col.dst).select(
        smaller=min_of(col.src, col.dst), node=max_of(col.src, col.dst)
    )
    first = ends(pairs).select("node", colour=0)

    def recolour(colours: Collection) -> Collection:
        used = colours.select(smaller=col.node, colour=col.colour).join(upwards, on="smaller")
        used = used.select("node", "colour").distinct()
        # The least unused colour is 0, or comes right after a used one. The negated used colours take away
        # each candidate that is used; min counts only candidates with a multiplicity above zero.
        free = first.concat(used.select("node", colour=col.colour + 1), used.negate())
        return free.group_by("node").agg(colour=least("colour"))

    return first.iterate(recolour, name="colouring")
