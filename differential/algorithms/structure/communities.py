"""Communities: nodes that belong together by the labels of most of their neighbours."""

from __future__ import annotations

from differential.aggregates import count
from differential.aggregates import max as greatest
from differential.aggregates import min as least
from differential.algorithms.graphs import as_edges, ends, neighbours, whole_number
from differential.collections.collection import Collection
from differential.expressions.expression import col
from timely.user_code.short_traces import short

__all__ = ["label_propagation"]


@short
def label_propagation(
    edges: Collection, iterations: int = 5, *, src: str = "src", dst: str = "dst"
) -> Collection:
    """A label for every node after `iterations` iterations, equal within a community: `node`, `label`.

    Every node begins with itself as its label. In every iteration all nodes take, at once, the label that
    most of their neighbours and they themselves have; if several have equally many, the least of these.
    Source: U. N. Raghavan and others, *Near linear time algorithm to detect community structures*, 2007,
    without its random choices. A node counts itself, so that two sides do not exchange their labels for ever.
    For the least label that reaches a node see `propagate`.

    Args:
        edges: two columns of one type whose values have an order. Directions do not matter, and an edge
            counts once however often it is there. An edge from a node to itself makes it a node.
        iterations: the exact number of iterations, from 1 up; a handful is usual.

    Cost: in each iteration the edges of nodes whose label has changed. A change may turn a community over.
    """
    whole_number("label_propagation", "iterations", iterations)
    pairs = as_edges("label_propagation", edges, src, dst)
    nodes = ends(pairs)
    links = neighbours(pairs).concat(nodes.select(src=col.node, dst=col.node))

    def vote(labels: Collection) -> Collection:
        proposals = labels.join(links, on={"node": "src"}).select(node=col.dst, label=col.label)
        votes = proposals.group_by("node", "label").agg(votes=count())
        most = votes.group_by("node").agg(votes=greatest("votes"))
        return votes.join(most, on=("node", "votes")).group_by("node").agg(label=least("label"))

    return nodes.select("node", label=col.node).iterate(vote, times=iterations, name="label_propagation")
