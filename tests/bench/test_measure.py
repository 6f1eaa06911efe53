"""measure: does every workload that is compared give the right answer, on one worker and on two?

  small_*      the smallest of each against recomputation: embedded, in two processes, epochs in flight
  verdict_*    a wrong answer is noticed
  changes_*    a few rows are handed over as tuples, more as a table
  memory_*     what is counted as memory

Nothing here is about time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from bench import memory
from bench.cases import SMALL, Case
from bench.dataflow import measure
from timely import Cluster, Flow


@pytest.fixture(scope="module")
def two_processes() -> Iterator[Cluster]:
    with measure.connected(2) as cluster:
        yield cluster


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_small_workload_is_right_on_one_worker(case: Case) -> None:
    with measure.connected(1) as cluster:
        check(cluster, case)


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_small_workload_is_right_on_two_processes(two_processes: Cluster, case: Case) -> None:
    check(two_processes, case)


def check(cluster: Cluster, case: Case) -> None:
    figures = measure.measured(cluster, measure.JOBS[case.family](*case.sizes), case.batch)
    assert measure.verdict(figures) is None
    assert (figures["workload"], figures["batch"]) == (case.workload, case.batch)
    groups = -(-case.changes // case.batch)
    assert len(figures["change_ms_all"]) == groups, "one figure for each group of epochs in flight"
    assert figures["trace_rows"] and figures["trace_mib"], "all of them remember something"
    assert figures["check_load"] != figures["check_changes"], "a run in which nothing happens shows nothing"


def test_small_families_are_all_that_can_be_measured() -> None:
    assert {case.family for case in SMALL} == set(measure.JOBS)


def test_verdict_names_a_wrong_answer() -> None:
    case = SMALL[0]
    with measure.connected(1) as cluster:
        figures = measure.measured(cluster, measure.JOBS[case.family](*case.sizes))
    figures["check_changes"]["n"] += 1
    assert "the answer has the checks" in str(measure.verdict(figures))


class Journal:
    """A dataflow of one input that writes down what is handed over."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def input(self, name: str) -> Journal:
        self.said.append(name)
        return self

    def remove(self, rows: object) -> None:
        self.said.append(rows)

    insert = remove

    def seal(self, *, wait: bool) -> int:
        assert wait
        self.said.append(0)
        return 0


def test_changes_of_few_rows_are_tuples_as_a_user_writes_them() -> None:
    job = measure.JOBS["join"](200, 300, 10, 2 * measure.FEW_ROWS)
    flow = Journal()
    measure.timed_changes(cast(Flow, flow), job, 3, 4)
    first, step = job.schedule.removed(3).start, measure.FEW_ROWS
    keys = job.changing["left"].column("key").to_pylist()
    assert flow.said[0] == flow.said[2] == "left" and flow.said[4] == "right"
    assert flow.said[1] == [(keys[row], row) for row in range(first, first + step)]
    assert flow.said[3] == [(keys[row], row) for row in range(300 + first, 300 + first + step)]
    assert flow.said[-1] == 0


def test_changes_of_more_rows_are_tables() -> None:
    job = measure.JOBS["count"](200, 300, 10, 2 * measure.FEW_ROWS + 2)
    flow = Journal()
    measure.timed_changes(cast(Flow, flow), job, 3, 4)
    start = job.schedule.removed(3).start
    assert isinstance(flow.said[1], pa.Table) and isinstance(flow.said[3], pa.Table)
    assert flow.said[1] == job.changing["rows"].slice(start, measure.FEW_ROWS + 1)
    assert flow.said[3] == job.changing["rows"].slice(300 + start, measure.FEW_ROWS + 1)


def test_memory_counts_the_workers_that_were_started(two_processes: Cluster) -> None:
    """Those that run in this moment; without them this process is all."""
    own = memory.processes()
    assert own[0] == os.getpid() and len(own) >= 1 + two_processes.workers


def test_memory_peak_is_forgotten_and_grows_anew() -> None:
    memory.reset_peaks()
    before = memory.peak_mib()
    held = np.ones(256 << 17)
    assert memory.peak_mib() - before > 0.9 * held.nbytes / 2**20
    del held
    memory.reset_peaks()
    assert memory.peak_mib() - before < 128, "of 256 that were held"
