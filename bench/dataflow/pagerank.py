"""How long do 20 iterations of pagerank take to load, and to follow a change of one edge?

"pagerank": in whole numbers, beside Rust's example of it. Nearly all ranks change with each edge, to the last
digit: here a change is as dear as all of it.
"""

from __future__ import annotations

import differential as dd
import timely
from bench.dataflow.job import Job, table_of
from bench.workloads import DAMPING, ITERATIONS, UNIT, check_pagerank, graph
from differential.algorithms import pagerank

__all__ = ["build", "job"]


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Ranks of all nodes."""
    edges = dd.input(flow, "edges", "src: int, dst: int")
    pagerank(edges, ITERATIONS, unit=UNIT, damping=DAMPING).output("ranks")


def job(nodes: int, edges: int, changes: int) -> Job:
    """The workload of this size."""
    drawn = graph(nodes, edges, changes)
    return Job(
        f"pagerank {nodes} {edges} {changes}",
        build,
        "ranks",
        lambda columns, diffs: check_pagerank(columns["node"], columns["rank"], diffs),
        drawn.schedule,
        changing={"edges": table_of(src=drawn.src, dst=drawn.dst)},
    )
