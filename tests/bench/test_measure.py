"""measure: does every workload that is compared give the right answer, on one worker and on two?

  small_*      the smallest of each against recomputation: embedded, in two processes, epochs in flight
  verdict_*    a wrong answer is noticed
  memory_*     what is counted as memory

Nothing here is about time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from bench import memory
from bench.cases import SMALL, Case
from bench.dataflow import measure
from timely import Cluster


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
    groups = -(-case.sizes[2] // case.batch)
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


def test_memory_counts_the_workers_that_were_started(two_processes: Cluster) -> None:
    """Those that run in this moment; without them this process is all."""
    own = memory.processes()
    assert own[0] == os.getpid() and len(own) >= 1 + two_processes.workers


def test_memory_peak_is_forgotten_and_grows_anew() -> None:
    memory.reset_peaks()
    before = memory.peak_mib()
    held = np.ones(64 << 17)
    assert memory.peak_mib() - before > 0.9 * held.nbytes / 2**20
    del held
    memory.reset_peaks()
    assert memory.peak_mib() - before < 32
