"""Stages on some workers: where records go, what the others hold, and what cannot be."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import cast

import pytest
from random_dataflows import finish

import timely
from progress.times.timestamp import Timestamp
from timely import Dataflow, GraphError, MisuseError, Vertex, connect
from timely.building.exchange import ToWorker
from timely.building.placing.placement import ChosenWorkers, chosen_workers
from timely.running.checking.monitor import Monitor
from timely.running.core import Worker
from timely.wire.transport.memory import MemoryNetwork


class HereVertex(Vertex):
    """When a time is complete: the worker on which each record is."""

    def __init__(self) -> None:
        self.waiting: dict[Timestamp, list[object]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.waiting.setdefault(time, []).extend(message)
        self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, [(record, self.worker) for record in self.waiting.pop(time)], time)


@pytest.mark.parametrize("listed", [[0], [1], [2, 0], 2, 3])
@pytest.mark.parametrize("how", ["key", "all", "near"])
def test_records_are_where_the_stage_is_and_nowhere_else(listed: list[int] | int, how: str) -> None:
    chosen = list(range(listed)) if isinstance(listed, int) else sorted(listed)

    def build(dataflow: Dataflow) -> None:
        spread = dataflow.input("records").exchange(abs)
        before = spread.broadcast() if how == "all" else spread
        exchange = timely.by() if how == "key" else None
        dataflow.output("here", before.stage("here", HereVertex, exchange=exchange, workers=listed))

    with connect(workers=3, embedded=True) as cluster:
        flow = cluster.install(build)
        for epoch in range(2):
            flow.input("records").insert(list(range(30)))
            flow.seal()
            rows = [row for _, row in flow.output("here").changes(epoch, epoch + 1)]
            times = 3 if how == "all" else 1
            assert sorted(record for record, _ in rows) == sorted(list(range(30)) * times)
            assert sorted({worker for _, worker in rows}) == chosen
            if how == "near":
                assert all(worker == n % 3 for n, worker in rows if n % 3 in chosen)


def test_a_broadcast_into_a_stage_comes_once_to_each_of_its_workers() -> None:
    def build(dataflow: Dataflow) -> None:
        feeds = [dataflow.input("records").feed(exchange=timely.Broadcast())]
        (here,) = dataflow.stage("here", HereVertex, feeds, workers=[0, 2])
        dataflow.output("here", here)

    with connect(workers=3, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("records").insert([7, 8])
        flow.seal()
        assert sorted(row for _, row in flow.output("here").changes()) == [(7, 0), (7, 2), (8, 0), (8, 2)]


def test_workers_without_the_stage_have_no_vertex_and_hold_nothing() -> None:
    dataflows = []
    network = MemoryNetwork(3, 1)
    group = [Worker(index, 3, network.transport(index)) for index in range(3)]
    Monitor(group, network)
    for _ in group:
        dataflow = Dataflow("placed")
        stage = dataflow.input("records").stage(
            "here", HereVertex, exchange=cast("timely.Route", abs), workers=[1]
        )
        dataflow.output("here", stage.stage("pass", HereVertex, exchange=cast("timely.Route", hash)))
        dataflows.append(dataflow)
    instances = [worker.install(each.freeze()) for worker, each in zip(group, dataflows, strict=True)]
    instances[0].input("records").send([1, 2, 3])
    for instance in instances:
        instance.input("records").seal()
    finish(group, Random(1))
    assert [type(each.runners[1].vertex).__name__ for each in instances] == [
        "NoneType",
        "HereVertex",
        "NoneType",
    ]
    assert all(each.epochs_done() == 1 and each.runners[1].activations == 0 for each in instances[::2])
    assert instances[1].epochs_done() == 1


@pytest.mark.parametrize(
    "workers", [[], [-1], "01", [True], 0, True, 1.5, [0, "1"], 10**9, [10**30], range(10**9)]
)
def test_refusing_what_names_no_workers(workers: object) -> None:
    told = r"stage 'here' \(.*test_placement.py:\d+\): `workers` is a list of numbers of workers, from 0 on"
    with pytest.raises(GraphError, match=told):
        Dataflow().input("records").stage("here", HereVertex, workers=workers)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [[0, 2], 3])
def test_refusing_workers_that_there_are_not_and_nothing_is_left(workers: list[int] | int) -> None:
    def build(dataflow: Dataflow) -> None:
        dataflow.input("records").stage("here", HereVertex, workers=workers)

    with connect(workers=2, embedded=True) as cluster:
        told = (
            r"stage 'here' \(.*test_placement.py:\d+\) is to be on worker 2, and there are 2: workers 0 to 1"
        )
        with pytest.raises(MisuseError, match=told):
            cluster.install(build)
        assert cluster.flows() == {}


def test_refusing_a_route_that_sends_elsewhere() -> None:
    def build(dataflow: Dataflow) -> None:
        dataflow.input("records").stage("here", HereVertex, exchange=ToWorker(1), workers=[0])

    with connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("records").insert([1])
        with pytest.raises(
            MisuseError, match=r"sends rows to worker 1, and the stage is on workers \[0\] only"
        ):
            flow.seal(wait=True)


def test_a_durable_cluster_that_has_the_workers_goes_on_and_one_that_has_not_says_so(tmp_path: Path) -> None:
    """State is where the stage is, also after a restart."""

    def build(dataflow: Dataflow) -> None:
        counted = dataflow.input("records").map(lambda n: (n % 2, n))
        (total,) = dataflow.stage("total", TotalVertex, [counted.feed(exchange=timely.by(0))], workers=[1])
        dataflow.output("total", total)

    with connect(workers=2, embedded=True, durable=tmp_path) as cluster:
        flow = cluster.install(build)
        flow.input("records").insert([1, 2, 3])
        flow.seal(wait=True)
    with connect(workers=2, embedded=True, durable=tmp_path) as cluster:
        flow = cluster.install(build)
        flow.input("records").insert([5])
        flow.seal(wait=True)
        assert flow.output("total").changes(1, 2) == [(1, (1, 9))]
    with pytest.raises(timely.TimelyError, match="total' .* is to be on worker 1, and there are 1"):  # noqa: SIM117
        with connect(workers=1, embedded=True, durable=tmp_path) as cluster:
            cluster.install(build)


class TotalVertex(Vertex):
    def __init__(self) -> None:
        self.totals: dict[int, int] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        for key, n in cast(list[tuple[int, int]], message):
            self.totals[key] = self.totals.get(key, 0) + n
        keys = sorted({key for key, _ in cast(list[tuple[int, int]], message)})
        self.send_by(0, [(key, self.totals[key]) for key in keys], time)


def test_chosen_workers_say_whom_they_have() -> None:
    assert chosen_workers("stage", None) == ChosenWorkers() and ChosenWorkers().has(5)
    assert chosen_workers("stage", [3, 1, 3]) == ChosenWorkers((1, 3))
    assert [chosen_workers("stage", 2).has(worker) for worker in range(3)] == [True, True, False]
    assert ChosenWorkers().count(4) == 4 and ChosenWorkers((1, 3)).count(4) == 2
