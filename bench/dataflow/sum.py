"""How long do totals by key take to load, and to follow many updates at once?"""

from __future__ import annotations

import differential as dd
import timely
from bench import workloads
from bench.dataflow.job import Job, table_of

__all__ = ["build", "job"]


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Totals of a value by key."""
    rows = dd.input(flow, "rows", "key: int, value: int")
    rows.group_by("key").agg(total=dd.sum("value")).output("totals")


def job(keys: int, rows: int, epochs: int, updates: int) -> Job:
    """The workload of this size."""
    drawn = workloads.sum_(keys, rows, epochs, updates)
    return Job(
        f"sum {keys} {rows} {epochs} {updates}",
        build,
        "totals",
        lambda columns, diffs: workloads.check_sum(columns["key"], columns["total"], diffs),
        drawn.schedule,
        changing={"rows": table_of(key=drawn.key, value=drawn.value)},
    )
