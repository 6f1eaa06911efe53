"""How long do distances from a root take to load, and to follow a change of one edge?"""

from __future__ import annotations

import pyarrow as pa

import differential as dd
import timely
from bench.dataflow.job import Job, table_of
from bench.workloads import check_bfs, graph
from differential import Collection, col

__all__ = ["build", "distances", "job"]


def distances(edges: Collection, roots: Collection) -> Collection:
    """How many edges (`src`, `dst`) each node is away from the nearest root (`node`): `node`, `distance`.

    In every iteration a node takes the least of what its predecessors offer, their distance and one more; a
    distance d is final after iteration d.
    """
    own = roots.select("node", distance=0)

    def propagate(reached: Collection) -> Collection:
        further = reached.join(edges, on={"node": "src"}).select(node=col.dst, distance=col.distance + 1)
        return further.concat(own).group_by("node").agg(distance=dd.min("distance"))

    return own.iterate(propagate, name="distances")


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Distances of the nodes that can be reached."""
    edges = dd.input(flow, "edges", "src: int, dst: int")
    roots = dd.input(flow, "roots", "node: int")
    distances(edges, roots).output("distances")


def job(nodes: int, edges: int, changes: int) -> Job:
    """The workload of this size."""
    drawn = graph(nodes, edges, changes)
    return Job(
        f"bfs {nodes} {edges} {changes}",
        build,
        "distances",
        lambda columns, diffs: check_bfs(columns["node"], columns["distance"], diffs),
        drawn.schedule,
        changing={"edges": table_of(src=drawn.src, dst=drawn.dst)},
        fixed={"roots": pa.table({"node": [0]})},
    )
