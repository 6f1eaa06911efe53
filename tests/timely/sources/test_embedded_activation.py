"""Vertices of embedded workers that wake by themselves while a call waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

import timely
from timely.client.embedded.workers import EmbeddedWorkers
from timely.operators.activator import Activator
from timely.operators.capability import Capability

bells: list[Activator] = []


class BeatsVertex(timely.Vertex):
    """An epoch with each beat."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.activate(after=0.05)

    def on_activate(self) -> None:
        (epoch,) = self.held.time
        self.send_by(0, [epoch], self.held.time)
        if epoch == 3:
            self.held.drop()
        else:
            self.held.downgrade((epoch + 1,))
            self.activate(after=0.05)


class RungVertex(timely.Vertex):
    """Ends when somebody rings."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        bells.append(self.activator())

    def on_activate(self) -> None:
        self.held.drop()


def beats(dataflow: timely.Dataflow) -> None:
    dataflow.output("beats", dataflow.source("beats", BeatsVertex, workers=[0]))


def rung(dataflow: timely.Dataflow) -> None:
    dataflow.output("rung", dataflow.source("rung", RungVertex))


@pytest.fixture(params=["1", "2 in turn", "2 threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    count, _, way = str(request.param).partition(" ")
    bells.clear()
    with timely.connect(workers=int(count), threads=way == "threads", embedded=True) as cluster:
        yield cluster


def steps_of(flow: timely.Flow) -> int:
    assert isinstance(flow._workers, EmbeddedWorkers)
    return sum(worker.steps for worker in flow._workers._workers)


def test_beats_come_while_a_call_waits_and_nobody_looks_in_between(cluster: timely.Cluster) -> None:
    began = time.monotonic()
    flow = cluster.install(beats)
    before = steps_of(flow)
    assert flow.finish() == 4
    assert time.monotonic() - began > 0.19
    assert steps_of(flow) - before < 200, "and not as many as fit"
    assert flow.output("beats").changes() == [(epoch, epoch) for epoch in range(4)]


def test_a_thread_that_rings_ends_the_wait(cluster: timely.Cluster) -> None:
    flow = cluster.install(rung)
    assert flow.output("rung").complete_before() == 0
    assert len(bells) == flow.workers

    def ring() -> None:
        time.sleep(0.1)
        for bell in bells:
            bell.activate()

    thread = threading.Thread(target=ring)
    thread.start()
    assert flow.finish(timeout=60) == 0
    thread.join()
    for bell in bells:
        bell.activate()


def test_a_wait_that_a_thread_may_end_lasts_as_long_as_its_limit(cluster: timely.Cluster) -> None:
    flow = cluster.install(rung)
    began = time.monotonic()
    with pytest.raises(timely.WaitTimeoutError, match="its sources have not gone past it"):
        flow.wait(0, timeout=0.2)
    assert time.monotonic() - began >= 0.2
