"""Programs on workers: in this process, in threads, and in processes.

order_*    all workers hear the same, in the same order
beside_*   clients, and other dataflows
fails_*    errors, times, and ends
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import programs_on_workers as programs
import pytest

import timely
from timely.errors import MisuseError, VertexError, WaitTimeoutError

WORKERS = 3


@pytest.fixture(scope="module", params=["embedded", "threads", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    kind = request.param
    with timely.connect(workers=WORKERS, embedded=kind == "embedded", threads=kind == "threads") as cluster:
        yield cluster


def test_order_is_that_of_rounds_on_all_workers(cluster: timely.Cluster) -> None:
    pulled = cast(
        "list[tuple[tuple[int, object], ...]]", timely.run(programs.in_step, on=cluster, timeout=60.0)
    )
    for each in pulled:
        rounds = [sorted(each[at : at + WORKERS]) for at in range(0, len(each), WORKERS)]
        wanted = [[(w, (w, number)) for w in range(WORKERS)] for number in range(programs.ROUNDS)]
        assert rounds == wanted
    assert pulled[1:] == pulled[:-1], "and within a round it is the same one everywhere"


def test_order_goes_on_though_others_are_silent(cluster: timely.Cluster) -> None:
    values = tuple((WORKERS - 1, number) for number in range(50))
    assert timely.run(programs.silent, on=cluster, timeout=60.0) == [values] * WORKERS


def test_beside_programs_workers_are_clients_of_their_cluster(cluster: timely.Cluster) -> None:
    inserted = tuple(f"of {worker}" for worker in range(WORKERS))
    assert timely.run(programs.clients, on=cluster, timeout=60.0) == [inserted] * WORKERS
    cluster.flow("words").uninstall()
    assert cluster.flows() == {}, "programs leave nothing behind"


def test_fails_with_the_lines_of_the_program_and_the_cluster_goes_on(cluster: timely.Cluster) -> None:
    lines = "(?s)no worker 1.*'program fails'.*programs_on_workers.py.*raise ValueError"
    with pytest.raises(VertexError, match=lines):
        timely.run(programs.fails, on=cluster, arguments={"on": 1}, timeout=60.0)
    left = r"(?s)worker 0 has returned without coming.*programs_on_workers\.py:\d+: here the program was"
    with pytest.raises(MisuseError, match=left):
        timely.run(programs.leaves, on=cluster, timeout=60.0)
    assert len(timely.run(programs.in_step, on=cluster, arguments={"rounds": 1}, timeout=60.0)) == WORKERS


def test_fails_after_its_time_and_ends_the_programs(cluster: timely.Cluster) -> None:
    with pytest.raises(WaitTimeoutError):
        timely.run(programs.waits, on=cluster, timeout=0.2)
    assert cluster.flows() == {}


def test_fails_if_it_cannot_be_imported_or_is_not_marked() -> None:
    with timely.connect(workers=1) as cluster:
        with pytest.raises(MisuseError, match="(?s)unmarked is not marked as one.*@timely.program above"):
            timely.run(programs.unmarked, on=cluster)
        with pytest.raises(MisuseError, match="cannot be imported by worker processes"):
            timely.run(lambda worker: 1, on=cluster)
    assert timely.run(programs.unmarked, workers=2, embedded=True) == [0, 1], "functions of this process may"
    with pytest.raises(MisuseError, match=r"takes the cluster as on=…, or workers for workers to start"):
        timely.run(programs.unmarked, on=cluster, workers=2)
    with pytest.raises(MisuseError, match=r"no keyword 'k': .*Write run\(main, arguments=\{'k': …\}"):
        timely.run(programs.unmarked, workers=2, embedded=True, k=1)
    with pytest.raises(MisuseError, match="marks a function, not a int"):
        timely.program(3)  # type: ignore[type-var]  # users may write anything


def test_fails_in_a_durable_cluster_with_a_reason(tmp_path: Path) -> None:
    with (
        timely.connect(embedded=True, durable=tmp_path) as cluster,
        pytest.raises(MisuseError, match="source"),
    ):
        timely.run(programs.unmarked, on=cluster)
