"""Constants: rows that are there from the first epoch on.

enters_*   once, on one worker, at the first epoch of the dataflow
over_*     it is complete at once, and holds nothing up
"""

from __future__ import annotations

import pytest

import timely
from progress.times.timestamp import Timestamp
from timely.running.checking.monitor import Monitor
from timely.running.checking.snapshot import first_epochs, owned
from timely.running.core import Worker
from timely.wire.batch import Records
from timely.wire.transport.memory import MemoryNetwork


class Seven:
    def batch(self, word: int) -> Records:
        return Records([(7, word)])

    def describe(self) -> str:
        return "seven"


class NoteVertex(timely.Vertex):
    def __init__(self) -> None:
        self.noted: list[object] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.noted += [(record, time) for record in message]
        self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        self.noted.append(("over", time))


def built(workers: int, seed: int | None = None) -> list[Worker]:
    network = MemoryNetwork(workers, seed)
    group = [Worker(index, workers, network.transport(index)) for index in range(workers)]
    Monitor(group, network)
    for worker in group:
        flow = timely.Dataflow("constant")
        here, there = flow.input("numbers"), flow.constant("seven", Seven())
        (noted,) = flow.stage("note", NoteVertex, [there.feed()])
        flow.output("both", noted)
        flow.stage("of inputs", NoteVertex, [here.feed()])
        worker.install(flow.freeze())
    return group


def settle(group: list[Worker]) -> None:
    for _ in range(50):
        for worker in group:
            worker.step()


def noted(group: list[Worker]) -> list[object]:
    vertices = [runner.vertex for one in group for runner in one.instance(0).runners]
    return [each for vertex in vertices if isinstance(vertex, NoteVertex) for each in vertex.noted]


@pytest.mark.parametrize(("workers", "seed"), [(1, None), (2, 1), (3, 2)])
def test_enters_once_whether_or_not_anything_else_comes_in(workers: int, seed: int | None) -> None:
    group = built(workers, seed)
    assert len(first_epochs(group[0].instance(0).frozen, 0)) == 2
    assert sum(owned(group[0].instance(0)).values()) == 2, "an epoch of the input, and one of the constant"
    settle(group)
    assert noted(group) == [((7, 0), (0,)), ("over", (0,))]
    assert sum(owned(group[0].instance(0)).values()) == 1
    for worker in group:
        worker.instance(0).input("numbers").close()
    settle(group)
    assert all(worker.instance(0).is_complete() for worker in group)


def test_over_nothing_enters_twice() -> None:
    (worker,) = built(1)
    settle([worker])
    (constant,) = worker.instance(0).constants
    assert constant.held_epoch is None
    constant.let_rows_in()
    settle([worker])
    assert noted([worker]) == [((7, 0), (0,)), ("over", (0,))]


def test_enters_it_is_part_of_what_workers_compare() -> None:
    prints = []
    for text in ("seven", "eight"):
        flow = timely.Dataflow("constant")
        codec = Seven()
        codec.describe = lambda text=text: text  # type: ignore[misc, method-assign]  # another constant
        flow.output("out", flow.constant("seven", codec))
        prints.append(flow.freeze().fingerprint)
    assert prints[0] != prints[1]
