"""The place of a vertex: its rights, counted holds, and what is delivered together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest

from progress.timestamp import Timestamp
from timely import Batch, Dataflow, TimeRegressionError, Vertex
from timely.worker.core import Worker
from timely.worker.host import Host


class Keeps(Vertex):
    word_times: ClassVar[bool] = True

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[int]]] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        self.calls.append((port, [word for word, _ in messages]))
        for word, _ in messages:
            self.hold(word)


def running() -> tuple[Worker, Host, Keeps]:
    vertex = Keeps()
    flow = Dataflow()
    one, two = flow.input("one"), flow.input("two")
    flow.stage("keeps", lambda: vertex, [one.feed(0), two.feed(1)])
    worker = Worker()
    instance = worker.install(flow.freeze())
    for name in ("two", "one", "two"):
        instance.input(name).send([name])
        instance.input(name).seal()
    worker.run_until_idle()
    return worker, instance.hosts[2], vertex


def test_messages_are_delivered_once_per_port_and_activation_in_their_order() -> None:
    _, host, vertex = running()
    code = host.code
    assert vertex.calls == [(0, [code.pack((0,))]), (1, [code.pack((0,)), code.pack((1,))])]


def test_holds_are_counted_and_keep_the_right_to_later_times() -> None:
    _, host, _ = running()
    zero, one, five = (host.code.pack((epoch,)) for epoch in (0, 1, 5))
    assert host.held_words() == {zero: 2, one: 1}
    host.hold(five)
    host.release(zero)
    host.release(zero)
    assert host.held_words() == {one: 1, five: 1}
    with pytest.raises(TimeRegressionError, match=r"may act only at or after \(1,\) or \(5,\)"):
        host.hold(zero)
    host.release(one)
    host.release(five)
    with pytest.raises(TimeRegressionError, match="no time at all"):
        host.hold(five)


def test_a_place_is_called_by_stage_and_worker() -> None:
    _, host, vertex = running()
    assert host.title() == repr(vertex) == "'keeps' (stage 2, worker 0 of 1)"
    assert (vertex.name, vertex.worker, vertex.workers) == ("keeps", 0, 1)


def test_only_the_last_events_are_kept() -> None:
    class Busy(Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            pass

    flow = Dataflow()
    flow.input("numbers").stage("busy", Busy)
    worker = Worker()
    instance = worker.install(flow.freeze())
    for _ in range(50):
        instance.input("numbers").send(["x"])
        instance.input("numbers").seal()
    worker.run_until_idle()
    assert len(instance.hosts[1].events) < 10
