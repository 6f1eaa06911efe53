"""How long do connected components take to load, and to follow a change of one edge?

The workload "wcc plain N E K" of `bench/workloads.py`, through the public interface: the whole runtime with
progress tracking, one worker embedded in this process (or, with --workers, that many processes). One JSON
line on standard output with the keys of the peers' programs; times are from the first row handed over to the
result being known.

    python -m bench.dataflow.wcc [NODES EDGES CHANGES] [--workers N]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import differential as dd
import timely
from bench.workloads import Check, GraphWorkload, check_wcc, expected, graph
from differential.algorithms import connected_components


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Labels of all nodes; the nodes are an input of their own, as in the peers' programs."""
    edges = dd.input(flow, "edges", "src: int, dst: int")
    nodes = dd.input(flow, "nodes", "node: int")
    connected_components(edges, nodes).output("components")


def measured(workload: GraphWorkload, workers: int) -> dict[str, object]:
    """Run the workload once; the figures and the checks."""
    with timely.connect(workers=workers, embedded=workers == 1) as cluster:
        warm_up(cluster)
        flow = cluster.install(build)
        schedule = workload.schedule
        edges = pa.table({"src": workload.src, "dst": workload.dst})
        begin = time.perf_counter()
        flow.input("nodes").insert(pa.table({"node": np.arange(workload.nodes)}))
        flow.input("edges").insert(edges.slice(0, schedule.loaded))
        flow.wait(flow.seal())
        load = time.perf_counter() - begin
        check = loaded = checked(flow)
        changes: list[float] = []
        for change in range(schedule.changes):
            removed, inserted = edges.slice(change, 1), edges.slice(schedule.loaded + change, 1)
            begin = time.perf_counter()
            flow.input("edges").remove(removed)
            flow.input("edges").insert(inserted)
            flow.wait(flow.seal())
            changes.append((time.perf_counter() - begin) * 1e3)
            check = check + checked(flow)
        name = f"wcc plain {workload.nodes} {schedule.loaded} {schedule.changes}"
        agreed = expected(name)
        assert agreed is None or (agreed.load, agreed.changes) == (loaded, check), (
            f"{name}: {loaded} {check}, not {agreed}"
        )
        return {
            "system": "naiad",
            "workload": name,
            "workers": workers,
            "load_seconds": load,
            "change_ms_median": float(np.median(changes)),
            "change_ms_p99": float(np.percentile(changes, 99)),
            "change_ms_all": changes,
            "peak_mib": peak_mib(),
            "check_load": loaded.to_json(),
            "check_changes": check.to_json(),
        }


def warm_up(cluster: timely.Cluster) -> None:
    """A tiny run of the same dataflow, so that no kernel is read from the cache while the clock runs."""
    flow = cluster.install(build)
    generator = np.random.default_rng(0)
    ends = generator.integers(0, 300, (2, 600))
    flow.input("nodes").insert(pa.table({"node": np.arange(300)}))
    flow.input("edges").insert(pa.table({"src": ends[0], "dst": ends[1]}))
    flow.wait(flow.seal())
    for change in range(3):
        edge = pa.table({"src": [change], "dst": [change + 1]})
        flow.input("edges").insert(edge)
        flow.wait(flow.seal())
        flow.input("edges").remove(edge)
        flow.wait(flow.seal())


def checked(flow: timely.Flow) -> Check:
    """The check sums of what has changed since the last call."""
    changes = flow.output("components").changes()
    flow.output("components").forget()
    columns = (changes.column(name).to_numpy() for name in ("node", "component", "diff"))
    return check_wcc(*columns)


def peak_mib() -> float:
    """The largest resident size that this process has had, in MiB."""
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1024


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="connected components of a random graph, kept current")
    parser.add_argument(
        "sizes", type=int, nargs="*", default=[100_000, 200_000, 100], help="NODES EDGES CHANGES"
    )
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    nodes, edges, changes = options.sizes
    print(json.dumps(measured(graph(nodes, edges, changes), options.workers)))


if __name__ == "__main__":
    main()
