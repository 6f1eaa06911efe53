"""Vertices written by hand that send, and ask for notifications, at later epochs than they were sent.

same_*   they may go as far ahead on each of several workers as on one, wherever the anchors are
"""

from __future__ import annotations

import pytest

import timely
from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex

EPOCHS = 60
BITS = 4


class AheadVertex(Vertex):
    """Sends records on at a later epoch, some at once and some when that is complete."""

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead
        self._waiting: dict[Timestamp, list[object]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        later = (time[0] + self._ahead,)
        self.send_by(0, message, later)
        self.notify_at(later)
        self._waiting.setdefault(later, []).extend(message)

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, self._waiting.pop(time), time)


@pytest.mark.parametrize("ahead", [1, 4, (1 << (BITS - 1)) - 1])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_same_room_ahead_on_all_workers(workers: int, ahead: int) -> None:
    """All records go to worker 0, which moves its anchor later than those that they come in at."""

    def build(dataflow: Dataflow) -> None:
        dataflow.level_bits = (BITS,)
        records = dataflow.input("records")
        later = records.stage("later", lambda: AheadVertex(ahead), exchange=lambda record: 0)
        dataflow.output("later", later)

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        for epoch in range(EPOCHS):
            flow.input("records").insert([epoch])
            flow.seal()
        found = sorted(flow.output("later").changes())
    assert found == sorted([(epoch + ahead, epoch) for epoch in range(EPOCHS - ahead)] * 2)
