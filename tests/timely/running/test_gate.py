"""The gate: stages that have found it closed have a turn when it opens."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from timely import Dataflow, Vertex
from timely.client.tables import records_of
from timely.running.core import Worker
from timely.running.gate import Gate
from timely.running.instance import Instance
from timely.running.stages.vertex_runner import VertexRunner
from timely.wire.batch import Batch, Records


class Stage:
    """In the place of a stage: counts its turns."""

    def __init__(self) -> None:
        self.turns = 0

    def wake(self) -> None:
        self.turns += 1


def test_a_stage_that_waits_twice_has_one_turn() -> None:
    gate = Gate()
    one, other = Stage(), Stage()
    gate.set_open(False)
    for stage in (one, other, one):
        gate.wait(stage)
    gate.set_open(False)
    assert (one.turns, other.turns) == (0, 0)
    gate.set_open(True)
    assert (one.turns, other.turns) == (1, 1) and gate.waiting == []
    gate.set_open(True)
    assert (one.turns, other.turns) == (1, 1)


class PassesVertex(Vertex):
    """Sends on what it gets."""

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, batch in messages:
            self.send(0, batch, word)


def passes(dataflow: Dataflow) -> None:
    dataflow.output("out", dataflow.input("in").stage("passes", PassesVertex))


def begun() -> tuple[Worker, Instance]:
    dataflow = Dataflow("gated")
    passes(dataflow)
    worker = Worker()
    return worker, worker.install(dataflow.freeze())


def seen(instance: Instance) -> list[tuple[int, object]]:
    return records_of(instance.output("out").log.changes(0, 9))


def test_sealed_rows_wait_at_their_input_and_the_worker_does_not_rest() -> None:
    worker, instance = begun()
    gate = worker.acting.gate
    gate.set_open(False)
    handle = instance.input("in")
    for number in range(2):
        handle.send([number])
        handle.seal()
    worker.run_until_idle()
    assert seen(instance) == [] and not worker.has_work() and not worker.is_at_rest()
    gate.set_open(True)
    assert worker.has_work()
    worker.run_until_idle()
    assert seen(instance) == [(0, 0), (1, 1)] and worker.is_at_rest()


def test_it_may_close_between_two_epochs_of_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, instance = begun()
    gate, let_in = worker.acting.gate, VertexRunner.let_in

    def close_behind(self: VertexRunner, batch: Batch, word: int) -> None:
        let_in(self, batch, word)
        gate.set_open(False)

    monkeypatch.setattr(VertexRunner, "let_in", close_behind)
    handle = instance.input("in")
    for number in range(3):
        handle.append(number, Records([number]))
    handle.seal(2)
    come = []
    for _ in range(3):
        worker.run_until_idle()
        come.append(len(seen(instance)))
        gate.set_open(True)
    worker.run_until_idle()
    assert handle.held_epoch == 3 and come[-1] <= 3 and len(seen(instance)) == 3


def test_without_credit_no_vertex_runs() -> None:
    worker, instance = begun()
    handle = instance.input("in")
    handle.send([7])
    handle.seal()
    worker.acting.gate.has_credit = False
    assert not worker.step() and instance.turns.run(9) == 0 and not worker.is_at_rest()
    assert worker.enabled() == []
    worker.acting.gate.has_credit = True
    worker.run_until_idle()
    assert seen(instance) == [(0, 7)]
