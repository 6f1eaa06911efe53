"""Dataflows that do not go on, each in its own way. `line_of` returns the line of something in this file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import differential as dd
import timely
from differential import col
from timely import Loop, Vertex
from timely.building.exchange import RecordRoute

Timestamp = tuple[int, ...]

__all__ = [
    "asks_far_ahead",
    "holds",
    "line_of",
    "long_loop",
    "probed",
    "reads",
    "round_and_round",
    "sleeps",
    "wants_notification",
]


def line_of(text: str) -> str:
    """The place in this file, as errors and reports write it, of the only line that contains `text`."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if text in line and "line_of(" not in line]
    return f"{__file__}:{number}"


def by_value(record: object) -> int:
    """Which worker a number goes to."""
    return cast(int, record)


class Sleeps(Vertex):
    """Takes as long for a record as it says, in hundredths of a second."""

    def on_recv(self, edge: int, message: list[object], time_: Timestamp) -> None:
        for record in message:
            time.sleep(cast(int, record) / 100)  # asleep
        self.send_by(0, message, time_)


class Holds(Vertex):
    """Holds each time at which something comes."""

    def __init__(self) -> None:
        self.held: list[timely.Capability] = []

    def on_recv(self, edge: int, message: list[object], time_: Timestamp) -> None:
        self.held.append(self.hold(time_))  # held here


class Asks(Vertex):
    """Asks to be notified of each time, or so many epochs later."""

    def __init__(self, ahead: int = 0) -> None:
        self.ahead = ahead

    def on_recv(self, edge: int, message: list[object], time_: Timestamp) -> None:
        self.notify_at((time_[0] + self.ahead, *time_[1:]))

    def on_notify(self, time_: Timestamp) -> None:
        self.send_by(0, [time_], time_)


class Spins(Vertex):
    """Sends what it gets round again, without end."""

    def on_recv(self, edge: int, message: list[object], time_: Timestamp) -> None:
        self.send_by(0, message, time_)


def _routed(dataflow: timely.Dataflow) -> timely.Feed:
    return dataflow.input("records").feed(route=RecordRoute(by_value))


@timely.builder
def sleeps(dataflow: timely.Dataflow) -> None:
    """A record n takes its worker, n modulo the number of workers, n hundredths of a second."""
    (done,) = dataflow.stage("slow", Sleeps, [_routed(dataflow)])  # slow is built
    dataflow.output("done", done)


@timely.builder
def holds(dataflow: timely.Dataflow) -> None:
    """Nobody drops what the stage 'holder' holds."""
    (held,) = dataflow.stage("holder", Holds, [_routed(dataflow)])  # holder is built
    dataflow.output("held", held)


@timely.builder
def wants_notification(dataflow: timely.Dataflow) -> None:
    """A notification that waits for what 'holder' holds, before it."""
    (held,) = dataflow.stage("holder", Holds, [_routed(dataflow)])
    (asks,) = dataflow.stage("asks", Asks, [dataflow.input("others").feed(), held.feed()])
    dataflow.output("asked", asks)


@timely.builder
def asks_far_ahead(dataflow: timely.Dataflow) -> None:
    """A notification a million epochs ahead."""
    (asks,) = dataflow.stage("far", lambda: Asks(1_000_000), [_routed(dataflow)])  # far is built
    dataflow.output("asked", asks)


@timely.builder
def round_and_round(dataflow: timely.Dataflow) -> None:
    """Records that go round without end."""
    records = dataflow.input("records")
    with Loop.inside(dataflow, dataflow.root, "endless", iterations_max=2**40) as loop:
        back = loop.feedback()
        feeds = [loop.enter(records).feed(route=RecordRoute(by_value)), back.stream.feed()]
        (again,) = dataflow.stage("spins", Spins, feeds)
        back.connect(again)
        left = loop.leave(again)
    dataflow.output("never", left)


@timely.builder
def long_loop(dataflow: timely.Dataflow) -> None:
    """Goes round as often as the largest n: what is at n comes back at n - 1."""
    rows = dd.input(dataflow, "rows", "n: int")
    rows.iterate(
        lambda x: x.filter(col.n > 0).select(n=col.n - 1).concat(x).distinct(), iterations_max=2**24
    ).output("reached")
    rows.export("rows")


@timely.builder
def reads(dataflow: timely.Dataflow, owner: int) -> None:
    """Reads the rows of `long_loop`."""
    dd.imported(dataflow, owner, "rows", "n: int").output("read")


@timely.builder
def probed(dataflow: timely.Dataflow) -> None:
    """A probe of the input 'words', and an output."""
    records = dataflow.input("words")
    dataflow.probe("words", records)
    dataflow.output("words", records)
