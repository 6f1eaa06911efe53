"""Guards around a turn: records that change, attributes of classes, and nothing else."""

from __future__ import annotations

import pytest
from wrong_vertices import Changes, Shares, SumVertex, summed

from progress.checking.counterexample import Counterexample
from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex
from timely.running.core import Worker
from timely.testing import VertexHarness, send
from timely.testing.guards import guarded, state_of


def test_right_vertices_pass_and_wrong_ones_do_not() -> None:
    for make, is_right in [(SumVertex, True), (Changes, False), (Shares, False)]:
        vertex = VertexHarness(make)
        if is_right:
            vertex.recv([("a", 1)], (0,))
            vertex.finish()
            continue
        with pytest.raises(Counterexample):
            vertex.recv([{"n": 1}] if make is Changes else [("a", 1)], (0,))
            vertex.finish()


class Resends(Vertex):
    """Sends its one list, and keeps it."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.all = list(message)
        self.send_by(0, [self.all], time)


def test_what_was_sent_and_waits_must_not_change() -> None:
    flow = Dataflow()
    summed(Resends, exchanges=False)(flow)
    worker = Worker()
    instance = worker.install(flow.freeze())
    send([1]).act(instance)
    instance.input("pairs").seal()
    runner = next(each for each in instance.runners if each.name == "sum")
    while not hasattr(runner.vertex, "all"):
        worker.perform(worker.enabled()[0])
    assert isinstance(runner.vertex, Resends)
    says = "changes records that were sent and wait for 'output sums'"
    with pytest.raises(Counterexample, match=says), guarded(instance, runner.stage):
        runner.vertex.all.append("too late")


def test_the_state_of_a_vertex_is_a_value() -> None:
    first, second = VertexHarness(SumVertex), VertexHarness(SumVertex)
    second.vertex.on_notify = first.vertex.on_notify  # type: ignore[method-assign]
    assert state_of(first.vertex) == state_of(second.vertex)
    first.recv([("a", 1)], (0,))
    assert state_of(first.vertex) != state_of(second.vertex)
