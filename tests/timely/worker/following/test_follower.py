"""Workers that follow take the place of a cluster at work, and answer as it would have."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.columns.worker_symbols import SYMBOLS
from differential.trace.trace import LOOK_ROWS_MIN
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark
from timely.giving_back import GivingBack
from timely.operators.capture import CaptureVertex
from timely.running.core import Worker
from timely.worker.following import follower as follower_module
from timely.worker.following.follower import StandbyWorker
from timely.worker.following.standby import Standby
from timely.worker.launcher import LocalFolder
from timely.worker.server import Server
from timely.worker.settings import local_settings
from timely.worker.tasks.unused_words import UnusedWords

ROWS = 4 * LOOK_ROWS_MIN


def totals(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int, b: string")
    rows.group_by("b").agg(n=dd.count(), most=dd.max("a")).output("totals")


def numbers_of_texts(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int, b: string")
    rows.group_by("b").agg(n=dd.count()).group_by("n").agg(texts=dd.count()).output("totals")


@contextmanager
def standby_of(store: Path, workers: int) -> Iterator[Standby]:
    folder = LocalFolder()
    settings = [
        replace(one, durable=str(store), sync="system") for one in local_settings(workers, folder.path)
    ]
    standby = Standby(settings)
    try:
        yield standby
    finally:
        standby.stop()
        folder.remove()


def until_abreast(standby: Standby) -> None:
    deadline = time.monotonic() + 6
    while not standby.check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def feed(flow: timely.Flow, epochs: int) -> None:
    for _ in range(epochs):
        epoch = flow.epoch
        flow.input("rows").insert([(epoch, "one"), (epoch * 7 % 5, f"text {epoch % 3}")])
        if epoch > 2:
            flow.input("rows").remove([(epoch - 2, "one")])
        flow.seal()


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 2), (2, 2), (2, 1), (2, 3)])
def test_takes_over_what_was_there_before_and_after_it_began(before: int, after: int, tmp_path: Path) -> None:
    with timely.connect(workers=before, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(totals)
        feed(flow, 4)
        with standby_of(tmp_path, after) as standby:
            until_abreast(standby)
            feed(flow, 5)
            flow.input("rows").insert([(100, "open")])
            expected = sorted(map(str, flow.output("totals").changes(0).to_pylist()))
            opened = flow.epoch
            cluster.close()
            launcher = standby.take_over()
            addresses = launcher.wait_ready()
            with timely.connect(addresses[0]) as again:
                same = again.flow("totals")
                assert same.epoch == opened
                assert sorted(map(str, same.output("totals").changes(0).to_pylist())) == expected
                feed(same, 2)
                same.seal(wait=True)
                rows = same.output("totals").snapshot().to_pylist()
                assert {"b": "open", "n": 1, "most": 100} in [
                    {key: row[key] for key in ("b", "n", "most")} for row in rows
                ]


def counts_in(rows: list[dict[str, int]]) -> dict[int, int]:
    """How many texts there are, by how often each is there."""
    assert len({row["n"] for row in rows}) == len(rows)
    return {row["n"]: row["texts"] for row in rows}


class Search:
    """Looks for a word among those that somebody shows. Implements `Marking`."""

    def __init__(self, word: int) -> None:
        self.word = word
        self.is_found = False

    def add(self, words: Int64s) -> None:
        self.is_found = self.is_found or self.word in words

    def has_between(self, low: int, high: int) -> bool:
        return low <= self.word <= high


class FollowerHere:
    """The only worker that follows a cluster, in the process of the test."""

    def __init__(self, store: Path, flow: timely.Flow) -> None:
        self.flow = flow
        self.worker = Worker(0, 1, None)
        server = Server(self.worker, "here")
        self.words = UnusedWords(self, self.worker)
        self.follower = StandbyWorker(str(store), self.worker, server, self.words, GivingBack())

    def at_rest(self) -> list[Worker]:
        """See `Group`."""
        return []

    def is_forgetting(self) -> bool:
        return self.words.is_under_way

    def follow_next(self) -> dict[int, int]:
        """Seal the next epoch, and work until it is complete here, too; return what the output holds."""
        epoch = self.flow.seal(wait=True)
        self.work_until(lambda: all(each.complete_before > epoch for each in self.outputs()))
        return counts_in(self.outputs()[0].log.snapshot(epoch).to_pylist())

    def holds(self, word: int) -> bool:
        search = Search(word)
        self.worker.symbols(Mark([search]))
        return search.is_found

    def outputs(self) -> list[CaptureVertex]:
        return [instance.output("totals") for instance in self.worker.instances.values()]

    def work_until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not (self.outputs() and holds()):
            assert time.monotonic() < deadline
            if self.follower.look() or self.worker.step():
                self.follower.tidy()
            else:
                time.sleep(self.follower.rest())


@pytest.mark.usefixtures("alone_in_process")
def test_words_are_forgotten_once_the_logs_have_said_all_that_they_need_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"text {number}" for number in range(ROWS)]
    with timely.connect(workers=1, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(numbers_of_texts)
        rows = flow.input("rows")
        rows.insert(pa.table({"a": range(ROWS), "b": texts}))
        here = FollowerHere(tmp_path, flow)
        here.follow_next()
        monkeypatch.setattr(follower_module, "is_full", lambda: True)
        words = SYMBOLS.intern(texts).tolist()
        for change in (rows.remove, rows.insert):
            change(pa.table({"a": range(ROWS), "b": texts}))
            here.follow_next()
            assert here.is_forgetting() and words[0] in SYMBOLS, "no log has said anew what it needs"
        rows.remove(pa.table({"a": range(10, ROWS), "b": texts[10:]}))
        assert here.follow_next() == {1: 10}
        here.work_until(lambda: not here.holds(words[-1]))
        assert words[-1] in SYMBOLS
        rows.insert([(0, "so large that a fold pays" * 300_000)])  # and so other segments begin
        assert here.follow_next() == {1: 11}
        deadline = time.monotonic() + 60
        while words[-1] in SYMBOLS:
            assert time.monotonic() < deadline
            pause = time.monotonic() + 2  # for workers that rest begin a fold
            here.work_until(lambda end=pause: words[-1] not in SYMBOLS or time.monotonic() > end)
            rows.insert([(1, texts[2])])  # behind the cut, if there was one: a segment begins with a record
            assert here.follow_next()[1] == 10
        assert all(word in SYMBOLS for word in words[:10])
        rows.insert(pa.table({"a": range(ROWS), "b": texts}))
        assert here.follow_next() == counts_in(flow.output("totals").snapshot().to_pylist())
