"""How long do strongly connected components take to load, and to follow a change of one edge?

"scc plain": all labels at once, a loop with two loops in it, beside `strongly_connected` of Rust.
"scc written": the same answer by a program that uses no algorithm of this library. It finds the least node
from which each node is reached, keeps the edges whose ends agree by two joins, turns the edges round, and
does the same again. It calls neither `distinct` nor `consolidate`.
"""

from __future__ import annotations

import differential as dd
import timely
from bench.dataflow.job import Job, table_of
from bench.workloads import check_scc, graph
from differential.algorithms import edges_inside_components
from timely.building.builders import Builder

__all__ = ["build", "build_written", "job", "job_written"]


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Edges inside components."""
    edges_inside_components(dd.input(flow, "edges", "src: int, dst: int")).output("inside")


@timely.builder
def build_written(flow: timely.Dataflow) -> None:
    """The same edges."""
    edges = dd.input(flow, "edges", "src: int, dst: int")
    round_about = _turned(edges)

    def trim(inside: dd.Collection) -> dd.Collection:
        forwards = _agreeing(edges, inside)
        return _turned(_agreeing(round_about, _turned(forwards)))

    edges.iterate(trim).output("inside")


def _turned(edges: dd.Collection) -> dd.Collection:
    return edges.select(src=dd.col.dst, dst=dd.col.src)


def _agreeing(edges: dd.Collection, along: dd.Collection) -> dd.Collection:
    """Return the edges whose two ends are reached from the same least node."""
    own = edges.select(node=dd.col.dst, label=dd.col.dst)

    def spread(labels: dd.Collection) -> dd.Collection:
        proposals = labels.join(along, on={"node": "src"}).select(node=dd.col.dst, label=dd.col.label)
        return proposals.concat(own).group_by("node").agg(label=dd.min("label"))

    labels = own.iterate(spread)
    return (
        edges.join(labels.select(src=dd.col.node, first=dd.col.label), on="src")
        .join(labels.select(dst=dd.col.node, second=dd.col.label), on="dst")
        .filter(dd.col.first == dd.col.second)
        .select("src", "dst")
    )


def job(nodes: int, edges: int, changes: int) -> Job:
    """The workload of this size."""
    return _job("plain", build, nodes, edges, changes)


def job_written(nodes: int, edges: int, changes: int) -> Job:
    """The workload of this size, by the program that a user writes."""
    return _job("written", build_written, nodes, edges, changes)


def _job(form: str, build: Builder, nodes: int, edges: int, changes: int) -> Job:
    drawn = graph(nodes, edges, changes)
    return Job(
        f"scc {form} {nodes} {edges} {changes}",
        build,
        "inside",
        lambda columns, diffs: check_scc(columns["src"], columns["dst"], diffs),
        drawn.schedule,
        changing={"edges": table_of(src=drawn.src, dst=drawn.dst)},
    )
