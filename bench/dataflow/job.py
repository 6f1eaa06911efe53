"""What does a workload need to be measured: a dataflow, rows, and a check of its answer?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from bench.workloads import Check, Int64s, Schedule
from timely.building.builders import Builder

__all__ = ["Checking", "Job", "table_of"]

Checking: TypeAlias = Callable[[Mapping[str, Int64s], Int64s], Check]
"""The check of changes of an output: its columns by name, and their diffs."""


def table_of(**columns: Int64s) -> pa.Table:
    """Numbers below 2³¹, in as many bits as the peers' programs hold them in."""
    return pa.table({name: column.astype(np.int32, casting="same_value") for name, column in columns.items()})


@dataclass(frozen=True)
class Job:
    """One run of one workload.

    name       as `bench/workloads.py` has it: "wcc plain 100000 200000 100"
    build      at the top of a module, so that worker processes find it
    output     the name of the output
    changing   for each input whose rows come and go its rows, all by the same schedule
    fixed      for each other input its rows, which are loaded and stay
    multiples  for an input with several rows for each row of the schedule: how many
    """

    name: str
    build: Builder
    output: str
    check: Checking
    schedule: Schedule
    changing: Mapping[str, pa.Table]
    fixed: Mapping[str, pa.Table] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)

    def schedule_of(self, name: str) -> Schedule:
        """When which rows of a changing input are there."""
        return self.schedule.times(self.multiples.get(name, 1))
