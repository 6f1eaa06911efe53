"""How long do connected components take to load, and to follow a change of one edge?

"wcc plain": all labels at once, beside the same loop in the peers' programs. "wcc prioritised": small labels
first, beside `propagate_at` of Rust.
"""

from __future__ import annotations

import numpy as np

import differential as dd
import timely
from bench.dataflow.job import Job, table_of
from bench.workloads import check_wcc, graph
from differential.algorithms import connected_components
from timely.building.builders import Builder

__all__ = ["build", "build_prioritised", "job", "job_prioritised"]


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Labels of all nodes; the nodes are an input of their own, as in the peers' programs."""
    edges = dd.input(flow, "edges", "src: int, dst: int")
    nodes = dd.input(flow, "nodes", "node: int")
    connected_components(edges, nodes).output("components")


@timely.builder
def build_prioritised(flow: timely.Dataflow) -> None:
    """The same, small labels first."""
    edges = dd.input(flow, "edges", "src: int, dst: int")
    nodes = dd.input(flow, "nodes", "node: int")
    connected_components(edges, nodes, prioritised=True).output("components")


def job(nodes: int, edges: int, changes: int) -> Job:
    """The workload of this size."""
    return _job("plain", build, nodes, edges, changes)


def job_prioritised(nodes: int, edges: int, changes: int) -> Job:
    """The same, small labels first."""
    return _job("prioritised", build_prioritised, nodes, edges, changes)


def _job(how: str, builder: Builder, nodes: int, edges: int, changes: int) -> Job:
    drawn = graph(nodes, edges, changes)
    return Job(
        f"wcc {how} {nodes} {edges} {changes}",
        builder,
        "components",
        lambda columns, diffs: check_wcc(columns["node"], columns["component"], diffs),
        drawn.schedule,
        changing={"edges": table_of(src=drawn.src, dst=drawn.dst)},
        fixed={"nodes": table_of(node=np.arange(nodes))},
    )
