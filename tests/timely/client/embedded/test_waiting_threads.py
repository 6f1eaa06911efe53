"""Threads of one program at one embedded cluster: each waits for what another may bring, and no longer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from dataflows import fails_on, word_count

import differential as dd
import timely
from progress.times.timestamp import Timestamp
from timely.client.embedded.waiting_threads import WaitingThreads

SOON = 60


@pytest.fixture(params=[False, True], ids=["in turn", "threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    """Two workers, each with a thread or not."""
    with timely.connect(workers=2, embedded=True, threads=bool(request.param)) as cluster:
        yield cluster


@contextmanager
def beside(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Iterator[Future[object]]:
    """`call` in a thread of its own, and what it has come to; begins once it has lain down to wait."""
    lies, lie_down = threading.Event(), WaitingThreads.lie_down

    def told(others: WaitingThreads, is_for_ever: bool) -> threading.Event:
        event = lie_down(others, is_for_ever)
        lies.set()
        return event

    def carry_out() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    monkeypatch.setattr(WaitingThreads, "lie_down", told)
    future: Future[object] = Future()
    threading.Thread(target=carry_out, daemon=True).start()
    assert lies.wait(SOON)
    yield future


def test_what_another_thread_seals_is_waited_for(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = cluster.install(word_count)
    calls: list[Callable[[], object]] = [
        lambda: flow.wait(0),
        lambda: flow.output("counts").changes(0, 2),
        lambda: flow.wait(2, timeout=SOON),
    ]
    given: list[object] = [0, [(0, ("a", 1)), (1, ("a", 2))], 2]
    for epoch, call in enumerate(calls):
        with beside(call, monkeypatch) as waits:
            flow.input("lines").insert(["a"])
            assert not waits.done(), "a row completes nothing"
            assert flow.seal() == epoch
            assert waits.result(SOON) == given[epoch]


def test_who_follows_is_given_each_epoch_that_another_thread_seals(cluster: timely.Cluster) -> None:
    flow = cluster.install(word_count)

    def feeds() -> None:
        for _ in range(50):
            flow.input("lines").insert(["a"])
            flow.seal()
        flow.input("lines").close()

    with ThreadPoolExecutor(2) as pool:
        # Whoever is first: the one that follows may begin before anything is sealed, and the other way round.
        follows = [pool.submit(lambda: list(cluster.flow(flow.index).output("counts").follow(timeout=SOON)))]
        pool.submit(feeds).result(SOON)
        given = follows[0].result(SOON)
    assert [(epoch, changes) for epoch, changes in given if epoch < 50] == [
        (epoch, [("a", epoch + 1)]) for epoch in range(50)
    ]


def test_who_begins_to_wait_as_the_other_thread_is_started_waits(cluster: timely.Cluster) -> None:
    flow = cluster.install(word_count)
    may_seal = threading.Event()

    def seals() -> None:
        may_seal.wait(SOON)
        flow.seal()

    thread = threading.Thread(target=seals)
    thread.start()  # it has not asked for anything yet
    threading.Timer(0.05, may_seal.set).start()
    assert flow.wait(0) == 0
    thread.join()


def test_a_limit_is_that_of_the_waiting_where_another_thread_could_seal(cluster: timely.Cluster) -> None:
    flow = cluster.install(word_count)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        for call in (
            lambda: flow.wait(0, timeout=0.05),
            lambda: next(flow.output("counts").follow(timeout=0.05)),
        ):
            with pytest.raises(timely.WaitTimeoutError, match=r"after 0\.05 s: it is not sealed yet") as late:
                call()
            (why,) = late.value.__notes__
            assert why.startswith("why: epoch 0 of 'word_count' is not complete")
    finally:
        done.set()
        thread.join()
    with pytest.raises(timely.WaitTimeoutError, match=r"on worker \d: it is not sealed yet"):
        flow.wait(0, timeout=SOON)


def test_who_waits_is_told_of_what_ends_the_dataflow(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, other = cluster.install(fails_on, word="bad"), cluster.install(word_count)
    with beside(lambda: flow.wait(5), monkeypatch) as waits:
        flow.input("words").insert(["bad"])
        flow.seal()
        with pytest.raises(timely.VertexError):
            flow.wait(0)
        with pytest.raises(timely.VertexError):
            waits.result(SOON)
    other.wait(other.seal())


def test_who_waits_is_told_that_the_cluster_is_closed(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = cluster.install(word_count)
    with beside(lambda: flow.wait(0), monkeypatch) as waits:
        cluster.close()
        with pytest.raises(timely.MisuseError, match="this cluster is closed"):
            waits.result(SOON)


def test_an_interrupt_of_who_only_waits_breaks_nothing(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same call an interrupt of the work would have ended the cluster."""
    flow = cluster.install(word_count)

    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WaitingThreads, "may_ask", lambda _: True)
        patch.setattr(WaitingThreads, "lie_down", lambda *_: Interrupted())
        with pytest.raises(KeyboardInterrupt):
            flow.wait(0)
    flow.input("lines").insert(["a"])
    flow.seal()
    assert flow.output("counts").changes() == [(0, ("a", 1))]


@pytest.mark.usefixtures("looks_often")
@pytest.mark.parametrize("how", ["wait", "follow", "changes"])
def test_who_would_wait_for_who_waits_is_told_and_the_others_once_it_is_gone(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Two of them only follow: neither would seal."""
    flow = cluster.install(word_count)

    def waits_for_ever() -> object:
        if how == "wait":
            return flow.wait(0)
        output = cluster.flow(flow.index).output("counts")
        return next(output.follow()) if how == "follow" else output.changes(0, 1)

    with beside(waits_for_ever, monkeypatch) as first:
        with pytest.raises(timely.WaitTimeoutError, match="it is not sealed yet") as told:
            waits_for_ever()
        # Who has lain down last is told; and, where that is the other one, this one when it has gone.
        error = first.exception(SOON) if first.done() else told.value
        assert error is not None and error.__notes__[0] == (
            "it was not waited for: these workers work while this program asks them, and no other thread of "
            "it does: 1 waits as this one does, without a limit. Seal first, or ask for what is sealed"
        )
        assert how != "wait" or not first.done(), "there was one that may seal"
        flow.input("lines").insert(["a"])
        flow.seal()
        if error is told.value:
            first.result(SOON)


@pytest.mark.usefixtures("looks_often")
def test_who_waits_for_a_thread_that_ends_without_a_word_is_told() -> None:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(word_count)
        gone = threading.Event()
        thread = threading.Thread(target=gone.wait)
        thread.start()
        threading.Timer(0.2, gone.set).start()
        with pytest.raises(timely.WaitTimeoutError, match="it is not sealed yet"):
            flow.wait(0)
        thread.join()


def test_who_waits_with_a_limit_may_seal_afterwards(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = cluster.install(word_count)

    def waits_and_seals() -> int:
        with pytest.raises(timely.WaitTimeoutError, match=r"after 0\.3 s"):
            flow.wait(0, timeout=0.3)
        return flow.seal()

    with beside(waits_and_seals, monkeypatch) as first:
        assert flow.wait(0) == 0 == first.result(SOON)


def test_others_may_get_up_while_a_message_counts_them() -> None:
    """They do so without a turn, and the message is the reason that a caller is given."""
    others = WaitingThreads()
    first, second = others.lie_down(True), others.lie_down(True)

    class Goes(int):
        def __eq__(self, other: object) -> bool:
            others.get_up(second)
            return super().__eq__(other)

        __hash__ = int.__hash__

    others.asleep[first] = Goes(-1)
    assert others.why_not() == ": 1 waits as this one does, without a limit"


def test_who_gets_up_is_no_longer_one_that_waits() -> None:
    others, done = WaitingThreads(), threading.Event()
    events: list[threading.Event] = []

    def sleeps() -> None:
        others.callers.add(threading.get_ident())
        events.append(others.lie_down(True))
        done.wait(SOON)

    thread = threading.Thread(target=sleeps)
    thread.start()
    try:
        while not events:
            done.wait(0.001)
        assert not others.may_ask() and others.why_not() == ": 1 waits as this one does, without a limit"
        others.get_up(events[0])
        assert others.may_ask() and others.why_not() == ""
        others.get_up(others.lie_down(False))
        assert others.may_ask()
    finally:
        done.set()
        thread.join()


def test_threads_that_can_ask_are_those_that_have_and_those_that_came_since() -> None:
    done, has_asked = threading.Event(), threading.Event()
    asks = threading.Event()

    def earlier() -> None:
        asks.wait(SOON)
        others.callers.add(threading.get_ident())
        has_asked.set()
        done.wait(SOON)

    before = threading.Thread(target=earlier)
    before.start()
    others = WaitingThreads()
    try:
        assert not others.may_ask()
        worker = threading.Thread(target=done.wait, name="naiad-worker-1")
        worker.start()
        assert not others.may_ask(), "a worker's thread works for who asks"
        asks.set()
        assert has_asked.wait(SOON) and others.may_ask()
    finally:
        asks.set()
        done.set()
        before.join()
        worker.join()
    assert not others.may_ask()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result(SOON)
        assert others.may_ask(), "one that was started since"
    assert not others.may_ask()


def test_a_turn_may_be_had_once_who_has_it_gives_it_back_or_not_in_time() -> None:
    turn, has, may_go = threading.RLock(), threading.Event(), threading.Event()

    def holds() -> None:
        with turn:
            has.set()
            may_go.wait()

    assert WaitingThreads.may_begin(turn, 0.0), "nobody has it"
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(holds)
        has.wait()
        assert not WaitingThreads.may_begin(turn, 0.0) and not WaitingThreads.may_begin(
            turn, time.monotonic() + 0.01
        )
        threading.Timer(0.02, may_go.set).start()
        assert WaitingThreads.may_begin(turn, time.monotonic() + SOON)
        done.result(SOON)
    assert not turn._is_owned()  # type: ignore[attr-defined]


def test_who_is_interrupted_as_he_gets_it_does_not_hold_it() -> None:
    class Turn:
        """Raises as an interrupt does that comes as `acquire` returns."""

        held = 0

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            self.held += 1
            raise KeyboardInterrupt

        def release(self) -> None:
            if not self.held:
                raise RuntimeError
            self.held -= 1

    turn = Turn()
    with pytest.raises(KeyboardInterrupt):
        WaitingThreads.may_begin(turn, 0.0)  # type: ignore[arg-type]
    assert turn.held == 0


def test_who_is_heard_beside_a_thread_that_has_turn_after_turn(cluster: timely.Cluster) -> None:
    """Whoever looked now and then whether it is free would find it taken each time."""
    flow = cluster.install(word_count)
    stops = threading.Event()

    def feeds() -> None:
        while not stops.is_set():
            flow.input("lines").insert(["a b"])
            flow.wait(flow.seal())

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(feeds)
        try:
            for _ in range(20):
                flow.output("counts").changes(0, 0, timeout=SOON)
        finally:
            stops.set()
        done.result(SOON)


def test_two_threads_may_close_and_neither_is_told_that_it_is_closed(cluster: timely.Cluster) -> None:
    """Of what is sealed both wait for the end."""
    flow = cluster.install(word_count)
    for _ in range(20):
        flow.input("lines").insert(["a b"] * 100)
        flow.seal()
    with ThreadPoolExecutor(2) as threads:
        for closing in [threads.submit(cluster.close) for _ in range(2)]:
            closing.result(SOON)


def test_who_is_interrupted_as_he_closes_has_not_closed(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = cluster.install(word_count)

    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(cluster._workers, "work_off", interrupted)
        cluster._workers.close()
    with ThreadPoolExecutor(1) as threads:
        flow.input("lines").insert(["a"])
        assert threads.submit(lambda: flow.wait(flow.seal())).result(SOON) == 0


def test_who_replaces_a_dataflow_is_told_in_time_that_another_thread_is_at_work(
    cluster: timely.Cluster,
) -> None:
    flow = cluster.install(word_count)
    has, may_go = threading.Event(), threading.Event()

    def works() -> None:
        with cluster._workers._lock:  # type: ignore[attr-defined]
            has.set()
            may_go.wait(SOON)

    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(works)
        assert has.wait(SOON)
        try:
            with pytest.raises(timely.WaitTimeoutError, match="another thread of this program is at work"):
                cluster.replace(flow, word_count, timeout=0.05)
            assert not other.done(), "nor for whether the old one goes on"
        finally:
            may_go.set()
        other.result(SOON)
    flow.input("lines").insert(["a"])
    flow.wait(flow.seal())
    assert flow.output("counts").changes() == [(0, ("a", 1))]


@pytest.mark.parametrize("workers", [1, 2])
def test_one_that_waits_for_the_disk_too_goes_on_when_another_one_seals(workers: int, tmp_path: Path) -> None:
    def counts(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "keys", "k: int").group_by("k").agg(n=dd.count()).output("counts")

    with timely.connect(workers=workers, embedded=True, durable=tmp_path) as cluster:
        flow = cluster.install(counts)
        goes_on: list[bool] = []
        waits = threading.Event()

        def seal() -> None:
            other = cluster.flow(flow.index)
            for epoch in range(3):
                time.sleep(0.05)  # so that the wait has begun
                other.input("keys").insert([(epoch,)])
                other.seal()
                goes_on.append(waits.wait(20))
                waits.clear()

        sealing = threading.Thread(target=seal)
        sealing.start()
        for epoch in range(3):
            flow.wait(epoch, timeout=60)
            waits.set()
        sealing.join()
        assert goes_on == [True] * 3


def test_one_that_waits_for_the_disk_too_goes_on_when_a_coroutine_is_over(tmp_path: Path) -> None:
    class LaterVertex(timely.Vertex):
        async def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            await asyncio.sleep(0.01)
            self.send_by(0, message, time)

    def later(dataflow: timely.Dataflow) -> None:
        dataflow.output("later", dataflow.input("numbers").stage("later", LaterVertex))

    with timely.connect(workers=2, embedded=True, durable=tmp_path) as cluster:
        flow = cluster.install(later)
        for number in range(5):
            flow.input("numbers").insert([number])
            flow.seal(wait=True, timeout=20)
        assert sorted(flow.output("later").changes()) == [(number, number) for number in range(5)]
