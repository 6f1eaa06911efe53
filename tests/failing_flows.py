"""Dataflows that go wrong in one way each, for tests to install by name: `"failing_flows:divides"`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

import differential as dd
import timely
from differential import col, count
from progress.times.timestamp import Timestamp
from timely.building.loop import Loop

__all__ = [
    "clears_and_keeps",
    "differs_from_the_second_on",
    "divides",
    "fails_from_the_second_on",
    "forgets_when_closed",
    "leaps",
    "not_marked",
    "passes",
    "raises",
    "spins",
]


class Odd(BaseException):
    """None of those that programs usually catch."""


def raise_what(name: str) -> NoReturn:
    """Raise what `name` stands for."""
    if name == "exit":
        sys.exit(3)
    if name == "interrupt":
        raise KeyboardInterrupt
    if name == "lost":
        raise timely.PeerError("another cluster is gone")
    if name == "odd":
        raise Odd("none of the usual")
    raise ValueError(f"cannot bear {name!r}")


def not_marked(dataflow: timely.Dataflow) -> None:
    """A function like a builder, but nobody said that it is one."""
    os._exit(19)


@timely.builder
def divides(dataflow: timely.Dataflow, strict: bool = False) -> None:
    """Fails directly behind the input, for rows with x = 0."""
    rows = dd.input(dataflow, "rows", "id: int, x: int")
    rows.select(id=col.id, y=100 // col.x).output("quotients", strict=strict)
    rows.group_by("id").agg(n=count()).output("counts")


@timely.builder
def passes(dataflow: timely.Dataflow) -> None:
    """Rows as they are, and records as they are."""
    dd.input(dataflow, "rows", "insertion: int, n: int").output("rows")
    dataflow.output("records", dataflow.input("records"))


@timely.builder
def forgets_when_closed(dataflow: timely.Dataflow) -> None:
    """A join whose traces are of no use when no row can come any more."""
    left = dd.input(dataflow, "left", "k: int, a: int")
    right = dd.input(dataflow, "right", "k: int, b: int")
    left.join(right, on="k").output("both")


class Clears(timely.Vertex):
    """Takes its message for its own, as it may."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        count_of = len(message)
        message.clear()
        self.send_by(0, [count_of], time)


class Keeps(timely.Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


@timely.builder
def clears_and_keeps(dataflow: timely.Dataflow) -> None:
    """One stream, three consumers; the first and the last empty the list that they are handed."""
    records = dataflow.input("records")
    first, kept = records.stage("clears", Clears), records.stage("keeps", Keeps)
    dataflow.output("cleared", first)
    dataflow.output("kept", kept)
    dataflow.output("cleared again", kept.stage("clears again", Clears))


class Raises(timely.Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        for record in message:
            if isinstance(record, str):
                raise_what(record)
        self.send_by(0, message, time)


@timely.builder
def raises(dataflow: timely.Dataflow, while_building: str = "", in_the_constructor: str = "") -> None:
    """Raises what a record, or an argument, names."""
    if while_building:
        raise_what(while_building)

    def made() -> Raises:
        if in_the_constructor:
            raise_what(in_the_constructor)
        return Raises()

    dataflow.output("records", dataflow.input("records").stage("raises", made))


def _is_second(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return False


@timely.builder
def fails_from_the_second_on(dataflow: timely.Dataflow, path: str) -> None:
    """Builds on the first worker that comes, and on no other."""
    dataflow.input("records").stage("keeps", Keeps)
    if _is_second(path):
        raise ValueError("the second may not")


@timely.builder
def differs_from_the_second_on(dataflow: timely.Dataflow, path: str) -> None:
    """The workers run different lambdas of one line."""
    adds: list[Callable[[int], int]] = [lambda n: n + 1, lambda n: n + 2]
    add = adds[_is_second(path)]
    dd.input(dataflow, "rows", "n: int").map(lambda n: add(n), "m: int").output("sums")


class Spins(timely.Vertex):
    """Sends its records round and round."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)
        self.send_by(1, message[:1], time)


@timely.builder
def spins(dataflow: timely.Dataflow) -> None:
    """A record loop that never waits, an output behind it, and one that has nothing to do with it."""
    records = dataflow.input("records")
    with Loop.inside(dataflow, dataflow.root, "round", iterations_max=2**40) as loop:
        back = loop.feedback()
        again, out = dataflow.stage(
            "spins", Spins, [loop.enter(records).feed(), back.stream.feed()], outputs=2
        )
        back.connect(again)
        left = loop.leave(out)
    dataflow.output("behind", left.stage("keeps", Keeps))
    dataflow.output("beside", dataflow.input("others").stage("keeps beside", Keeps))


@timely.builder
def leaps(dataflow: timely.Dataflow, iterations_max: int) -> None:
    """Goes round as often as the largest n: what is at n comes back at n - 1."""
    dd.input(dataflow, "rows", "n: int").iterate(
        lambda x: x.filter(col.n > 0).select(n=col.n - 1).concat(x).distinct(),
        iterations_max=iterations_max,
    ).output("reached")
