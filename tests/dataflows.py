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
from timely.running.instance import Instance
from timely.running.stages.vertex_runner import VertexRunner

Number = tuple[int, int, int]
"""(start, number now, odd steps so far) of `collatz`."""

__all__ = [
    "EXCHANGES",
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
    "words_twice_exchanged",
]

no_function = 7
"""What `"dataflows:no_function"` names."""


def word_hash(word: object) -> int:
    """The same in every process, unlike `hash`."""
    return zlib.crc32(str(word).encode())


def frozen(build: Callable[[timely.Dataflow], object]) -> FrozenDataflow:
    """What a worker can install, for each worker anew."""
    dataflow = timely.Dataflow("tested")
    build(dataflow)
    return dataflow.freeze()


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
def word_count(dataflow: timely.Dataflow) -> None:
    words = dataflow.input("lines").stage("split lines", SplitLinesVertex)
    dataflow.output("counts", words.stage("count words", CountWordsVertex, exchange=word_hash))


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


def _collect(dataflow: timely.Dataflow, trigger: str, action: str) -> None:
    stream = dataflow.input("words").stage(
        "collect", lambda: CollectVertex(trigger, action), exchange=word_hash
    )
    dataflow.output("words", stream)


@timely.builder
def fails_on(dataflow: timely.Dataflow, word: str = "bad") -> None:
    _collect(dataflow, word, "raise")


@timely.builder
def sleeps_on(dataflow: timely.Dataflow, word: str = "slow", seconds: float = 60.0) -> None:
    _collect(dataflow, word, str(seconds))


@timely.builder
def exit_hard(dataflow: timely.Dataflow, word: str = "exit", status: int = 17) -> None:
    _collect(dataflow, word, f"exit {status}")


@timely.builder
def differs_between_processes(dataflow: timely.Dataflow) -> None:
    words = dataflow.input("lines").stage("split lines", SplitLinesVertex)
    dataflow.output("counts", words.stage(f"count in {os.getpid()}", CountWordsVertex, exchange=word_hash))


EXCHANGES: dict[str, Callable[[object], int]] = {
    "hash": hash,
    "a function that calls hash": lambda word: hash((word, "and more")),
    "by": timely.by(),
    "by a function": timely.by(lambda word: (word, None)),
    "by a process": lambda word: hash((word, os.getpid())),
}
"""By what `words_twice_exchanged` may exchange words, by name."""


@timely.builder
def words_twice_exchanged(dataflow: timely.Dataflow, exchange: str) -> None:
    """Words of lines, which are spread over the workers by their lengths, go through two exchanges."""
    lines = dataflow.input("lines").stage("spread", PassesOnVertex, exchange=lambda line: len(str(line)))
    words = lines.stage("split lines", SplitLinesVertex)
    passed = words.stage("pass on", PassesOnVertex, exchange=EXCHANGES[exchange])
    dataflow.output("counts", passed.stage("count words", CountWordsVertex, exchange=EXCHANGES[exchange]))


@timely.builder
def broken_builder(dataflow: timely.Dataflow) -> None:
    dataflow.input("lines")
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
def collatz(dataflow: timely.Dataflow) -> None:
    """Two nested loops by hand. In: (n, n, 0). Out: (n, odd steps, outer iteration)."""
    numbers = dataflow.input("numbers")
    with dataflow.loop("outer") as outer:
        back = outer.feedback()
        with outer.loop("inner") as inner:
            round_again = inner.feedback()
            feeds = [
                inner.enter(outer.enter(numbers)).feed(route=_by_start()),
                inner.enter(back.stream).feed(route=_by_start()),
                round_again.stream.feed(),
            ]
            even, odd = dataflow.stage("halve", HalveVertex, feeds, outputs=2)
            round_again.connect(even)
            left = inner.leave(odd)
        again, done = dataflow.stage("triple", TripleVertex, [left.feed()], outputs=2)
        back.connect(again)
        finished = outer.leave(done)
    dataflow.output("steps", finished)


def _by_start() -> timely.Route:
    """By the number as it is now, so that it moves about between workers."""
    return RecordRoute(lambda record: word_hash(cast(Number, record)[1]))


class MiscountsVertex(timely.Vertex):
    """Passes on what comes in; what one record asks for, it does to the counts behind everybody's back."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)
        if "drop a count" in message:
            instance = cast(Instance, cast(VertexRunner, self._runner)._surroundings)
            changes = instance.changes.deltas
            changes.pop([point for point, delta in changes.items() if delta > 0][-1])


@timely.builder
def miscounts(dataflow: timely.Dataflow) -> None:
    far = dataflow.input("words").stage("miscounts", MiscountsVertex, exchange=timely.ToWorker(1))
    dataflow.output("words", far.stage("collect", PassesOnVertex, exchange=timely.ToWorker(0)))


class PassesOnVertex(timely.Vertex):
    """Passes on what comes in."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)
