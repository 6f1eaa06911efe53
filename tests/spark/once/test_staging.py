"""Batches of Spark for a durable cluster that starts again in between; no Java is needed for that.

again_*   a task sends all its parts again, or fails, and counts once
batch_*   whatever the restart has swallowed, a batch that is written until that succeeds counts once
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from kept_cluster import KeptCluster

import timely
from timely.client.remote import resuming
from timely.client.remote.resuming import DurableWorkers
from timely.client.session import Flow
from timely.errors import MisuseError, RestartedError
from timely.spark.delivering import BatchDelivery, Staged
from timely.spark.once import staging
from timely.wire.requests import Decide, Deliver, Missing, Request
from timely.wire.transport import zeromq


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has to be waited for."""
    monkeypatch.setattr(zeromq, "LOST_SECONDS_MAX", 0.0)
    monkeypatch.setattr(resuming, "_LOOK_SECONDS", 0.005)


@pytest.fixture
def kept_cluster(tmp_path: Path) -> Iterator[KeptCluster]:
    """Two workers."""
    with KeptCluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
def flow(kept_cluster: KeptCluster) -> Iterator[Flow]:
    """`kept`, by a client of the cluster."""
    with timely.connect(*kept_cluster.addresses) as cluster:
        yield cluster.install("kept_cluster:kept")


def tables(numbers: range, rows: int = 2) -> list[pa.Table]:
    """These numbers, in tables of a few rows."""
    return [
        pa.table({"k": [0] * len(some), "n": pa.array(some, pa.int64())})
        for some in (numbers[at : at + rows] for at in range(0, len(numbers), rows))
    ]


def delivery(flow: Flow, batch: int = 0) -> BatchDelivery:
    return BatchDelivery(flow.index, "rows", "query", batch, True, False, 0, 10.0)


def workers_of(cluster: KeptCluster) -> DurableWorkers:
    """What a task, or the driver, opens for itself."""
    return DurableWorkers(cluster.addresses, incarnation=1)


def shown(flow: Flow) -> Counter[tuple[int, int]]:
    """Each number with its epoch."""
    flow.refresh()
    changes = flow.output("rows").changes(0, flow.epoch).to_pylist()
    return Counter({(row["n"], row["epoch"]): row["diff"] for row in changes})


@pytest.mark.parametrize("when", ["before", "behind"])
@pytest.mark.parametrize("part", [0, 1, 4])
def test_again_a_task_sends_all_its_parts(
    kept_cluster: KeptCluster, flow: Flow, part: int, when: str
) -> None:
    falls = [when]
    kept_cluster.falls = lambda worker, request: (
        falls.pop() if falls and isinstance(request, Deliver) and request.part == part else ""
    )
    workers = workers_of(kept_cluster)
    staged = delivery(flow).stage(workers, iter(tables(range(10))), 1, 1)
    assert not falls and (staged.parts, staged.rows) == ((2, 3), 10)
    delivery(flow).commit(workers, [staged])
    assert shown(flow) == Counter({(n, 0): 1 for n in range(10)})
    workers.close()


def test_again_a_task_is_run_that_does_not_keep_its_rows(
    kept_cluster: KeptCluster, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_KEPT_BYTES_MAX", 100)
    falls = ["behind"]
    kept_cluster.falls = lambda worker, request: (
        falls.pop() if falls and isinstance(request, Deliver) and request.part == 4 else ""
    )
    workers = workers_of(kept_cluster)
    with pytest.raises(RestartedError, match="while a task was sending 10 rows, more than it keeps"):
        delivery(flow).stage(workers, iter(tables(range(10))), 1, 1)
    staged = delivery(flow).stage(workers, iter(tables(range(10))), 1, 1)
    delivery(flow).commit(workers, [staged])
    assert shown(flow) == Counter({(n, 0): 1 for n in range(10)})
    workers.close()


def test_again_a_batch_is_made_if_the_cluster_has_started_behind_its_tasks(
    kept_cluster: KeptCluster, flow: Flow
) -> None:
    workers = workers_of(kept_cluster)
    staged = [delivery(flow).stage(workers, iter(tables(range(at, at + 3))), at, 1) for at in (0, 3)]
    kept_cluster.fall()
    with pytest.raises(MisuseError, match=r"what 4 of its tasks .* the cluster has started again, or"):
        delivery(flow).commit(workers, staged)
    assert shown(flow) == Counter()
    workers.close()


def test_again_a_batch_that_has_entered_sends_no_parts(kept_cluster: KeptCluster, flow: Flow) -> None:
    """A restart changes nothing about that, also in the middle."""
    workers = workers_of(kept_cluster)
    delivery(flow).commit(workers, [delivery(flow).stage(workers, iter(tables(range(10))), 0, 1)])
    falls = ["behind"]
    kept_cluster.falls = lambda worker, request: falls.pop() if falls else ""
    again = delivery(flow).stage(workers, iter(tables(range(10))), 0, 1)
    assert (again.parts, again.rows) == ((0, 0), 10)
    delivery(flow).commit(workers, [again])
    assert shown(flow) == Counter({(n, 0): 1 for n in range(10)})
    workers.close()


def test_batch_counts_once_whatever_a_restart_has_swallowed(kept_cluster: KeptCluster, flow: Flow) -> None:
    """As Spark does: a task that fails is run again, and a batch whose commit raises is made again."""
    choose = random.Random(5)
    falls: list[tuple[type[Request], int, str]] = []

    def fall(worker: int, request: Request) -> str:
        for at, (kind, which, when) in enumerate(falls):
            if isinstance(request, kind) and worker == which:
                del falls[at]
                return when
        return ""

    kept_cluster.falls = fall
    kinds = (Deliver, Missing, Decide)
    repeated = 0
    for batch in range(25):
        falls[:] = [
            (kind, 0 if kind is Decide else choose.randrange(2), choose.choice(("before", "behind")))
            for kind in choose.choices(kinds, k=choose.randrange(3))
        ]
        while True:
            driver = workers_of(kept_cluster)
            one = delivery(flow, batch)
            staged: list[Staged] = []
            for task in range(2):
                own = workers_of(kept_cluster)
                numbers = range(10 * batch + 5 * task, 10 * batch + 5 * task + 5)
                staged.append(one.stage(own, iter(tables(numbers)), task, 1))
                own.close()
            try:
                one.commit(driver, staged)
                break
            except MisuseError:
                repeated += 1
            finally:
                driver.close()
    assert repeated, "some restart has come between a task and the commit"
    assert shown(flow) == Counter({(n, n // 10): 1 for n in range(250)})
