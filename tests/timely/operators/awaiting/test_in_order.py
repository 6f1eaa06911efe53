"""Callbacks that are coroutines.

order_*    those of one vertex come one after the other, others go on meanwhile
held_*     no time is complete while a coroutine that may act there is pending
errors_*   what a coroutine raises ends its dataflow, with its line
ended_*    a dataflow that ends cancels its coroutines
refused_*  callbacks that nobody would await
"""

from __future__ import annotations

import asyncio
import copy
import sys
import time as clock
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import ClassVar

import pytest
from dataflows import frozen

import timely
from progress.times.timestamp import TimeShape, Timestamp
from timely.operators.awaiting.event_loop import EventLoop
from timely.operators.awaiting.in_order import async_callbacks
from timely.operators.capability import Capability
from timely.running.core import Worker


@pytest.fixture(params=["1", "2 in turn", "2 threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    count, _, way = str(request.param).partition(" ")
    with timely.connect(workers=int(count), threads=way == "threads", embedded=True) as cluster:
        yield cluster


def installed(cluster: timely.Cluster, vertex: Callable[[], timely.Vertex]) -> timely.Flow:
    def build(dataflow: timely.Dataflow) -> None:
        stage = dataflow.input("rows").stage("awaits", vertex, exchange=lambda record: 0)
        dataflow.output("out", stage)

    return cluster.install(build)


class SlowVertex(timely.Vertex):
    """Takes a moment for each record, and longer for earlier ones; says when each call begins and ends."""

    said: ClassVar[list[tuple[str, int]]] = []

    def __init__(self) -> None:
        self.asked: set[Timestamp] = set()

    async def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if time not in self.asked:
            self.asked.add(time)
            self.notify_at(time)
        self.said.append(("begins", time[0]))
        await asyncio.sleep(0.03 - 0.01 * time[0])
        self.said.append(("ends", time[0]))
        self.send_by(0, message, time)

    def on_notify(self, time: Timestamp) -> None:
        self.said.append(("over", time[0]))
        self.send_by(0, ["over"], time)


# order_


def test_order_of_callbacks_is_kept_and_times_are_complete_behind_them(cluster: timely.Cluster) -> None:
    SlowVertex.said.clear()
    flow = installed(cluster, SlowVertex)
    for epoch in range(3):
        flow.input("rows").insert([epoch])
        flow.seal()
    flow.wait(timeout=60)
    said = SlowVertex.said
    assert [each for each in said if each[0] != "over"] == [
        each for epoch in range(3) for each in (("begins", epoch), ("ends", epoch))
    ]
    assert [epoch for what, epoch in said if what == "over"] == [0, 1, 2]
    assert all(said.index(("ends", epoch)) < said.index(("over", epoch)) for epoch in range(3))
    sent = {(epoch, record) for epoch in range(3) for record in (epoch, "over")}
    assert set(flow.output("out").changes()) == sent


class AsksAheadVertex(timely.Vertex):
    """Asks for many later times at once."""

    said: ClassVar[list[int]] = []

    async def on_recv(self, edge: int, message: list[int], time: Timestamp) -> None:
        for epoch in range(time[0], message[0]):
            self.notify_at((epoch,))

    async def on_notify(self, time: Timestamp) -> None:
        self.said.append(time[0])


def test_order_of_many_notifications_needs_few_comparisons_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    AsksAheadVertex.said.clear()
    compared = 0
    less_equal = TimeShape.less_equal

    def counted(shape: TimeShape, one: Timestamp, other: Timestamp) -> bool:
        nonlocal compared
        compared += 1
        return less_equal(shape, one, other)

    monkeypatch.setattr(TimeShape, "less_equal", counted)
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = installed(cluster, AsksAheadVertex)
        flow.input("rows").insert([100])
        for _ in range(100):
            flow.seal(wait=True, timeout=60)
    assert AsksAheadVertex.said == [*range(100)]
    assert compared <= 10 * 100, "not a look at all others for each"


class SumsVertex(timely.Vertex):
    """Sums up the records of each time; asks late, and says in which order times are over."""

    said: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, asks_first: bool) -> None:
        self.asks_first = asks_first
        self.sums: dict[Timestamp, int] = {}

    async def on_recv(self, edge: int, message: list[int], time: Timestamp) -> None:
        if self.asks_first:
            self.notify_at(time)
        self.sums[time] = self.sums.get(time, 0) + sum(message)
        await asyncio.sleep(0.01)
        self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        self.said.append((time[0], self.sums.pop(time)))


@pytest.mark.parametrize("asks_first", [False, True])
def test_order_of_notifications_is_that_of_times_and_each_comes_once(
    cluster: timely.Cluster, asks_first: bool
) -> None:
    SumsVertex.said.clear()

    def build(dataflow: timely.Dataflow) -> None:
        both = [dataflow.input(name).feed(exchange=lambda record: 0) for name in ("first", "second")]
        dataflow.stage("sums", lambda: SumsVertex(asks_first), both)

    flow = cluster.install(build)
    first, second = flow.input("first"), flow.input("second")
    first.seal()
    first.insert([10])
    second.insert([1])
    second.seal()
    second.insert([20])
    flow.seal(through=1)
    flow.wait(timeout=60)
    assert SumsVertex.said == [(0, 1), (1, 30)]


class HangsVertex(timely.Vertex):
    """Awaits what never comes."""

    async def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(self.name)


cancelled: list[str] = []


def test_order_of_other_vertices_is_their_own_matter(cluster: timely.Cluster) -> None:
    hangs, goes_on = installed(cluster, HangsVertex), installed(cluster, SlowVertex)
    for flow in (hangs, goes_on):
        flow.input("rows").insert([1])
        flow.seal()
    goes_on.wait(timeout=60)
    with pytest.raises(
        timely.WaitTimeoutError, match=r"outstanding: 'awaits' \(stage 1\) at \(0,\), which it"
    ):
        hangs.wait(timeout=0.05)


# held_


class OpensVertex(timely.Vertex):
    """A source that awaits each of its records."""

    async def on_open(self, capability: Capability) -> None:
        for number in range(3):
            answer = await asyncio.to_thread(lambda number=number: number * number)
            self.send_by(0, [answer], capability.time)
            capability.downgrade((number + 1,))
        capability.drop()


def test_held_is_the_capability_of_a_source_while_it_awaits(cluster: timely.Cluster) -> None:
    flow = cluster.install(
        lambda dataflow: dataflow.output("out", dataflow.source("opens", OpensVertex, workers=[0]))
    )
    assert flow.finish(timeout=60) == 3
    assert flow.output("out").changes() == [(0, 0), (1, 1), (2, 4)]


class BeatsVertex(timely.Vertex):
    """Awaits in its beats; a beat that is due meanwhile comes behind."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.running = self.beats = 0
        self.activate()

    async def on_activate(self) -> None:
        self.running += 1
        assert self.running == 1, "one at a time"
        if not self.beats:
            self.activate()
        await asyncio.sleep(0.02)
        self.running -= 1
        self.beats += 1
        self.send_by(0, [self.beats], self.held.time)
        if self.beats == 2:
            self.held.drop()


def test_held_by_the_vertex_itself_are_the_times_of_turns(cluster: timely.Cluster) -> None:
    flow = cluster.install(
        lambda dataflow: dataflow.output("out", dataflow.source("beats", BeatsVertex, workers=[0]))
    )
    flow.finish(timeout=60)
    assert flow.output("out").changes() == [(0, 1), (0, 2)]


# errors_


class FailsVertex(timely.Vertex):
    async def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        await asyncio.sleep(0.01)
        if message == ["exit"]:
            sys.exit("enough")
        raise LookupError("nothing here")


@pytest.mark.parametrize(("record", "text"), [("raise", "LookupError: nothing here"), ("exit", "enough")])
def test_errors_end_the_dataflow_with_the_line_of_the_coroutine(
    cluster: timely.Cluster, record: str, text: str
) -> None:
    flow = installed(cluster, FailsVertex)
    flow.input("rows").insert([record])
    flow.seal()
    with pytest.raises(timely.VertexError, match=text) as caught:
        flow.wait(timeout=60)
    assert f'File "{Path(__file__)}"' in str(caught.value) and "in on_recv" in str(caught.value)
    assert "while 'awaits' (stage 1, worker 0" in str(caught.value)


# ended_


def test_ended_dataflows_cancel_what_awaits() -> None:
    cancelled.clear()
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = installed(cluster, HangsVertex)
        for number in range(2):
            flow.input("rows").insert([number])
            flow.seal()
        with pytest.raises(timely.WaitTimeoutError):
            flow.wait(timeout=0.02)
        flow.uninstall()
        assert cancelled == ["awaits"], "the second call had not begun"
        other = installed(cluster, HangsVertex)
        other.input("rows").insert([1])
        other.seal()
        with pytest.raises(timely.WaitTimeoutError):
            other.wait(timeout=0.02)
    assert cancelled == ["awaits", "awaits"]


def test_ended_is_the_loop_when_no_vertex_has_coroutines_any_more() -> None:
    worker = Worker()
    build = frozen(
        lambda dataflow: dataflow.output("out", dataflow.input("rows").stage("awaits", SlowVertex))
    )
    for _ in range(2):
        worker.install(build)
    assert isinstance(worker.acting.loop, EventLoop) and worker.acting.loop.users == 2
    worker.end(0, timely.UninstalledError("gone"))
    assert worker.acting.loop is not None
    worker.end(1, timely.UninstalledError("gone"))
    assert worker.acting.loop is None


def test_ended_workers_wait_without_looking_again_and_again(cluster: timely.Cluster) -> None:
    class NapsVertex(timely.Vertex):
        async def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            await asyncio.sleep(0.3)

    flow = installed(cluster, NapsVertex)
    used: list[float] = []
    while not used or (used[-1] >= 0.2 and len(used) < 5):  # other threads of this process may be at work
        flow.input("rows").insert([1])
        flow.seal()
        before, began = clock.process_time(), clock.monotonic()
        flow.wait(timeout=60)
        assert clock.monotonic() - began >= 0.29
        used.append(clock.process_time() - before)
    assert used[-1] < 0.2


def test_held_back_are_coroutines_while_their_worker_has_no_credit() -> None:
    SlowVertex.said.clear()
    worker = Worker()
    instance = worker.install(
        frozen(lambda dataflow: dataflow.output("out", dataflow.input("rows").stage("awaits", SlowVertex)))
    )
    instance.input("rows").send([1])
    instance.input("rows").seal()
    while not instance.runners[1].activations:
        worker.step()
    assert not worker.is_at_rest() and SlowVertex.said == []
    worker.acting.gate.has_credit = False
    worker.run_until_idle()
    assert worker.acting.loop_seconds == inf and SlowVertex.said == [], "and the worker may sleep"
    worker.acting.gate.has_credit = True
    assert worker.acting.loop_seconds == 0.0
    worker.run_until_idle()
    assert SlowVertex.said == [("begins", 0)]
    worker.end(0, timely.UninstalledError("gone"))


# refused_


def test_refused_is_a_coroutine_that_nobody_awaits() -> None:
    class EndsVertex(timely.Vertex):
        async def on_end(self, reason: object) -> None:  # type: ignore[override]
            await asyncio.sleep(0)

    class YieldsVertex(timely.Vertex):
        async def on_recv(self, edge, message, time):  # type: ignore[no-untyped-def]
            yield message

    with timely.connect(workers=1, embedded=True) as cluster:
        with pytest.raises(
            timely.MisuseError, match="on_end is async, and nobody awaits it: only on_open, on_"
        ):
            installed(cluster, EndsVertex)
        with pytest.raises(
            timely.MisuseError, match="on_recv has a yield, so that a call of it runs nothing"
        ):
            installed(cluster, YieldsVertex)


def test_refused_is_copying_a_worker_that_awaits() -> None:
    worker = Worker()
    instance = worker.install(
        frozen(lambda dataflow: dataflow.output("out", dataflow.input("rows").stage("awaits", SlowVertex)))
    )
    vertex = instance.runners[1].vertex
    assert vertex is not None and async_callbacks(SlowVertex()) == ["on_recv"]
    with pytest.raises(timely.InternalError, match="has coroutines as callbacks"):
        copy.deepcopy(instance.runners[1].calls)
    worker.end(0, timely.UninstalledError("gone"))
