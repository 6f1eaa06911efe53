"""How long do strongly connected components take to load, and to follow a change of one edge?

"scc plain": all labels at once, a loop with two loops in it, beside `strongly_connected` of Rust.
"""

from __future__ import annotations

import differential as dd
import timely
from bench.dataflow.job import Job, table_of
from bench.workloads import check_scc, graph
from differential.algorithms import edges_inside_components

__all__ = ["build", "job"]


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Edges inside components."""
    edges_inside_components(dd.input(flow, "edges", "src: int, dst: int")).output("inside")


def job(nodes: int, edges: int, changes: int) -> Job:
    """The workload of this size."""
    drawn = graph(nodes, edges, changes)
    return Job(
        f"scc plain {nodes} {edges} {changes}",
        build,
        "inside",
        lambda columns, diffs: check_scc(columns["src"], columns["dst"], diffs),
        drawn.schedule,
        changing={"edges": table_of(src=drawn.src, dst=drawn.dst)},
    )
