"""Turns without records: at a moment, or because a thread asks for one.

turns_*    they come, once for each that is asked for, and the vertex may act at what it holds
threads_*  any thread may ring, at any time
refused_*  what is no moment, and what has no callback
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf

import pytest
from dataflows import frozen

import timely
from timely.client.tables import records_of
from timely.operators.activator import Activator
from timely.operators.capability import Capability
from timely.running.checking.actions import Ring
from timely.running.core import Worker
from timely.running.instance import Instance


class CountsTurnsVertex(timely.Vertex):
    """Sends the number of each turn at the time that it holds."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.bell = self.activator()
        self.turns = 0

    def on_activate(self) -> None:
        self.turns += 1
        self.send_by(0, [self.turns], self.held.time)


def running() -> tuple[Worker, Instance, CountsTurnsVertex]:
    worker = Worker()
    instance = worker.install(
        frozen(lambda dataflow: dataflow.output("out", dataflow.source("turns", CountsTurnsVertex)))
    )
    worker.run_until_idle()
    vertex = instance.runners[0].vertex
    assert isinstance(vertex, CountsTurnsVertex)
    return worker, instance, vertex


# turns_


def test_turns_come_when_they_are_due_and_not_before() -> None:
    worker, instance, vertex = running()
    vertex.activate(after=1_000)
    worker.run_until_idle()
    assert vertex.turns == 0 and instance.is_at_rest() and not worker.step()
    assert worker.enabled() == [Ring(0, 0)], "though where all orders are tried it may come"
    vertex.activate(after=0.01)
    began = time.monotonic()
    while not vertex.turns:
        worker.step()
    assert time.monotonic() >= began + 0.009
    vertex.activate(at=time.monotonic() - 1)
    vertex.activate(at=time.monotonic() - 2)
    assert not instance.is_at_rest()
    worker.run_until_idle()
    assert vertex.turns == 2, "two that are due together are one"
    vertex.held.drop()
    worker.run_until_idle()
    assert records_of(instance.output("out").log.changes(0, 1)) == [(0, 1), (0, 2)]


def test_turns_at_once_come_after_others_and_may_be_asked_for_again() -> None:
    worker, _, vertex = running()
    for _ in range(3):
        vertex.activate()
        assert vertex.turns == 0 or worker.step()
        worker.run_until_idle()
    assert vertex.turns == 3


# threads_


def in_thread(call: Callable[[], None]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_threads_that_ring_before_the_worker_has_got_to_it_are_one_turn() -> None:
    worker, instance, vertex = running()
    woken: list[int] = []
    worker.acting.on_wake = lambda: woken.append(1)
    for _ in range(5):
        in_thread(vertex.bell.activate)
    assert woken == [1] and not instance.is_at_rest()
    worker.run_until_idle()
    assert vertex.turns == 1
    in_thread(vertex.bell.activate)
    worker.run_until_idle()
    assert vertex.turns == 2 and woken == [1, 1]


def test_threads_may_ring_when_the_dataflow_has_ended() -> None:
    worker, _, vertex = running()
    worker.end(0, timely.UninstalledError("gone"))
    for _ in range(2):
        vertex.bell.activate()
    vertex.activate()
    assert not worker.step() and vertex.turns == 0


def test_threads_other_than_the_workers_ask_by_an_activator_only() -> None:
    _, _, vertex = running()
    errors: list[timely.MisuseError] = []

    def ask() -> None:
        try:
            vertex.activate()
        except timely.MisuseError as error:
            errors.append(error)

    in_thread(ask)
    assert "asked to be activated in the thread" in str(errors[0]) and "activator" in str(errors[0])


# refused_


@pytest.mark.parametrize("seconds", ["soon", None, True, inf, float("nan")])
def test_refused_is_what_is_no_number_of_seconds(seconds: object) -> None:
    _, _, vertex = running()
    with pytest.raises(timely.MisuseError, match=r"activate\(after=…\) takes seconds"):
        vertex.activate(seconds)  # type: ignore[arg-type]
    if seconds is not None:
        with pytest.raises(timely.MisuseError, match=r"activate\(at=…\) takes seconds"):
            vertex.activate(at=seconds)  # type: ignore[arg-type]


def test_refused_is_a_turn_without_a_callback() -> None:
    class NoCallbackVertex(timely.Vertex):
        def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
            self.activate()

    def build(dataflow: timely.Dataflow) -> None:
        dataflow.output("out", dataflow.input("rows").stage("none", NoCallbackVertex))

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert([1])
        flow.seal()
        with pytest.raises(timely.MisuseError, match=r"asked to be activated, but its class defines no on_"):
            flow.wait()


def test_an_activator_says_for_which_stage_it_rings() -> None:
    _, _, vertex = running()
    assert isinstance(vertex.bell, Activator) and repr(vertex.bell) == "Activator(stage 0)"
