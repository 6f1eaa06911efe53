"""How long does counting rows by key take to load, and to follow many updates at once?"""

from __future__ import annotations

import differential as dd
import timely
from bench import workloads
from bench.dataflow.job import Job, table_of

__all__ = ["build", "job"]


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Rows by key."""
    dd.input(flow, "rows", "key: int").group_by("key").agg(n=dd.count()).output("counts")


def job(keys: int, rows: int, epochs: int, updates: int) -> Job:
    """The workload of this size."""
    drawn = workloads.count(keys, rows, epochs, updates)
    return Job(
        f"count plain {keys} {rows} {epochs} {updates}",
        build,
        "counts",
        lambda columns, diffs: workloads.check_count(columns["key"], columns["n"], diffs),
        drawn.schedule,
        changing={"rows": table_of(key=drawn.key)},
    )
