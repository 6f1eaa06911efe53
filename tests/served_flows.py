"""Small dataflows that clients install, end and replace while an explorer goes through all orders."""

from __future__ import annotations

from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex, builder

__all__ = ["BAD", "counts", "numbers", "sums", "to_number"]

BAD = 12
"""From here on no worker can bear a number."""


class PassVertex(Vertex):
    """Sends numbers on, and fails at one that is too large."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        worst = max(map(to_number, message))
        if worst >= BAD:
            raise ValueError(f"worker {self.worker} got {worst}")
        self.send_by(0, message, time)


class SumVertex(Vertex):
    """The sum of each epoch, when it is complete."""

    def __init__(self) -> None:
        self.sums: dict[Timestamp, int] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.notify_at(time)
        self.sums[time] = self.sums.get(time, 0) + sum(map(to_number, message))

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, [self.sums.pop(time)], time)


def to_number(record: object) -> int:
    """The worker of a number."""
    return int(str(record))


@builder
def numbers(dataflow: Dataflow) -> None:
    """Numbers that other dataflows may read."""
    passed = dataflow.input("records").stage("pass", PassVertex, exchange=to_number)
    passed.export("passed", keep=None)
    dataflow.output("numbers", passed)


@builder
def counts(dataflow: Dataflow, owner: int = 0) -> None:
    """Sums of the numbers of another dataflow."""
    dataflow.output("sums", dataflow.imported(owner, "passed").stage("sum", SumVertex, exchange=to_number))


def sums(dataflow: Dataflow) -> None:
    """Sums of numbers of its own."""
    dataflow.output("sums", dataflow.input("records").stage("sum", SumVertex, exchange=to_number))
