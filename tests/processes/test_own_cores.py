"""Worker processes that have a core each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import timely
from tests.processes.test_cluster import launcher_of
from timely.cores import cores


@pytest.fixture
def two_cores() -> Iterator[list[int]]:
    """This thread, and who is started by it, may run on two cores, or on the one that there is."""
    before = cores()
    os.sched_setaffinity(0, set(before[:2]))
    yield before[:2]
    os.sched_setaffinity(0, set(before))


def _kept_to(cluster: timely.Cluster) -> list[set[int]]:
    """Where the main thread of each worker may run."""
    return [os.sched_getaffinity(pid) for pid in launcher_of(cluster).pids]


def test_two_workers_on_two_cores_have_one_each(two_cores: list[int]) -> None:
    with timely.connect(workers=2) as cluster:
        expected = [{core} for core in two_cores] if len(two_cores) == 2 else [set(two_cores)] * 2
        assert _kept_to(cluster) == expected


def test_what_was_there_before_a_worker_keeps_to_its_core_may_run_on_all(two_cores: list[int]) -> None:
    """Threads of sockets do; and so who looks out for its neighbour had counted the cores of all by then."""
    with timely.connect(workers=2) as cluster:
        for worker in launcher_of(cluster).pids:
            tasks = [int(task.name) for task in Path(f"/proc/{worker}/task").iterdir()]
            others = [task for task in tasks if task != worker]
            assert others
            assert all(os.sched_getaffinity(task) == set(two_cores) for task in others)


def test_one_worker_may_run_on_both(two_cores: list[int]) -> None:
    with timely.connect(workers=1) as cluster:
        assert _kept_to(cluster) == [set(two_cores)]


def test_the_environment_leaves_them_to_the_system(
    two_cores: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAIAD_OWN_CORES", "0")
    with timely.connect(workers=2) as cluster:
        assert _kept_to(cluster) == [set(two_cores)] * 2
