"""A year whose epochs are milliseconds: vertices that hold times for days need no `rebase`.

With one loop there are words for 49 days, and from day 25 on they count from a later epoch, many times over.
A vertex names what it holds as it likes: by a word that it has remembered, or that it packs again.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar, Final

import pytest

import timely
from progress.times.timestamp import Timestamp
from timely import Batch, Records

HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
YEAR: Final = 365 * DAY
HELD: Final = 3 * DAY
ROUNDS: Final = 3


class PacksAgain(timely.Vertex):
    """Sends each record days later, at the time at which it came; remembers that as a tuple."""

    def __init__(self) -> None:
        self.held: list[tuple[Timestamp, object]] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        for record in message:
            self.keep(time, record)
        if time[1:] and time[1] < ROUNDS - 1:
            self.send_by(1, message, time)
        self.notify_at((time[0] + HELD, *time[1:]))

    def keep(self, time: Timestamp, record: object) -> None:
        self.hold_word(self.code.pack(time))
        self.held.append((time, record))

    def on_notify(self, time: Timestamp) -> None:
        due = [(held, record) for held, record in self.held if held == (time[0] - HELD, *time[1:])]
        for held, record in due:
            self.send_by(0, [[record, *held[1:]]], held)
            self.release_word(self.code.pack(held))
            self.held.remove((held, record))


class RemembersWords(PacksAgain):
    """The same, but remembers words, and has its code from the beginning."""

    def on_start(self) -> None:
        self.packs = self.code
        self.words: list[tuple[int, object]] = []

    def keep(self, time: Timestamp, record: object) -> None:
        word = self.packs.pack(time)
        self.hold_word(word)
        self.words.append((word, record))

    def on_notify(self, time: Timestamp) -> None:
        wanted = self.packs.pack((time[0] - HELD, *time[1:]))
        for word, record in [kept for kept in self.words if kept[0] == wanted]:
            _, *counters = self.packs.unpack(word)
            self.send(0, Records([[record, *counters]]), word)
            self.release_word(word)
            self.words.remove((word, record))


class TakesWords(RemembersWords):
    """The same for a vertex that is given words, and looks at its frontier."""

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, batch in messages:
            assert isinstance(batch, Records)
            for first in self.frontier_words(port).tolist():
                assert self.packs.epoch_of(first) >= 0
            self.on_recv(port, list(batch.records), self.packs.unpack(word))

    def on_frontier(self) -> None:
        fronts = [self.packs.unpack(word) for word in self.frontier_words(0).tolist()]
        for word, _ in self.words:
            epoch, *counters = self.packs.unpack(word)
            if counters:  # what it sends there would come round
                assert any(front[0] <= epoch and front[1] <= counters[0] + 1 for front in fronts)


def is_in_loop(dataflow: timely.Dataflow, vertex: type[timely.Vertex]) -> None:
    """The vertex in a loop, which each record goes round."""
    with dataflow.loop() as loop:
        entered, again = loop.enter(dataflow.input("records")), loop.feedback()
        leaves, goes_on = dataflow.stage("holds", vertex, [entered.feed(), again.stream.feed()], outputs=2)
        again.connect(goes_on)
        dataflow.output("later", loop.leave(leaves))


def is_beside_a_loop(dataflow: timely.Dataflow, vertex: type[timely.Vertex]) -> None:
    """The vertex outside of a loop, whose counter takes half of each word."""
    records = dataflow.input("records")
    with dataflow.loop(times=1) as loop:
        entered = loop.enter(records)
        again = loop.feedback()
        (both,) = dataflow.stage("round", Passes, [entered.feed(), again.stream.feed()])
        again.connect(both)
        left = loop.leave(both)
    dataflow.output("later", left.stage("holds", vertex, exchange=lambda record: len(str(record))))


class Passes(timely.Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("vertex", [PacksAgain, RemembersWords, TakesWords])
@pytest.mark.parametrize("build", [is_in_loop, is_beside_a_loop])
def test_what_is_held_is_sent_at_its_time_all_year_round(
    build: object, vertex: type[timely.Vertex], workers: int, seed: int
) -> None:
    chance = random.Random(seed)
    fed: set[tuple[int, str]] = set()
    read: list[tuple[int, object]] = []
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(lambda dataflow: build(dataflow, vertex))  # type: ignore[operator]
        epoch = 0
        while epoch < YEAR:
            flow.input("records").insert([f"of {epoch}"])
            fed.add((epoch, f"of {epoch}"))
            flow.seal()
            read += flow.output("later").changes_nowait()
            assert all(at <= epoch - HELD for at, _ in read[-3:]), "before that it is held"
            epoch += chance.randrange(10 * HOUR, 30 * HOUR)
            flow.seal(through=epoch - 1)
        assert read and read[-1][0] > 330 * DAY, "and not for longer"
        moved = [worker.instance(flow.index).anchor.epoch for worker in cluster._workers._workers]  # type: ignore[attr-defined]
        assert all(anchor > 300 * DAY for anchor in moved)
        flow.input("records").close()
        flow.wait()
        read += flow.output("later").changes_nowait()
    rounds = [[number] for number in range(ROUNDS)] if build is is_in_loop else [[]]
    wanted = [(at, (record, *counters)) for at, record in fed for counters in rounds]
    assert sorted((at, tuple(record)) for at, record in read) == sorted(wanted)  # type: ignore[arg-type]
