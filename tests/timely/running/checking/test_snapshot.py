"""What is outstanding, by looking: in inboxes, where rights are kept, on wires."""

from __future__ import annotations

from dataflows import frozen, settle, word_count

from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex
from timely.running.checking.monitor import under_way, untold
from timely.running.checking.snapshot import counted, first_epochs, owned, view
from timely.running.core import Worker
from timely.wire.transport.memory import MemoryNetwork


class HoldsVertex(Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.hold_word(self.code.pack(time))
        self.hold_word(self.code.pack(time))
        self.notify_at(time)


def test_at_first_everybody_owns_the_first_epoch_of_each_input() -> None:
    instance = Worker().install(frozen(word_count))
    assert first_epochs(instance.frozen, 0) == [(0, 0)]
    assert owned(instance) == {(0, 0): 1} == view(instance)
    assert untold(instance) == {}
    instance.input("lines").close()
    assert owned(instance) == {(0, 0): 1} and untold(instance) == {}, "nothing has entered yet"
    instance.turns.run(1)
    assert owned(instance) == {} and untold(instance) == {(0, 0): -1}


def test_messages_that_wait_and_rights_that_are_kept_are_owned() -> None:
    dataflow = Dataflow()
    dataflow.stage("holds", HoldsVertex, [dataflow.input("numbers").feed()])
    instance = Worker().install(dataflow.freeze())
    unit = instance.runners[0].code.unit
    instance.input("numbers").send([1])
    instance.input("numbers").seal()
    instance.turns.run(1)
    assert owned(instance) == {(0, unit): 1, (2, 0): 1}, "an epoch open, a message on the connector"
    assert untold(instance) == {(0, unit): 1, (0, 0): -1, (2, 0): 1}
    instance.turns.run(1)
    assert owned(instance) == {(0, unit): 1, (1, 0): 3}, "two holds, and a notification asked for"
    assert untold(instance) == {(0, unit): 1, (0, 0): -1, (1, 0): 3}


def test_wires_show_payloads_and_messages_of_one_dataflow_and_nothing_is_taken() -> None:
    network = MemoryNetwork(2)
    group = [Worker(index, 2, network.transport(index)) for index in range(2)]
    for worker in group:
        worker.install(frozen(word_count))
        worker.install(frozen(word_count))
    instance = group[0].instance(1)
    instance.input("lines").send(["a b c d e f g"])
    instance.input("lines").seal()
    group[0].step()
    wire = network.waiting(0, 1)
    payloads, data = under_way(wire, 0, 1, instance.frozen)
    assert under_way(wire, 0, 0, instance.frozen) == ([], [])
    stages = len(instance.frozen.stages)
    assert len(payloads) == 1 and counted(data) == {(stages + 1, 0): 1}
    assert payloads[0].items() >= {(0, 0): -1, (stages + 1, 0): 1}.items()
    assert network.in_flight() == len(wire) == 2
    settle(group)
    assert network.waiting(0, 1) == []
