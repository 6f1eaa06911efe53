"""How long a worker process may sleep when its vertices have set alarms."""

from __future__ import annotations

import asyncio
import select
import time

import pytest
from dataflows import frozen

import timely
from timely.operators.awaiting.event_loop import EventLoop
from timely.operators.capability import Capability
from timely.running.core import Worker
from timely.worker.tasks import alarm_clock
from timely.worker.tasks.alarm_clock import AlarmClock


class WaitsVertex(timely.Vertex):
    def on_open(self, capability: Capability) -> None:
        self.held = capability

    def on_activate(self) -> None:
        self.held.drop()


class Watched(list[int]):
    """The descriptors that end the sleep."""

    def watch(self, *sources: int) -> None:
        self.extend(sources)

    def unwatch(self, *sources: int) -> None:
        for each in sources:
            self.remove(each)


def running() -> tuple[Worker, WaitsVertex, AlarmClock, Watched, list[str]]:
    worker = Worker()
    instance = worker.install(
        frozen(lambda dataflow: dataflow.output("out", dataflow.source("waits", WaitsVertex)))
    )
    worker.run_until_idle()
    watched, woken = Watched(), list[str]()
    clock = AlarmClock(worker, lambda: woken.append("woken"), watched)
    vertex = instance.runners[0].vertex
    assert isinstance(vertex, WaitsVertex)
    return worker, vertex, clock, watched, woken


def test_it_sleeps_as_long_as_it_would_if_no_alarm_comes_before() -> None:
    _, vertex, clock, watched, _ = running()
    assert clock.within(2.5) == 2.5
    vertex.activate(after=1_000)
    assert clock.within(2.5) == 2.5 and not watched, "and sets no timer"
    clock.close()


def test_a_timer_wakes_it_at_the_moment_and_is_readable_once() -> None:
    worker, vertex, clock, watched, _ = running()
    began = time.monotonic()
    vertex.activate(at=began + 0.0213)
    assert 0 < clock.within(1.0) <= 0.0213
    (timer,) = watched
    assert select.select([timer], [], [], 10)[0] and time.monotonic() >= began + 0.0213
    assert clock.within(1.0) == 0.0, "the alarm is due"
    assert not select.select([timer], [], [], 0)[0]
    worker.run_until_idle()
    assert not vertex.held.is_held and clock.within(1.0) == 1.0
    for _ in range(2):
        clock.close()


def test_threads_that_ring_wake_it() -> None:
    _, vertex, clock, _, woken = running()
    vertex.activator().activate()
    assert woken == ["woken"] and clock.within(1.0) == 0.0


def test_where_the_system_has_no_timers_it_sleeps_until_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    _, vertex, clock, watched, _ = running()
    monkeypatch.setattr(alarm_clock.ctypes, "CDLL", lambda name: object())
    vertex.activate(after=0.5)
    assert 0 < clock.within(1.0) <= 0.5 and not watched


def test_an_event_loop_ends_the_sleep_as_long_as_there_is_one() -> None:
    worker, _, clock, watched, _ = running()
    for seconds in (0.5, 0.25):
        loop = worker.acting.loop = EventLoop()
        assert clock.within(2.5) == 2.5 and watched == [loop.descriptor]

        async def nap(seconds: float = seconds) -> None:
            await asyncio.sleep(seconds)

        loop.start(nap())
        assert clock.within(2.5) == 0.0
        loop.run()
        assert 0 < clock.within(2.5) <= seconds
        loop.close()
        watched[1:] = []
    worker.acting.loop = None
    assert clock.within(2.5) == 2.5 and watched == []
    clock.close()
