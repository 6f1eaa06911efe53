"""All orders in which two workers can act on epochs of two bits, whose anchors move on each when it may.

explored_*   every state is as it must be, and every end is the right one
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex
from timely.client.tables import records_of
from timely.running.checking.explorer import Explorer
from timely.running.checking.reached import Client, Explorable
from timely.running.instance import Instance

Said = Counter[tuple[int, object]]


def number_of(record: object) -> int:
    assert isinstance(record, int)
    return record


class PassVertex(Vertex):
    """Passes numbers on when their time is complete."""

    def __init__(self) -> None:
        self.waiting: dict[Timestamp, list[object]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.notify_at(time)
        self.waiting[time] = sorted([*self.waiting.get(time, []), *message], key=number_of)

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, self.waiting.pop(time), time)


def passed_on(dataflow: Dataflow) -> None:
    """Numbers go to the worker that they say."""
    dataflow.level_bits = (2,)
    passed = dataflow.input("records").stage("pass on", PassVertex, exchange=number_of)
    dataflow.output("passed", passed)


def said_in(instances: Sequence[Instance]) -> Said:
    found: Said = Counter()
    for instance in instances:
        found.update(records_of(instance.output("passed").log.changes(0, 9)))
        assert instance.anchor.epoch > 0, "it has moved"
    return found


def passing(*clients: Sequence[Sequence[int]]) -> Explorable:
    """Each client sends some numbers epoch by epoch."""
    acts = [
        [Client(tuple(numbers), is_last=epoch == len(client) - 1) for epoch, numbers in enumerate(client)]
        for client in clients
    ]
    wanted = Counter(
        (epoch, n) for client in clients for epoch, numbers in enumerate(client) for n in numbers
    )
    return Explorable(passed_on, acts, said_in, wanted)


@pytest.mark.timeout(600)
def test_explored_anchors_of_two_workers_that_step_and_are_stopped_anywhere(effort: int) -> None:
    """Some 12,000 states; with numbers both ways several times as many."""
    few, more = passing([[], [], [], [1]], [[], [], [], []]), passing([[0], [], [], [1]], [[], [1], [], []])
    explored = Explorer(few if effort == 1 else more, orderly=True).run()
    assert explored.states > 10_000 and explored.ends >= 1, explored
