"""Vertices with one mistake each, and what the kit for users says of it.

`WRONG` has a scenario for each, and how the message of its counterexample begins. What is right about all of
them is `SumVertex`: one record for each key and epoch, with the sum of its values.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, cast

import timely
from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex
from timely.testing import Moment, Scenario, UserAct, seal, send

__all__ = ["KEEPS", "RIGHT", "RIGHT_ALONE", "WRONG", "SumVertex", "Wrong", "summed"]

Pair = tuple[str, int]


class SumVertex(Vertex):
    """Sums the values of each key and epoch."""

    def __init__(self) -> None:
        self.waiting: dict[Timestamp, dict[str, int]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if time not in self.waiting:
            self.waiting[time] = {}
            self.notify_at(time)
        for key, value in cast(list[Pair], message):
            self.waiting[time][key] = self.waiting[time].get(key, 0) + value

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, sorted(self.waiting.pop(time).items()), time)


def summed(make: Callable[[], Vertex], exchanges: bool = True) -> Callable[[Dataflow], None]:
    """A dataflow with one vertex between its input and its output."""

    def build(dataflow: Dataflow) -> None:
        pairs = dataflow.input("pairs")
        sums = pairs.stage("sum", make, exchange=timely.by(0) if exchanges else None)
        dataflow.output("sums", sums)

    return build


ACTS: list[UserAct] = [send([("a", 1)], worker=0), send([("a", 2)], worker=1), seal()]
ALONE: list[UserAct] = [send([("a", 1), ("a", 2)]), seal()]
TWICE: list[UserAct] = [send([("a", 1)]), send([("a", 2)]), seal()]
EXPECTED = {"sums": [(0, ("a", 3))]}
RIGHT = Scenario(summed(SumVertex), ACTS, expected=EXPECTED, forgets=["sum"])
RIGHT_ALONE = Scenario(summed(SumVertex), ALONE, workers=1, expected=EXPECTED)


class Keeps(SumVertex):
    """Forgets to drop what it holds."""

    def on_notify(self, time: Timestamp) -> None:
        self.held = self.hold(time)
        super().on_notify(time)


class Loses(SumVertex):
    """Lets go of what it holds, and does not drop it."""

    def on_notify(self, time: Timestamp) -> None:
        self.hold(time)
        super().on_notify(time)


class Late(SumVertex):
    """Sends at a time that is over."""

    def on_notify(self, time: Timestamp) -> None:
        sums = sorted(self.waiting.pop(time).items())
        self.send_by(0, sums, (time[0] - 1,) if time[0] else time)


class First(Vertex):
    """Keeps what comes first: that depends on the order."""

    def __init__(self) -> None:
        self.first: dict[tuple[Timestamp, str], int] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        for key, value in cast(list[Pair], message):
            if self.first.setdefault((time, key), value) == value:
                self.send_by(0, [(key, value)], time)


class AtOnce(SumVertex):
    """Sends before its time is complete."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        super().on_recv(edge, message, time)
        self.send_by(0, sorted(self.waiting[time].items()), time)
        self.waiting[time].clear()


class Chance(SumVertex):
    """Does something else each time."""

    def on_notify(self, time: Timestamp) -> None:
        del self.waiting[time]
        self.send_by(0, [("a", random.randrange(1 << 40))], time)


class ByWorker(SumVertex):
    """Depends on the worker that it is on."""

    def on_notify(self, time: Timestamp) -> None:
        sums = self.waiting.pop(time)
        self.send_by(0, [(key, value) for key, value in sums.items() if value > 2 * self.worker], time)


class NextEpoch(SumVertex):
    """Is notified at the wrong time: an epoch too late."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        later = (time[0] + 1,)
        if later not in self.waiting:
            self.waiting[later] = {}
            self.notify_at(later)
        for key, value in cast(list[Pair], message):
            self.waiting[later][key] = self.waiting[later].get(key, 0) + value


class Leaks(SumVertex):
    """Keeps what it needs no more."""

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, sorted(self.waiting[time].items()), time)


class Shares(SumVertex):
    """Keeps its state in its class, where all vertices of a process find it."""

    seen: ClassVar[list[Timestamp]] = []

    def on_notify(self, time: Timestamp) -> None:
        self.seen.append(time)
        super().on_notify(time)


class Changes(SumVertex):
    """Changes the records that it gets."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        for record in message:
            cast(dict[str, int], record)["n"] += 1


class Fails(SumVertex):
    """Raises for a key that comes twice on one worker."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        assert time not in self.waiting, "one message for each time"
        super().on_recv(edge, message, time)


class NeverAsks(SumVertex):
    """Waits for a notification that it has not asked for."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.waiting.setdefault(time, defaultdict(int))
        for key, value in cast(list[Pair], message):
            self.waiting[time][key] += value


def never_negative(moment: Moment) -> bool:
    """A user's invariant: it finds what `expected` need not know."""
    return all(cast(Pair, record)[1] < 3 for _, record in moment.changes("sums"))


class Wrong(NamedTuple):
    """A mistake; `says` is in the message, and `is_found_by_seeds` if a run from a seed finds it, too."""

    name: str
    scenario: Scenario
    says: str
    is_found_by_seeds: bool = True


def _of(make: Callable[[], Vertex], exchanges: bool = True) -> Scenario:
    return Scenario(summed(make, exchanges), ACTS, expected=EXPECTED)


def _alone(make: Callable[[], Vertex], forgets: Sequence[str] = ()) -> Scenario:
    """On one worker, where the mistake shows as well: there are few orders."""
    return Scenario(summed(make), ALONE, workers=1, expected=EXPECTED, forgets=forgets)


KEEPS = _alone(Keeps)
WRONG = [
    Wrong("forgets to drop", KEEPS, "still holds (0,) (held at "),
    Wrong("loses a capability", _alone(Loses), "MisuseError: 'sum' (stage 1, worker"),
    Wrong(
        "sends late",
        Scenario(summed(Late), [seal(), send([("a", 1)], worker=0), seal()], workers=1),
        "TimeRegressionError: 'sum' (stage 1, worker",
    ),
    Wrong("depends on the order", Scenario(summed(First), ACTS), "output 'sums' lacks"),
    Wrong(
        "sends before a time is complete",
        Scenario(summed(AtOnce), TWICE, workers=1, expected=EXPECTED),
        "output 'sums' lacks (0, ('a', 3))",
    ),
    Wrong(
        "depends on chance",
        Scenario(summed(Chance), ALONE, workers=1),
        "does not do the same again in the same state",
        False,
    ),
    Wrong(
        "differs between workers",
        Scenario(summed(ByWorker, exchanges=False), [send([("a", 1)]), seal()]),
        "output 'sums' ",
    ),
    Wrong("is notified in another epoch", _alone(NextEpoch), "output 'sums' lacks (0, ('a', 3))"),
    Wrong("leaks", _alone(Leaks, ["sum"]), "'sum' (stage 1, worker"),
    Wrong("shares state between vertices", _alone(Shares), "changes Shares.seen"),
    Wrong(
        "changes records that it got",
        Scenario(summed(Changes, exchanges=False), [send([{"n": 1}], worker=0), seal()]),
        "'sum' (stage 1, worker 0 of 2) changes records that it got",
    ),
    Wrong("raises in one order", _of(Fails), "AssertionError: one message for each time"),
    Wrong("does not ask", _alone(NeverAsks), "output 'sums' lacks (0, ('a', 3))"),
    Wrong("has no exchange", _of(SumVertex, exchanges=False), "output 'sums' lacks (0, ('a', 3))"),
    Wrong(
        "breaks an invariant",
        Scenario(summed(SumVertex), ALONE, workers=1, invariant=never_negative),
        "never_negative does not hold",
    ),
]
