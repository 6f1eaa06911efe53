"""One thread asks the workers, for whoever looks."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import cast

import pytest
from pages import until

import timely
from timely.client.reports.figures import Stats
from timely.console.asking import ClusterWatch


class Plays:
    """A cluster that answers as a test wants."""

    def __init__(self, answer: Callable[[], Stats]) -> None:
        self.answer, self.closed = answer, 0

    def stats(self) -> Stats:
        return self.answer()

    def flow(self, index: int) -> object:
        raise timely.MisuseError(f"worker 0 has no dataflow {index}")

    def at_work(self) -> list[str]:
        return ["worker 1 is stopped"]

    def close(self) -> None:
        self.closed += 1


def watched(answer: Callable[[], Stats]) -> ClusterWatch:
    return ClusterWatch(cast("timely.Cluster", Plays(answer)))


@contextmanager
def looking(watch: ClusterWatch) -> Iterator[threading.Event]:
    """Let a page look, in an event loop of its own; the event is set when there is news."""
    ends, news = threading.Event(), threading.Event()

    async def look() -> None:
        with watch.lookers.joined() as event:
            while not ends.is_set():
                try:
                    await asyncio.wait_for(event.wait(), 0.05)
                except TimeoutError:
                    continue
                event.clear()
                news.set()

    thread = threading.Thread(target=lambda: asyncio.run(look()))
    thread.start()
    try:
        yield news
    finally:
        ends.set()
        thread.join()


def status(watch: ClusterWatch) -> dict[str, object]:
    told: dict[str, object] = json.loads(watch.status[1])
    return told


def test_nobody_is_asked_until_somebody_looks() -> None:
    watch = watched(lambda: [{"dataflows": {}}])
    try:
        time.sleep(0.4)
        assert watch.asked == 0 and watch.is_stale
        with looking(watch) as news:
            assert news.wait(30)
            until(lambda: watch.asked > 1)
            assert not watch.is_stale and status(watch) == {"state": "answers"}
        asked = watch.asked
        time.sleep(0.6)
        assert watch.asked <= asked + 1
    finally:
        watch.close()


def test_a_slow_answer_makes_the_next_question_wait_four_times_as_long() -> None:
    asked: list[float] = []

    def slow() -> Stats:
        asked.append(time.monotonic())
        time.sleep(0.2)
        return [{"dataflows": {}}]

    watch = watched(slow)
    try:
        with looking(watch):
            until(lambda: len(asked) > 2)
    finally:
        watch.close()
    assert asked[2] - asked[1] > 0.2 * 5 - 0.05


def test_while_no_answer_comes_it_says_who_does_not_answer_and_for_how_long() -> None:
    goes_on = threading.Event()

    def waits() -> Stats:
        goes_on.wait(60)
        return [{"dataflows": {}}]

    watch = watched(waits)
    try:
        with looking(watch):
            until(lambda: status(watch)["state"] == "late")
            told = status(watch)
            assert told["who"] == ["worker 1 is stopped"] and float(str(told["seconds"])) >= 1.0
            goes_on.set()
            until(lambda: status(watch)["state"] == "answers")
    finally:
        goes_on.set()
        watch.close()


def test_a_cluster_that_ends_is_connected_to_again() -> None:
    made: list[Plays] = []

    def connect() -> timely.Cluster:
        def answer() -> Stats:
            if len(made) == 1:
                raise timely.PeerError("worker 0 has gone")
            return [{"dataflows": {}}]

        made.append(Plays(answer))
        return cast("timely.Cluster", made[-1])

    watch = ClusterWatch(None, connect)
    try:
        with looking(watch):
            until(lambda: status(watch)["state"] == "lost")
            assert status(watch)["message"] == "worker 0 has gone"
            until(lambda: status(watch)["state"] == "answers")
    finally:
        watch.close()
    assert [each.closed for each in made] == [1, 1]
    with pytest.raises(timely.PeerError):
        _ = ClusterWatch(None, connect).cluster


def test_a_connection_that_is_made_as_the_console_ends_is_closed() -> None:
    connects, goes_on = threading.Event(), threading.Event()
    made = Plays(lambda: [{"dataflows": {}}])

    def connect() -> timely.Cluster:
        connects.set()
        goes_on.wait(60)
        return cast("timely.Cluster", made)

    watch = ClusterWatch(None, connect)
    try:
        with looking(watch):
            assert connects.wait(60)
            watch.close()
            goes_on.set()
            until(lambda: made.closed == 1)
    finally:
        goes_on.set()
        watch.close()
    assert made.closed == 1


def test_requests_do_not_wait_for_workers_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.console.asking._PATIENCE_SECONDS", 0.2)
    stops, stopped, goes_on = threading.Event(), threading.Event(), threading.Event()

    def waits() -> Stats:
        if stops.is_set():
            stopped.set()
            goes_on.wait(60)
        return [{"dataflows": {}}]

    watch = watched(waits)
    try:
        with looking(watch):
            until(lambda: watch.asked)
            stops.set()
            assert stopped.wait(60)
            time.sleep(0.6)
            with pytest.raises(timely.WaitTimeoutError, match="have not answered"):
                watch.stats()
            assert watch.recent() == [{"dataflows": {}}], "what was last known of a stage is shown"
            goes_on.set()
            asked = watch.asked
            until(lambda: watch.asked > asked)
            assert watch.stats() == [{"dataflows": {}}]
    finally:
        goes_on.set()
        watch.close()


def test_what_two_threads_say_at_once_has_two_versions() -> None:
    watch = watched(lambda: [{"dataflows": {}}])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        first = watch.status[0]
        threads = [
            threading.Thread(target=lambda name=name: [watch._say({name: n}) for n in range(2_000)])  # type: ignore[misc]
            for name in "ab"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert watch.status[0] - first == 4_000
    finally:
        sys.setswitchinterval(interval)
        watch.close()


def of_flows(*flows: tuple[int, str]) -> Stats:
    return [{"dataflows": {number: {"spec": name} for number, name in flows}}]


def test_only_dataflows_that_have_ended_are_said_to_have() -> None:
    ends = timely.UninstalledError("it was uninstalled")
    ends.ends_dataflow = True
    answers = {1: ends, 2: ends}
    flows = [
        (1, "shop"),
        (2, "(select)"),
        (3, "of another cluster"),
        (4, "has come since"),
        (5, "older version"),
    ]
    there = {4: SimpleNamespace(index=4), 5: SimpleNamespace(index=9)}

    class Ending(Plays):
        def flow(self, index: int) -> object:
            if index in there:
                return there[index]
            raise answers.get(index) or timely.MisuseError(f"worker 0 has no dataflow {index}")

    watch = ClusterWatch(cast("timely.Cluster", Ending(lambda: of_flows(*flows))))
    try:
        with looking(watch):
            until(lambda: "shop" in str(watch.shape[1]))
            flows.clear()
            until(lambda: "uninstalled" in str(watch.shape[1]))
            ended = json.loads(watch.shape[1])["ended"]
            assert [(each["dataflow"], each["kind"]) for each in ended] == [
                (1, "uninstalled"),
                (5, "replaced"),
            ]
            assert "dataflow 9 has taken its place" in ended[-1]["message"]
    finally:
        watch.close()


def test_news_reaches_no_loop_that_has_ended() -> None:
    watch = watched(lambda: [{"dataflows": {}}])
    try:
        with looking(watch):
            until(lambda: watch.asked > 0)
        assert len(watch.lookers) == 0
        watch.lookers.wake()
    finally:
        watch.close()
