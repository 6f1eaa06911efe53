"""Dataflows of thousands of stages: what they cost, and that they do the same as small ones."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest

from progress.errors import GraphError
from progress.times.timestamp import Timestamp
from progress.tracking.tracker import Tracker
from timely import Dataflow, Stream, Vertex
from timely.building import dataflow as building
from timely.client.tables import records_of
from timely.running.checking.monitor import Monitor
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.transport.memory import MemoryNetwork

MIB = 1 << 20


class Passes(Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


class Gathers(Vertex):
    """Sends on all records of a time once it is over."""

    def __init__(self) -> None:
        self.records: dict[Timestamp, list[object]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.notify_at(time)
        self.records.setdefault(time, []).extend(message)

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, self.records.pop(time), time)


class Rounds(Vertex):
    """Sends on what it gets in some of three rounds."""

    def __init__(self, goes_round: bool) -> None:
        self.goes_round = goes_round

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if (time[-1] < 2) == self.goes_round:
            self.send_by(0, message, time)


def in_a_row(stream: Stream, count: int, vertex: Callable[[], Vertex] = Passes) -> Stream:
    for number in range(count):
        stream = stream.stage(f"s{number}", vertex)
    return stream


def loops(count: int) -> Callable[[Dataflow], None]:
    """About so many stages, in loops in each of some loops in a row."""

    def build(dataflow: Dataflow) -> None:
        stream = dataflow.input("rows")
        for number in range(1 + count // 400):
            with dataflow.loop(f"outer {number}") as outer:
                back = outer.feedback()
                (body,) = dataflow.stage("head", Passes, [outer.enter(stream).feed(), back.stream.feed()])
                for inside in range(1 + count // 400):
                    with outer.loop(f"inner {inside}") as inner:
                        again = inner.feedback()
                        feeds = [inner.enter(body).feed(), again.stream.feed()]
                        (rows,) = dataflow.stage("head", Passes, feeds)
                        rows = in_a_row(rows, count // 36)
                        again.connect(rows.stage("again", lambda: Rounds(True)))
                        body = inner.leave(rows.stage("done", lambda: Rounds(False)))
                back.connect(body.stage("again", lambda: Rounds(True)))
                stream = outer.leave(body.stage("done", lambda: Rounds(False)))
        dataflow.output("out", stream)

    return build


def row(count: int, vertex: Callable[[], Vertex] = Passes) -> Callable[[Dataflow], None]:
    """So many stages, one behind the other."""
    return lambda dataflow: dataflow.output("out", in_a_row(dataflow.input("rows"), count, vertex))


def fan(count: int) -> Callable[[Dataflow], None]:
    """A stage behind so many that stand side by side."""

    def build(dataflow: Dataflow) -> None:
        rows = dataflow.input("rows")
        branches = [rows.stage(f"s{number}", Passes).feed() for number in range(count)]
        (last,) = dataflow.stage("last", Gathers, branches)
        dataflow.output("out", last)

    return build


def installed(build: Callable[[Dataflow], None]) -> tuple[Worker, Instance]:
    dataflow = Dataflow()
    build(dataflow)
    worker = Worker()
    return worker, worker.install(dataflow.freeze())


@pytest.mark.parametrize("make", [row, fan, loops])
def test_memory_of_an_install_is_linear_in_stages(make: Callable[[int], Callable[[Dataflow], None]]) -> None:
    """At 65,536 stages it would be less than a gigabyte; all pairs of these would be 64 MiB."""
    installed(make(50))
    tracemalloc.start()
    worker, instance = installed(make(1_500))
    current, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert current < 20 * MIB and peak < 28 * MIB, (current / MIB, peak / MIB)
    assert instance.has_work() and worker.has_work()


@pytest.mark.parametrize(
    ("build", "rows"),
    [(row(1_500), 1), (row(400, Gathers), 1), (fan(700), 700), (loops(2_000), 1)],
    ids=["row", "notified", "fan", "loops"],
)
def test_records_pass_all_stages_and_each_epoch_ends(build: Callable[[Dataflow], None], rows: int) -> None:
    worker, instance = installed(build)
    assert instance.tracker._earliest is not None, "it is large"
    for epoch in range(3):
        instance.input("rows").send([epoch])
        instance.input("rows").seal()
    worker.run_until_idle()
    assert instance.epochs_done() == 3 == instance.output("out").complete_before
    assert records_of(instance.output("out").changes(0, 3)) == sorted([(0, 0), (1, 1), (2, 2)] * rows)
    instance.input("rows").close()
    worker.run_until_idle()
    assert instance.is_complete() and instance.tracker.active() == []


@pytest.mark.parametrize("build", [loops(0), fan(6)], ids=["loops", "fan"])
def test_as_few_stages_all_that_progress_tracking_promises_holds_at_every_moment(
    build: Callable[[Dataflow], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.running.instance.Tracker", partial(Tracker, table_max=0))
    network = MemoryNetwork(2, seed)
    workers = [Worker(index, 2, network.transport(index)) for index in range(2)]
    Monitor(workers, network)
    instances: list[Instance] = []
    for worker in workers:
        dataflow = Dataflow()
        build(dataflow)
        instances.append(worker.install(dataflow.freeze()))
    for epoch in range(2):
        for number, instance in enumerate(instances):
            instance.input("rows").send([number])
            instance.input("rows").seal()
            assert instance.tracker._earliest is not None, f"large, in epoch {epoch}"
    for instance in instances:
        instance.input("rows").close()
    rng = random.Random(f"{seed} of turns")
    for _ in range(20_000):
        rng.choice(workers).step()
        if all(instance.is_complete() for instance in instances) and network.in_flight() == 0:
            break
    assert all(instance.is_complete() for instance in instances), "all inputs are closed"


def test_one_stage_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "STAGES_MAX", 3)
    dataflow = Dataflow("wide")
    stream = in_a_row(dataflow.input("rows"), 2)
    with pytest.raises(
        GraphError, match=r"'wide' has 3 stages.*'one more' \(.*\) is one too many"
    ) as refused:
        stream.stage("one more", Passes)
    assert "install several dataflows" in str(refused.value)
