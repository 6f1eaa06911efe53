"""How long do the largest values of each key take to load, and to follow many updates at once?"""

from __future__ import annotations

import differential as dd
import timely
from bench import workloads
from bench.dataflow.job import Job, table_of
from differential import col

__all__ = ["build", "job"]


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """The three largest values of each key."""
    rows = dd.input(flow, "rows", "key: int, value: int")
    rows.group_by("key").top_k(workloads.TOP_ROWS, by=col.value.desc()).output("largest")


def job(keys: int, rows: int, epochs: int, updates: int) -> Job:
    """The workload of this size."""
    drawn = workloads.sum_(keys, rows, epochs, updates)
    return Job(
        f"top {keys} {rows} {epochs} {updates}",
        build,
        "largest",
        lambda columns, diffs: workloads.check_top(columns["key"], columns["value"], diffs),
        drawn.schedule,
        changing={"rows": table_of(key=drawn.key, value=drawn.value)},
    )
