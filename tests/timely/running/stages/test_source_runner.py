"""Sources: stages without inputs, whose vertices bring in records by themselves.

epochs_*    they are over when the source says so, on all of its workers
far_*       what is sent at epochs that no word holds yet comes all the same
refused_*   what cannot be a source, or cannot be done with one
"""

from __future__ import annotations

from pathlib import Path

import pytest
from dataflows import frozen, settle

import timely
from progress.times.timestamp import Timestamp
from timely.client.tables import records_of
from timely.operators.capability import Capability
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.orders import open_epoch


class ByHandVertex(timely.Vertex):
    """Leaves its capability to the test."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.began = self.held.time


def running(workers: int, on: list[int] | None = None) -> tuple[list[Worker], list[Instance]]:
    def build(dataflow: timely.Dataflow) -> None:
        dataflow.output("out", dataflow.source("source", ByHandVertex, workers=on))

    network = MemoryNetwork(workers)
    group = [
        Worker(index, workers, network.transport(index) if workers > 1 else None, check_progress=True)
        for index in range(workers)
    ]
    instances = [worker.install(frozen(build)) for worker in group]
    settle(group)
    return group, instances


def vertex_of(instance: Instance) -> ByHandVertex:
    vertex = instance.runners[0].vertex
    assert isinstance(vertex, ByHandVertex)
    return vertex


def complete(instances: list[Instance]) -> list[int]:
    return [instance.output("out").complete_before for instance in instances]


# epochs_


def test_epochs_are_over_when_all_workers_of_the_source_have_gone_past_them() -> None:
    group, instances = running(2)
    one, other = map(vertex_of, instances)
    assert one.began == other.began == (0,)
    one.send_by(0, ["a"], (0,))
    one.held.downgrade((4,))
    settle(group)
    assert complete(instances) == [0, 0]
    assert [open_epoch(each) for each in instances] == [0, 0]
    other.held.downgrade((3,))
    settle(group)
    assert complete(instances) == [3, 3]
    assert [open_epoch(each) for each in instances] == [3, 3]
    for vertex in (one, other):
        assert vertex.held.time != (0,)
        vertex.held.drop()
    settle(group)
    assert all(instance.is_complete() for instance in instances)
    assert max(open_epoch(each) for each in instances) == 4, "it said that epoch 3 is over"
    assert records_of(instances[0].output("out").log.changes(0, 9)) == [(0, "a")]


def test_epochs_depend_only_on_the_workers_that_have_the_source() -> None:
    group, instances = running(3, on=[1])
    assert not hasattr(vertex_of(instances[0]), "held")
    vertex_of(instances[1]).held.downgrade((7,))
    settle(group)
    assert complete(instances) == [7, 7, 7]
    vertex_of(instances[1]).held.drop()
    settle(group)
    assert all(instance.is_complete() for instance in instances)


def test_epochs_go_on_as_long_as_a_second_capability_is_held() -> None:
    group, instances = running(1)
    vertex = vertex_of(instances[0])
    later = vertex.held.delay((2,))
    vertex.held.drop()
    settle(group)
    assert complete(instances) == [2] and instances[0].sources[0].is_open
    later.drop()
    settle(group)
    assert instances[0].is_complete() and not instances[0].sources[0].is_open


class AsksForManyVertex(timely.Vertex):
    """Asks for more notifications than are looked through one by one: nothing comes in, so all are due."""

    def on_open(self, capability: Capability) -> None:
        self.told: list[Timestamp] = []
        for epoch in range(60):
            self.notify_at((epoch,))
        capability.drop()

    def on_notify(self, time: Timestamp) -> None:
        self.told.append(time)


def test_epochs_that_a_source_asks_about_are_complete_at_its_inputs_for_it_has_none() -> None:
    worker = Worker()
    instance = worker.install(
        frozen(lambda dataflow: dataflow.output("out", dataflow.source("asks", AsksForManyVertex)))
    )
    worker.run_until_idle()
    vertex = instance.runners[0].vertex
    assert isinstance(vertex, AsksForManyVertex) and vertex.told == [(epoch,) for epoch in range(60)]
    assert instance.is_complete()


# far_


def test_far_epochs_are_sent_in_the_callback_that_goes_there() -> None:
    group, instances = running(2)
    one, other = map(vertex_of, instances)
    epochs = [0, 10**6, 10**12]
    for epoch in epochs:
        one.held.downgrade((epoch,))
        one.send_by(0, [epoch], one.held.time)
    settle(group)
    assert complete(instances) == [0, 0], "the other one may still send at epoch 0"
    one.send_by(0, ["late"], one.held.time)
    for vertex in (one, other):
        vertex.held.drop()
    settle(group)
    assert all(instance.is_complete() for instance in instances)
    sent = records_of(instances[0].output("out").log.changes(0, 10**13))
    assert sorted(sent, key=str) == sorted([*((epoch, epoch) for epoch in epochs), (10**12, "late")], key=str)


def test_far_epochs_that_are_over_are_refused() -> None:
    _, instances = running(1)
    vertex = vertex_of(instances[0])
    vertex.held.downgrade((10**9,))
    with pytest.raises(
        timely.TimeRegressionError, match=r"sent at \(100000000,\), but it may act only at or after"
    ):
        vertex.send_by(0, ["x"], (10**8,))


# refused_


def build_lost(dataflow: timely.Dataflow) -> None:
    class LosesVertex(timely.Vertex):
        def on_open(self, capability: Capability) -> None:
            del capability

    dataflow.output("out", dataflow.source("loses", LosesVertex))


def test_refused_is_a_capability_that_is_not_kept() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build_lost)
        with pytest.raises(
            timely.MisuseError, match=r"'loses' .* has lost its capability at \(0,\)"
        ) as caught:
            flow.wait(0)
        assert f"{Path(__file__).name}:" in str(caught.value), "the line that declares the source"


def test_refused_are_vertices_that_cannot_begin_and_workers_that_do_not_exist() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        for vertex, workers, message in (
            (timely.Vertex, None, "Vertex has no on_open. Write def on_open"),
            (ByHandVertex, [1], r"is to be on worker 1, and there are 1: workers 0 to 0"),
        ):
            with pytest.raises(timely.MisuseError, match=message):
                cluster.install(
                    lambda dataflow, vertex=vertex, workers=workers: dataflow.output(
                        "out", dataflow.source("source", vertex, workers=workers)
                    )
                )


def build_by_hand(dataflow: timely.Dataflow) -> None:
    dataflow.output("out", dataflow.source("source", ByHandVertex))


def build_of_input(dataflow: timely.Dataflow) -> None:
    dataflow.output("out", dataflow.input("rows"))


def test_refused_is_replacing_what_has_a_source() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build_by_hand)
        with pytest.raises(timely.MisuseError, match=r"cannot be replaced: it has the source 'source' \("):
            cluster.replace(flow, build_by_hand)
        other = cluster.install(build_of_input)
        with pytest.raises(timely.MisuseError, match="the new version has the source 'source'"):
            cluster.replace(other, build_by_hand)
        flow.uninstall()


def test_refused_is_sealing_where_only_sources_say_what_is_over() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build_by_hand)
        with pytest.raises(
            timely.MisuseError, match="no inputs of its own: its epochs come from its sources"
        ):
            flow.seal()
        with pytest.raises(timely.WaitTimeoutError) as caught:
            flow.wait(0, timeout=1)
        assert "its sources have not gone past it (the open epoch is 0)" in str(caught.value)
        assert "outstanding: 'source' (stage 0) at (0,), which it holds" in str(caught.value)


# held back: the gate of the worker


class CountsVertex(timely.Vertex):
    """Sends a number in each turn, and asks for another one."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.next = 0
        self.on_resume()

    def on_resume(self) -> None:
        self.send_by(0, [self.next], self.held.time)
        self.next += 1
        if self.next == 6:
            self.held.drop()
        else:
            self.resume()


def test_held_back_while_the_gate_is_closed_a_source_has_no_turn_and_loses_none() -> None:
    worker = Worker()
    instance = worker.install(frozen(lambda flow: flow.output("out", flow.source("source", CountsVertex))))
    vertex, gate = instance.runners[0].vertex, worker.acting.gate
    assert isinstance(vertex, CountsVertex)
    while not hasattr(vertex, "next") or vertex.next < 2:
        worker.step()
    gate.set_open(False)
    worker.run_until_idle()
    assert vertex.next == 2 and not worker.is_at_rest()
    gate.set_open(True)
    worker.run_until_idle()
    assert [number for _, number in records_of(instance.output("out").log.changes(0, 1))] == [*range(6)]
