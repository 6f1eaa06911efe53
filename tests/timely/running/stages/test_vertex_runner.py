"""The place of a vertex: what is delivered together, and what has become due.

due_*      which notifications are delivered, in which order
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

import pytest
from acting import Acts, acting, seal

from progress.times.timestamp import Timestamp
from timely import Batch, Dataflow, Records, Vertex
from timely.running.core import Worker
from timely.running.stages.vertex_runner import VertexRunner

RECORDS = Records(["x"])


class Keeps(Vertex):
    word_times: ClassVar[bool] = True

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[int]]] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        self.calls.append((port, [word for word, _ in messages]))
        for word, _ in messages:
            self.hold_word(word)


def running() -> tuple[Worker, VertexRunner, Keeps]:
    vertex = Keeps()
    dataflow = Dataflow()
    one, two = dataflow.input("one"), dataflow.input("two")
    dataflow.stage("keeps", lambda: vertex, [one.feed(0), two.feed(1)])
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    for name in ("two", "one", "two"):
        instance.input(name).send([name])
        instance.input(name).seal()
    worker.run_until_idle()
    return worker, instance.runners[2], vertex


def test_messages_are_delivered_once_per_port_and_activation_in_their_order() -> None:
    _, runner, vertex = running()
    code = runner.code
    assert vertex.calls == [(0, [code.pack((0,))]), (1, [code.pack((0,)), code.pack((1,))])]


def test_due_a_time_that_is_complete_already_is_notified_when_asked_for_in_on_notify() -> None:
    def ask_later(vertex: Acts, time: Timestamp) -> None:
        if time == (0,):
            vertex.notify_at((3,))
            vertex.notify_at((9,))

    vertex = Acts(lambda vertex, time: vertex.notify_at(time), ask_later)
    worker, instance, runner = acting(vertex)
    instance.input("numbers").send(["x"])
    seal(worker, instance, 5)
    assert vertex.notified == [(0,), (3,)]
    assert runner.requested == {runner.code.pack((9,))} and not runner.due
    seal(worker, instance, 9)
    assert vertex.notified == [(0,), (3,), (9,)] and instance.tracker.active_count == 2


def test_due_waits_for_the_slowest_input() -> None:
    vertex = Acts(lambda vertex, time: vertex.notify_at(time))
    worker, instance, _ = acting(vertex)
    instance.input("numbers").send(["x"])
    instance.input("numbers").seal(5)
    worker.run_until_idle()
    assert vertex.notified == []
    instance.input("others").seal(0)
    worker.run_until_idle()
    assert vertex.notified == [(0,)]


@pytest.mark.parametrize("count", [5, 300], ids=["few", "many"])
def test_due_times_are_notified_in_order_and_once_in_one_activation(count: int, seed: int) -> None:
    """Asked for in any order, and twice; those that are not complete wait on."""
    rng = random.Random(f"{seed} {count}")

    def ask_ahead(vertex: Acts, time: Timestamp) -> None:
        epochs = list(range(count)) * 2
        rng.shuffle(epochs)
        for epoch in epochs:
            vertex.notify_at((epoch,))

    vertex = Acts(ask_ahead)
    worker, instance, runner = acting(vertex)
    instance.input("numbers").send(["x"])
    seal(worker, instance, 0)
    assert vertex.notified == [(0,)]
    before = runner.activations
    seal(worker, instance, count // 2)
    assert vertex.notified == [(epoch,) for epoch in range(count // 2 + 1)]
    assert runner.activations == before + 1
    assert len(runner.requested) == count - 1 - count // 2
    for epoch in range(count):
        seal(worker, instance, epoch)
    assert vertex.notified == [(epoch,) for epoch in range(count)]
    assert not runner.requested and instance.tracker.active_count == 2


@pytest.mark.parametrize("count", [3, 120], ids=["few", "many"])
def test_due_in_a_loop_is_what_no_time_of_the_frontier_is_before(count: int, seed: int) -> None:
    """A vertex that holds times of two chains: what it waits for is due when nothing can lead to it."""
    rng = random.Random(f"{seed} {count}")

    def act(vertex: Acts, time: Timestamp) -> None:
        asked = [(rng.randint(0, 9), rng.randint(0, 40)) for _ in range(count)]
        for each in asked:
            vertex.notify_at(each)
        expected.update(asked)

    expected: set[Timestamp] = set()
    vertex = Acts(act)
    dataflow = Dataflow()
    with dataflow.loop("loop") as loop:
        back = loop.feedback()
        feeds = [loop.enter(dataflow.input("numbers")).feed(), back.stream.feed()]
        (out,) = dataflow.stage("acts", lambda: vertex, feeds)
        back.connect(out)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    runner = next(runner for runner in instance.runners if runner.vertex is vertex)
    instance.input("numbers").send(["x"])
    for epoch in range(11):
        instance.input("numbers").seal()
        worker.run_until_idle()
        left = {time for time in expected if time[0] > epoch}
        assert set(vertex.notified) == expected - left and len(vertex.notified) == len(expected - left)
        assert runner.requested == {runner.code.pack(time) for time in left}
