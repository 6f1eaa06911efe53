"""Dataflows with sources, which worker processes import: `"source_flows:heard"`."""

from __future__ import annotations

import threading
import time
from typing import cast

import timely
from timely.operators.capability import Capability

__all__ = [
    "COUNT", "PARTS", "PartsVertex", "RingsVertex", "beside_parts", "heard", "in_parts", "reads_parts",
    "waits_long",
]  # fmt: skip


class RingsVertex(timely.Vertex):
    """A thread of its own rings for each number; an epoch for each. After the last one it beats twice."""

    def __init__(self, numbers: int) -> None:
        self.numbers = numbers
        self.read: list[int] = []
        self.beats = 0

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.bell = self.activator()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        for number in range(self.numbers):
            time.sleep(0.02)
            self.read.append(number)
            self.bell.activate()

    def on_activate(self) -> None:
        while self.read:
            self.go_on([self.read.pop(0)])
        if self.held.time == (self.numbers,):
            self.beats += 1
            if self.beats == 3:
                self.held.drop()
            else:
                self.activate(after=0.03)

    def go_on(self, records: list[int]) -> None:
        self.send_by(0, records, self.held.time)
        self.held.downgrade((self.held.time[0] + 1,))


@timely.builder
def heard(dataflow: timely.Dataflow, numbers: int = 3) -> None:
    """Numbers that a thread of the second worker has heard, summed up on whichever worker."""
    numbered = dataflow.source("rings", lambda: RingsVertex(numbers), workers=[1])
    dataflow.output("heard", numbered.exchange(timely.by()))


class WaitsVertex(timely.Vertex):
    """Has an alarm in an hour."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.activate(after=3600.0)


@timely.builder
def waits_long(dataflow: timely.Dataflow) -> None:
    """Nothing comes."""
    dataflow.output("out", dataflow.source("waits", WaitsVertex))


PARTS = 4
COUNT = 40
"""How many partitions there are to read, and how many records each has."""


class PartsVertex(timely.Vertex):
    """Reads the partitions of its worker: the records of partition p are (p, 0), (p, 1) … A
    position says how many records of each partition have been read, and the epoch of the next one, so that
    records of a partition come in their order. `is_driven`: the test says when to read.
    """

    def __init__(self, is_driven: bool) -> None:
        self.is_driven = is_driven

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.given = list(capability.positions)
        come: dict[int, list[int]] = {}
        for position in capability.positions:
            come.update(cast("dict[int, list[int]]", position))
        parts = [part for part in range(PARTS) if part % self.workers == self.worker]
        self.read = {part: come.get(part, [0, 0])[0] for part in parts}
        epoch = max([come.get(part, [0, 0])[1] for part in parts], default=0)
        self.end_epoch(max(0, epoch - capability.time[0]))
        if not self.is_driven:
            self.activate()

    def position(self, epoch: int) -> dict[int, list[int]]:
        """Where it goes on."""
        return {part: [read, epoch] for part, read in self.read.items()}

    def go(self, part: int, records: int) -> None:
        """Send so many records of a partition."""
        first = self.read[part]
        last = min(first + records, COUNT)
        self.send_by(0, [(part, number) for number in range(first, last)], self.held.time)
        self.read[part] = last

    def end_epoch(self, epochs: int = 1) -> None:
        """Go on to a later epoch."""
        epoch = self.held.time[0] + epochs
        self.held.downgrade((epoch,), position=self.position(epoch))

    def end(self) -> None:
        """Nothing comes any more."""
        self.held.drop(position=self.position(self.held.time[0]))

    def on_activate(self) -> None:
        for part in self.read:
            self.go(part, 1)
        if all(read == COUNT for read in self.read.values()):
            self.end()
            return
        self.end_epoch()
        self.activate(after=0.02)


def _part(record: object) -> int:
    return cast("tuple[int, int]", record)[0]


def _added(total: int, number: object) -> int:
    return total + cast("int", number)


@timely.builder
def in_parts(dataflow: timely.Dataflow) -> None:
    """The partitions, as the test drives them, and sums of each by epoch."""
    source = dataflow.source("parts", lambda: PartsVertex(is_driven=True))
    dataflow.output("read", source.exchange(_part))
    dataflow.output("sums", source.aggregate(_added, 0))


@timely.builder
def beside_parts(dataflow: timely.Dataflow) -> None:
    """The partitions, as the test drives them, beside an input that they do not reach."""
    dataflow.output("read", dataflow.source("parts", lambda: PartsVertex(is_driven=True)))
    dataflow.output("apart", dataflow.input("rows"))


@timely.builder
def reads_parts(dataflow: timely.Dataflow) -> None:
    """The partitions, which go on by themselves, beside an input."""
    source = dataflow.source("parts", lambda: PartsVertex(is_driven=False))
    dataflow.output("read", source.exchange(_part))
    dataflow.output("both", dataflow.input("rows").concat(source))
