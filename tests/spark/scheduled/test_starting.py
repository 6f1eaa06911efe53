"""starting.py: a cluster in Spark, on the session that all tests share: two slots, so one worker.

More workers, executors of their own and another master: `test_masters.py`. To start one takes ten seconds, so
each is used for several claims.

lost_*      one error, the same for every call, and another cluster
refused_*   before anything starts
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

import differential as dd
import timely
import timely.spark
from timely.client.remote.workers import RemoteWorkers
from timely.keys import ClientKeys
from timely.spark.delivering import EpochFeed, TargetFactory
from timely.spark.epochs import epoch_rows
from timely.spark.errors import ClusterLostError, ScheduleError
from timely.spark.jobs.feeding import Layout
from timely.spark.scheduled import starting
from timely.spark.scheduled.facts import facts
from timely.spark.scheduled.job import SparkJob
from timely.spark.scheduled.starting import ScheduledCluster
from timely.spark.source import register


def totals(dataflow: timely.Dataflow) -> None:
    """A query that travels: no worker can import this file."""
    rows = dd.input(dataflow, "rows", "key: int, value: int")
    rows.group_by("key").agg(total=dd.sum("value")).output("totals")


ROWS = ("id % 7 AS key", "id AS value", "id div 500 AS epoch")


class Process:
    """The one worker of a cluster, as the system sees it; a number may mean another process some day."""

    def __init__(self, cluster: ScheduledCluster) -> None:
        (counters,) = cluster.stats()
        self.number = int(str(counters["process"]))
        self._begun = self._stat()[19]

    def parent(self) -> int:
        """The process above it: its task."""
        return int(self._stat()[1])

    def has_ended(self) -> bool:
        """Whether it runs no more, though nobody may have asked how it ended."""
        try:
            stat = self._stat()
        except OSError:
            return True
        return stat[0] == "Z" or stat[19] != self._begun

    def _stat(self) -> list[str]:
        return Path(f"/proc/{self.number}/stat").read_text().rpartition(")")[2].split()


def _twin(epochs: int) -> Counter[tuple[int, ...]]:
    """The changes of an embedded cluster that is fed `ROWS` by hand."""
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(totals)
        for epoch in range(epochs):
            flow.input("rows").insert([(id % 7, id) for id in range(500 * epoch, 500 * (epoch + 1))])
            flow.seal()
        return _changes(flow, epochs)


def _changes(flow: timely.Flow, epochs: int) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for row in flow.output("totals").changes(0, epochs).to_pylist():
        found[row["key"], row["total"], row["epoch"]] += row["diff"]
    return found


def test_fed_by_executors_it_answers_as_the_embedded_one_knows_its_own_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    tracker = spark.sparkContext.statusTracker()
    rows = epoch_rows(spark.range(2000).selectExpr(*ROWS), writers=1)
    with timely.spark.cluster(spark, workers=1, wait=60) as cluster:
        process = Process(cluster)
        assert tracker.getActiveJobsIds()
        flow = cluster.install(totals)
        target = cluster.append_target(flow.index)
        receipts = EpochFeed(rows, "rows", target).send(range(4))
        for epoch in range(4):
            flow.seal(expected=[one for receipt in receipts[epoch] for one in receipt.expected("rows")])
        assert _changes(flow, 4) == _twin(4) != Counter()
        with pytest.raises(timely.RefusedError, match="takes? only clients with keys"):
            timely.connect(*cluster.addresses)
        assert isinstance(target.keys, ClientKeys) and "<secret>" not in repr(target)
        keys = cluster.save_keys(tmp_path / "keys")  # for Spark's data source, and for other programs
        register(spark)
        read = spark.read.format("naiad").options(
            cluster=cluster.addresses[0], output="totals", keys=str(keys)
        )
        assert dict(map(tuple, read.load().collect())) == {key: sum(range(key, 2000, 7)) for key in range(7)}
        with timely.connect(*cluster.addresses, keys=keys) as joined:
            assert joined.workers == 1
    _soon(process.has_ended)
    _soon(lambda: not tracker.getActiveJobsIds())
    cluster.close()
    with pytest.raises(timely.MisuseError, match="closed"):
        cluster.stats()
    rows.release()


def test_lost_is_a_cluster_whose_worker_or_task_is_killed_and_another_one_starts_empty(
    spark: SparkSession,
) -> None:
    with timely.spark.cluster(spark, workers=1, wait=60) as cluster:
        flow = cluster.install(totals)
        flow.input("rows").insert([(1, 2)])
        cluster.check()
        os.kill(Process(cluster).number, signal.SIGKILL)
        with pytest.raises(
            ClusterLostError, match=r"worker 0 .* was killed by SIGKILL(.|\n)*restart\(\)"
        ) as told:
            flow.wait(flow.seal())
        for ask in (cluster.check, cluster.stats, flow.seal):
            with pytest.raises(ClusterLostError) as again:
                ask()
            assert str(again.value) == str(told.value)
        other = cluster.restart()
    with other:
        assert other.flows() == {} and other.workers == 1
        flow = other.install(totals)
        process = Process(other)
        task = process.parent()
        os.kill(task, signal.SIGKILL)
        with pytest.raises(ClusterLostError, match=rf"task of worker 0 \(task process {task} on .*is lost"):
            flow.output("totals").changes(5)
        _soon(process.has_ended)


def test_lost_workers_of_a_durable_cluster_start_again_and_nobody_notices(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the program, nor another client at the same address, nor tasks that feed, nor a job."""
    rows = epoch_rows(spark.range(2000).selectExpr(*ROWS), writers=1)
    with timely.spark.cluster(spark, workers=1, wait=60, durable=tmp_path / "store") as cluster:
        flow = cluster.install(totals)
        receipts = EpochFeed(rows, "rows", cluster.append_target(flow.index)).send(range(4))
        addresses = cluster.addresses
        with timely.connect(addresses[0], keys=cluster.save_keys(tmp_path / "keys")) as joined:
            other = joined.flow(flow.index)
            for epoch, victim in enumerate(("worker", "task")):
                process = Process(cluster)
                os.kill(process.number if victim == "worker" else process.parent(), signal.SIGKILL)
                flow.seal(expected=[one for receipt in receipts[epoch] for one in receipt.expected("rows")])
                assert _changes(other, epoch + 1) == _twin(epoch + 1)
                _soon(process.has_ended)
        assert cluster.addresses == addresses and cluster.flows() == {flow.index: flow.name}
        with pytest.raises(timely.StoreError, match="is this program itself"):
            timely.spark.cluster(spark, workers=1, durable=tmp_path / "store")
        again = EpochFeed(rows, "rows", cluster.append_target(flow.index)).send(range(2, 4))
        assert again == {epoch: receipts[epoch] for epoch in (2, 3)}, "they count once"
    rows.release()
    with timely.spark.cluster(spark, workers=1, wait=60, durable=tmp_path / "store") as cluster:
        flow = cluster.install(totals)
        assert flow.epoch == 2
        flow.seal(through=3)
        assert _changes(flow, 4) == _twin(4)
        sends, victims = Layout.send, [Process(cluster).number]

        def send(self: Layout, chunk: range, target: TargetFactory) -> object:
            while victims:
                os.kill(victims.pop(), signal.SIGKILL)
            return sends(self, chunk, target)

        monkeypatch.setattr(Layout, "send", send)
        answer = timely.spark.run(
            lambda rows: rows.group_by("key").agg(total=dd.sum("value")),
            {"rows": spark.range(2000).selectExpr(*ROWS)},
            epochs="epoch",
            outputs=tmp_path / "out",
            workers=cluster,
        )
        found = Counter({tuple(row)[:3]: row["diff"] for row in answer.changes().collect()})
        assert found == _twin(4) and not victims


def test_refused_are_keys_of_an_insecure_cluster(tmp_path: Path) -> None:
    workers = RemoteWorkers(["tcp://127.0.0.1:1"])
    cluster = ScheduledCluster(workers, cast("SparkJob", None), lambda: cluster)
    with pytest.raises(timely.MisuseError, match="an insecure cluster has no keys"):
        cluster.save_keys(tmp_path / "keys")
    assert not (tmp_path / "keys").exists()
    cluster.close()


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
    _soon(lambda: not spark.sparkContext.statusTracker().getActiveJobsIds())


def _soon(has: Callable[[], bool]) -> None:
    """Spark hears of its jobs a moment later; what is told to end needs a moment, too."""
    deadline = time.monotonic() + 60
    waiting = threading.Event()
    while not has():
        assert time.monotonic() < deadline
        waiting.wait(0.05)
