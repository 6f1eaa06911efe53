"""starting.py: a cluster in Spark, on the session that all tests share: two slots, so one worker.

More workers, executors of their own and other masters: `test_masters.py`.

lost_*      one error, the same for every call, and another cluster
refused_*   before anything starts
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

import differential as dd
import timely
import timely.spark
from timely.errors import PeerError
from timely.spark.epochs import epoch_rows
from timely.spark.errors import ClusterLostError, ScheduleError
from timely.spark.feed import EpochFeed
from timely.spark.jobs.querying import installed
from timely.spark.scheduled import starting
from timely.spark.scheduled.facts import facts
from timely.spark.scheduled.starting import ScheduledCluster
from timely.spark.scheduled.status import busy_slots


def totals(dataflow: timely.Dataflow) -> None:
    """A query that travels: no worker can import this file."""
    rows = dd.input(dataflow, "rows", "key: int, value: int")
    rows.group_by("key").agg(total=dd.sum("value")).output("totals")


@pytest.fixture
def cluster(spark: SparkSession) -> Iterator[ScheduledCluster]:
    with timely.spark.cluster(spark, workers=1, wait=60) as made:
        yield made


def _changes(flow: timely.Flow, epochs: int) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for row in flow.output("totals").changes(0, epochs).to_pylist():
        found[row["key"], row["total"], row["epoch"]] += row["diff"]
    return found


def test_a_cluster_is_fed_by_executors_and_answers_as_the_embedded_one(
    spark: SparkSession, cluster: ScheduledCluster
) -> None:
    frame = spark.range(2000).selectExpr("id % 7 AS key", "id AS value", "id div 500 AS epoch")
    flow = cluster.install(totals)
    rows = epoch_rows(frame, writers=1)
    receipts = EpochFeed(rows, "rows", cluster.append_target(flow.index)).send(range(4))
    with timely.connect(workers=1, embedded=True) as embedded:
        twin = embedded.install(totals)
        for epoch in range(4):
            sent = [identity for receipt in receipts[epoch] for identity in receipt.expected("rows")]
            flow.seal(expected=sent)
            mine = rows.frame.where(f"epoch = {epoch}").select("key", "value").collect()
            twin.input("rows").insert([(key, value) for key, value in mine])
            twin.seal()
        assert _changes(flow, 4) == _changes(twin, 4) != Counter()
    rows.release()


def test_closing_gives_the_slot_back_and_leaves_no_process(spark: SparkSession) -> None:
    with timely.spark.cluster(spark, workers=1, wait=60) as made:
        (counters,) = made.stats()
        process = Path(f"/proc/{counters['process']}")
        assert process.exists() and busy_slots(spark.sparkContext) == 1
    assert not process.exists()
    _soon(lambda: busy_slots(spark.sparkContext) == 0)
    made.close()
    with pytest.raises(timely.MisuseError, match="closed"):
        made.stats()


def test_lost_is_a_cluster_whose_worker_is_killed_and_another_one_starts_empty(
    cluster: ScheduledCluster,
) -> None:
    flow = cluster.install(totals)
    flow.input("rows").insert([(1, 2)])
    cluster.check()
    os.kill(int(str(cluster.stats()[0]["process"])), signal.SIGKILL)
    with pytest.raises(
        ClusterLostError, match=r"worker 0 .* was killed by SIGKILL(.|\n)*restart\(\)"
    ) as told:
        flow.wait(flow.seal())
    for ask in (cluster.check, cluster.stats, flow.seal):
        with pytest.raises(ClusterLostError) as again:
            ask()
        assert str(again.value) == str(told.value)
    with cluster.restart() as other:
        assert other.flows() == {} and other.workers == 1
        with pytest.raises(ClusterLostError):
            cluster.stats()


def test_lost_is_a_cluster_whose_task_is_killed_and_its_worker_ends(cluster: ScheduledCluster) -> None:
    flow = cluster.install(totals)
    process = Path(f"/proc/{cluster.stats()[0]['process']}")
    task = int(process.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    begun = time.monotonic()
    os.kill(task, signal.SIGKILL)
    with pytest.raises(ClusterLostError, match=rf"task of worker 0 \(task process {task} on .*is lost"):
        flow.output("totals").changes(5)
    assert time.monotonic() - begun < 5
    _soon(lambda: not process.exists())


def test_lost_is_told_by_run_and_not_what_an_executor_knows_of_it(cluster: ScheduledCluster) -> None:
    query = SimpleNamespace(build=totals)
    process = int(str(cluster.stats()[0]["process"]))
    with pytest.raises(ClusterLostError, match="was killed by SIGKILL"), installed(query, cluster):  # type: ignore[arg-type]  # as much of a query as is used
        os.kill(process, signal.SIGKILL)
        _soon(lambda: not _is_well(cluster))
        raise PeerError("worker 0 at tcp://127.0.0.1:1 is lost before it has answered")


def _is_well(cluster: ScheduledCluster) -> bool:
    try:
        cluster.check()
    except ClusterLostError:
        return False
    return True


def test_refused_are_more_workers_than_slots_but_one(spark: SparkSession) -> None:
    begun = time.monotonic()
    with pytest.raises(ScheduleError, match=r"need 3 slots, and Spark has 2(.|\n)*spark\.master.*local\[2"):
        timely.spark.cluster(spark, workers=2, wait=0.5)
    assert time.monotonic() - begun < 10


def test_refused_are_other_versions_on_an_executor(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = facts()
    monkeypatch.setattr(starting, "facts", lambda: {**own, "numba": "0.1"})
    with pytest.raises(ScheduleError, match=rf"numba {own['numba']} in place of 0\.1"):
        timely.spark.cluster(spark, workers=1, wait=60)
    assert busy_slots(spark.sparkContext) == 0


def _soon(has: object) -> None:
    assert callable(has)
    deadline = time.monotonic() + 10
    waiting = threading.Event()
    while not has():
        assert time.monotonic() < deadline
        waiting.wait(0.05)
