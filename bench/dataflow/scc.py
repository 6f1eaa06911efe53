"""How long do strongly connected components take to load, and to follow a change of one edge?

"scc plain": all labels at once, a loop with two loops in it, beside `strongly_connected` of Rust.
"""

from __future__ import annotations

import pyarrow as pa

import differential as dd
import timely
from bench.dataflow.job import Job
from bench.workloads import check_scc, graph
from differential import Collection, col

__all__ = ["build", "inside_components", "job"]


def inside_components(edges: Collection) -> Collection:
    """The edges (`src`, `dst`) from whose target their source can be reached again.

    All nodes send their labels along the edges. What reaches one node of a component reaches all of it; so
    edges whose ends are left with different least labels are in none, and are dropped. Then the same against
    the direction of the edges, and so on, along what is left, until nothing is dropped any more.
    """
    reverse = _reversed(edges)
    forward_own, backward_own = (
        side.select(node=col.dst, label=col.dst).distinct() for side in (edges, reverse)
    )

    def trim(left: Collection) -> Collection:
        forwards = _trimmed(left, edges, forward_own)
        return _reversed(_trimmed(_reversed(forwards), reverse, backward_own))

    return edges.iterate(trim, name="components")


def _reversed(edges: Collection) -> Collection:
    return edges.select(src=col.dst, dst=col.src)


def _trimmed(left: Collection, edges: Collection, own: Collection) -> Collection:
    """Those of `edges` whose ends get the same least label along those that are `left`."""

    def propagate(labels: Collection) -> Collection:
        proposals = labels.join(left, on={"node": "src"}).select(node=col.dst, label=col.label)
        return proposals.concat(own).group_by("node").agg(label=dd.min("label"))

    # What leaves a loop are the changes of all its iterations; the two joins want their sum, once.
    labels = own.iterate(propagate, name="labels").consolidate()
    return (
        edges.join(labels.select(src=col.node, a=col.label), on="src")
        .join(labels.select(dst=col.node, b=col.label), on="dst")
        .filter(col.a == col.b)
        .select("src", "dst")
    )


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Edges inside components."""
    inside_components(dd.input(flow, "edges", "src: int, dst: int")).output("inside")


def job(nodes: int, edges: int, changes: int) -> Job:
    """The workload of this size."""
    drawn = graph(nodes, edges, changes)
    return Job(
        f"scc plain {nodes} {edges} {changes}",
        build,
        "inside",
        lambda columns, diffs: check_scc(columns["src"], columns["dst"], diffs),
        drawn.schedule,
        changing={"edges": pa.table({"src": drawn.src, "dst": drawn.dst})},
    )
