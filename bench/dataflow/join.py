"""How long does joining two tables take to load, and to follow many updates at once on both sides?"""

from __future__ import annotations

import numpy as np

import differential as dd
import timely
from bench import workloads
from bench.dataflow.job import Job, table_of

__all__ = ["build", "job"]


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """Pairs of rows with equal keys."""
    left = dd.input(flow, "left", "key: int, left_row: int")
    right = dd.input(flow, "right", "key: int, right_row: int")
    left.join(right, on="key").output("pairs")


def job(keys: int, rows: int, epochs: int, updates: int) -> Job:
    """The workload of this size."""
    drawn = workloads.join(keys, rows, epochs, updates)
    numbers = np.arange(drawn.schedule.rows)
    return Job(
        f"join {keys} {rows} {epochs} {updates}",
        build,
        "pairs",
        lambda columns, diffs: workloads.check_join(
            columns["key"], columns["left_row"], columns["right_row"], diffs
        ),
        drawn.schedule,
        changing={
            "left": table_of(key=drawn.left_key, left_row=numbers),
            "right": table_of(key=drawn.right_key, right_row=numbers),
        },
    )
