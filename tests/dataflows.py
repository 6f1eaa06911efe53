"""Dataflows that tests install by name, as worker processes import them: `"dataflows:word_count"`."""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

import timely
from progress.times.timestamp import Timestamp
from timely.building.exchange import RecordRoute
from timely.building.freeze import FrozenDataflow
from timely.running.core import Worker
from timely.running.host import Host
from timely.running.instance import Instance

Number = tuple[int, int, int]
"""(start, number now, odd steps so far) of `collatz`."""

__all__ = [
    "CollectVertex",
    "CountWordsVertex",
    "MiscountsVertex",
    "PassesOnVertex",
    "SplitLinesVertex",
    "broken_builder",
    "collatz",
    "differs_between_processes",
    "exit_hard",
    "fails_on",
    "frozen",
    "miscounts",
    "no_function",
    "settle",
    "sleeps_on",
    "word_count",
    "word_hash",
]

no_function = 7
"""What `"dataflows:no_function"` names."""


def word_hash(word: object) -> int:
    """The same in every process, unlike `hash`."""
    return zlib.crc32(str(word).encode())


def frozen(build: Callable[[timely.Dataflow], object]) -> FrozenDataflow:
    """What a worker can install, for each worker anew."""
    flow = timely.Dataflow("tested")
    build(flow)
    return flow.freeze()


def settle(workers: Sequence[Worker]) -> None:
    """Step all workers in turn until none has anything to do."""
    moved = True
    while moved:
        moved = False
        for worker in workers:
            moved = worker.step() or moved


class SplitLinesVertex(timely.Vertex):
    """Lines in, words out."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, [word for line in message for word in str(line).split()], time)


class CountWordsVertex(timely.Vertex):
    """At the end of an epoch, the counts that changed in it."""

    def __init__(self) -> None:
        self.counts: Counter[object] = Counter()
        self.added: dict[Timestamp, Counter[object]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if time not in self.added:
            self.added[time] = Counter()
            self.notify_at(time)
        self.added[time].update(message)

    def on_notify(self, time: Timestamp) -> None:
        added = self.added.pop(time)
        self.counts.update(added)
        self.send_by(0, [(word, self.counts[word]) for word in sorted(map(str, added))], time)


@timely.builder
def word_count(flow: timely.Dataflow) -> None:
    words = flow.input("lines").stage("split lines", SplitLinesVertex)
    flow.output("counts", words.stage("count words", CountWordsVertex, exchange=word_hash))


class CollectVertex(timely.Vertex):
    """Passes on what comes in, after a delay or never, when it meets a certain record."""

    def __init__(self, trigger: str, action: str) -> None:
        self.trigger = trigger
        self.action = action

    def on_recv(self, edge: int, message: list[object], time_: Timestamp) -> None:
        if self.trigger in message:
            if self.action == "raise":
                raise ValueError(f"cannot bear {self.trigger!r}")
            if self.action.startswith("exit "):
                os._exit(int(self.action.removeprefix("exit ")))
            time.sleep(float(self.action))
        self.send_by(0, message, time_)


def _collect(flow: timely.Dataflow, trigger: str, action: str) -> None:
    stream = flow.input("words").stage("collect", lambda: CollectVertex(trigger, action), exchange=word_hash)
    flow.output("words", stream)


@timely.builder
def fails_on(flow: timely.Dataflow, word: str = "bad") -> None:
    _collect(flow, word, "raise")


@timely.builder
def sleeps_on(flow: timely.Dataflow, word: str = "slow", seconds: float = 60.0) -> None:
    _collect(flow, word, str(seconds))


@timely.builder
def exit_hard(flow: timely.Dataflow, word: str = "exit", status: int = 17) -> None:
    _collect(flow, word, f"exit {status}")


@timely.builder
def differs_between_processes(flow: timely.Dataflow) -> None:
    words = flow.input("lines").stage("split lines", SplitLinesVertex)
    flow.output("counts", words.stage(f"count in {os.getpid()}", CountWordsVertex, exchange=word_hash))


@timely.builder
def broken_builder(flow: timely.Dataflow) -> None:
    flow.input("lines")
    raise KeyError("no such query")


class HalveVertex(timely.Vertex):
    """Inner loop: (start, n, odd steps); even n go round once more, halved; odd ones leave."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        again: list[object] = []
        done: list[object] = []
        for start, n, steps in cast(list[Number], message):
            (done if n % 2 else again).append((start, n if n % 2 else n // 2, steps))
        self.send_by(0, again, time)
        self.send_by(1, done, time)


class TripleVertex(timely.Vertex):
    """Outer loop: 1 is the end; any other odd n goes round as 3n + 1."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        again: list[object] = []
        done: list[object] = []
        for start, n, steps in cast(list[Number], message):
            if n == 1:
                done.append((start, steps, time[1]))
            else:
                again.append((start, 3 * n + 1, steps + 1))
        self.send_by(0, again, time)
        self.send_by(1, done, time)


@timely.builder
def collatz(flow: timely.Dataflow) -> None:
    """Two nested loops by hand. In: (n, n, 0). Out: (n, odd steps, outer iteration)."""
    numbers = flow.input("numbers")
    with flow.loop("outer") as outer:
        back = outer.feedback()
        with outer.loop("inner") as inner:
            round_again = inner.feedback()
            feeds = [
                inner.enter(outer.enter(numbers)).feed(route=_by_start()),
                inner.enter(back.stream).feed(route=_by_start()),
                round_again.stream.feed(),
            ]
            even, odd = flow.stage("halve", HalveVertex, feeds, outputs=2)
            round_again.connect(even)
            left = inner.leave(odd)
        again, done = flow.stage("triple", TripleVertex, [left.feed()], outputs=2)
        back.connect(again)
        finished = outer.leave(done)
    flow.output("steps", finished)


def _by_start() -> timely.Route:
    """By the number as it is now, so that it moves about between workers."""
    return RecordRoute(lambda record: word_hash(cast(Number, record)[1]))


class MiscountsVertex(timely.Vertex):
    """Passes on what comes in; what one record asks for, it does to the counts behind everybody's back."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)
        if "drop a count" in message:
            instance = cast(Instance, cast(Host, self._host)._surroundings)
            changes = instance._changes._deltas
            changes.pop([point for point, delta in changes.items() if delta > 0][-1])


@timely.builder
def miscounts(flow: timely.Dataflow) -> None:
    far = flow.input("words").stage("miscounts", MiscountsVertex, exchange=timely.ToWorker(1))
    flow.output("words", far.stage("collect", PassesOnVertex, exchange=timely.ToWorker(0)))


class PassesOnVertex(timely.Vertex):
    """Passes on what comes in."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)
