"""Waits that go along with the seal before them, with real workers: nothing depends on whether they are."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

import pytest
from dataflows import fails_on, sleeps_on, word_count
from relay import Relay

import timely
from bench.dataflow.bfs import build
from timely.client import reading
from timely.client.connection import RemoteWorkers
from timely.client.remote import channel, foreseen
from timely.client.remote.foreseen import Foreseen
from timely.limits import FORESEEN_COUNT_MAX
from timely.wire.frames.messages import FAREWELL, decode_request, encode_error, encode_reply, number_of
from timely.wire.requests import Reply, Seal, Wait
from timely.wire.transport.server_socket import ServerSocket


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(foreseen, "_FRESH_SECONDS", 1e9)


@pytest.fixture
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as made:
        yield made


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request of several was foreseen as it was made."""
    asked: list[bool] = []
    find = Foreseen.find

    def noted(self: Foreseen, requests):  # type: ignore[no-untyped-def]
        wait = find(self, requests)
        asked.append(wait is not None)
        return wait

    monkeypatch.setattr(Foreseen, "find", noted)
    return asked


def _words(flow: timely.Flow, *words: str) -> None:
    flow.input("words").insert(list(words))


def test_who_changes_and_waits_is_foreseen_and_reads_all_that_he_has_sealed(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow, total = cluster.install(word_count), Counter[str]()
    for epoch in range(40):
        text = f"a {'b ' * (epoch % 3)}c{epoch % 5}"
        flow.input("lines").insert([text])
        assert flow.wait(flow.seal()) == epoch
        total.update(text.split())
        changed = flow.output("counts").changes(epoch)
        assert sorted(changed) == [(epoch, (word, total[word])) for word in sorted(set(text.split()))]
    assert sum(found) >= 38, "all but the first"


def test_two_clients_that_seal_for_each_other_wait_for_what_they_mean(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(word_count)
    with timely.connect(cluster.addresses[0]) as second:
        other = second.flow(flow.index)
        for _ in range(15):
            for each in (flow, other):
                each.refresh()
                each.input("lines").insert(["x"])
                sealed = each.seal()
                assert each.wait(sealed) == sealed
        counts = [count for _, (_, count) in flow.output("counts").changes()]
        assert counts == list(range(1, 31))
    assert any(found)


def test_an_epoch_that_fails_is_an_error_of_the_wait_that_was_foreseen(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(fails_on)
    for _ in range(3):
        _words(flow, "good")
        flow.wait(flow.seal())
    _words(flow, "bad")
    sealed = flow.seal()
    with pytest.raises(timely.VertexError, match="cannot bear 'bad'"):
        flow.wait(sealed)
    assert any(found), "the last one, too, unless the error has come before the answer to the seal"


def test_what_is_refused_before_the_seal_is_told_and_nothing_is_sealed(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(build)
    for node in range(3):
        flow.input("edges").insert([(node, node + 1)])
        flow.wait(flow.seal())
    with timely.connect(cluster.addresses[0]) as second:
        second.flow(flow.index).input("edges").close()
    flow.input("edges").insert([(7, 8)])
    epoch = flow.epoch
    with pytest.raises(timely.InputClosedError, match=r"insert\(…\), input 'edges'"):
        flow.seal()
    assert flow.refresh() == epoch, "nobody has sealed"
    for node in range(3):
        flow.input("roots").insert([(node,)])
        flow.wait(flow.seal())
    assert found[-1]
    assert flow.output("distances").snapshot().num_rows == 4


def test_a_wait_that_was_foreseen_has_the_time_limit_of_the_call(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(sleeps_on, seconds=3.0)
    for _ in range(3):
        _words(flow, "quick")
        flow.wait(flow.seal())
    _words(flow, "slow")
    sealed = flow.seal()
    began = time.monotonic()
    with pytest.raises(timely.WaitTimeoutError, match=r"(after|within) 0\.8 s: "):
        flow.wait(sealed, timeout=0.8)
    assert 0.7 < time.monotonic() - began < 2.8
    assert found[-1]
    flow.wait(sealed)
    _words(flow, "quick")
    flow.wait(flow.seal())
    assert len(flow.output("words").changes()) == 5


def test_who_follows_is_told_the_limit_that_he_has_said_though_he_asks_in_pieces(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_PULSE_SECONDS", 0.25)
    flow = cluster.install(word_count)
    with pytest.raises(timely.WaitTimeoutError, match=r"after 0\.6 s: it is not sealed yet"):
        next(flow.output("counts").follow(timeout=0.6))


def test_who_seals_and_does_not_wait_asks_once_in_vain_and_no_more(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = cluster.install(word_count)
    flow.wait(flow.seal())
    sent: list[object] = []
    send = Foreseen.on_seal

    def noted(self: Foreseen, seal: Seal) -> None:
        before = len(self._expected)
        send(self, seal)
        sent.append(len(self._expected) > before)

    monkeypatch.setattr(Foreseen, "on_seal", noted)
    for _ in range(200):
        flow.input("lines").insert(["a"])
        flow.seal()
    flow.wait()
    assert sent.count(True) == 1
    assert len(flow.output("counts").changes()) == 200


@pytest.mark.parametrize("word", ["slow", "slower", "slowest", "sleepy"])
def test_a_seal_is_answered_while_the_work_on_its_epoch_goes_on(cluster: timely.Cluster, word: str) -> None:
    """Also to who has always waited at once: `seal` says that it does not wait for the work, and the decision
    and the change log that it takes 2 ms longer. Whichever worker has the slow word, 0 or 1.
    """
    flow = cluster.install(sleeps_on, word=word, seconds=2.0)
    for _ in range(40):
        _words(flow, "quick")
        flow.wait(flow.seal())
    _words(flow, word)
    began = time.monotonic()
    sealed = flow.seal()
    assert time.monotonic() - began < 1.0
    with pytest.raises(timely.WaitTimeoutError):
        flow.wait(sealed, timeout=0.3)
    flow.wait(sealed)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_is_killed_between_seal_and_wait_is_told_of(
    cluster: timely.Cluster, victim: int, found: list[bool]
) -> None:
    flow = cluster.install(sleeps_on, seconds=60.0)
    for _ in range(3):
        _words(flow, "quick")
        flow.wait(flow.seal())
    process = int(str(cluster.stats()[victim]["process"]))
    _words(flow, "slow")
    sealed = flow.seal()
    threading.Timer(0.3, os.kill, (process, signal.SIGKILL)).start()
    began = time.monotonic()
    with pytest.raises(timely.PeerError, match="SIGKILL"):
        flow.wait(sealed)
    assert time.monotonic() - began < 20.0
    assert found[-1]


@pytest.mark.usefixtures("interruptible")
def test_who_is_interrupted_in_a_wait_that_was_foreseen_may_wait_again(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(sleeps_on, seconds=2.0)
    for _ in range(3):
        _words(flow, "quick")
        flow.wait(flow.seal())
    for _ in range(3):
        _words(flow, "slow")
        sealed = flow.seal()
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            flow.wait(sealed)
        assert found[-1]
        assert flow.wait(sealed) == sealed
        assert len(flow.output("words").changes(sealed)) == 1
        _words(flow, "quick")
        flow.wait(flow.seal())


# Of one worker, a thread of this process that answers as it is told.


class _Poster:
    """Who has posted nothing."""

    index = 0

    def on_answer(self, reply: Reply) -> None:
        """Nothing is answered."""

    def on_refusal(self, error: timely.TimelyError, thread: int) -> None:
        """Nothing is refused."""


class _Worker:
    """Answers seals, and waits for epoch 0; others by `answers`, by whose will there may be none. `waits`:
    how many seconds each was to take.
    """

    def __init__(self, answers: Callable[[Wait], Reply | timely.TimelyError | None]) -> None:
        self.server = ServerSocket("tcp://127.0.0.1:0")
        self.port = int(self.server.address.rpartition(":")[2])
        self.waits: list[float] = []
        self._clients: set[bytes] = set()
        self._answers = answers
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._is_over.wait(0.002):
            for client, frames in self.server.recv_nowait():
                self._clients.add(client)
                request, _ = decode_request(frames)
                answer: Reply | timely.TimelyError | None = Reply({"complete": 1, "open": 1, "sealed": 0})
                if isinstance(request, Wait) and request.epoch:
                    self.waits.append(request.timeout_seconds)
                    answer = self._answers(request)
                if isinstance(answer, Reply):
                    self.server.send(client, encode_reply(number_of(frames), answer))
                elif answer is not None:
                    self.server.send(client, encode_error(number_of(frames), answer))
        for client in self._clients:
            self.server.send(client, encode_error(FAREWELL, timely.PeerError("the worker's last word")))
        self.server.close()

    def end(self) -> None:
        """Twice is once."""
        self._is_over.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@contextmanager
def _foreseen_by(port: int, launcher: channel.Keeper | None = None) -> Iterator[RemoteWorkers]:
    """A client of that worker that has sealed epoch 1, and not waited for it yet."""
    workers = RemoteWorkers([f"127.0.0.1:{port}"], launcher)
    try:
        workers.ask_behind(0, _Poster(), lambda behind: Seal(0, 0, behind))
        workers.ask([(0, Wait(0, "", 0, -1.0), None)])
        workers.ask_behind(0, _Poster(), lambda behind: Seal(0, 1, behind))
        yield workers
    finally:
        workers.close()


def test_a_limit_that_is_shorter_is_that_of_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of who only asks whether an epoch is complete."""
    monkeypatch.setattr(channel, "FORESEEN_SECONDS_MAX", 1e4)

    def answers(wait: Wait) -> timely.TimelyError | None:
        return None if wait.timeout_seconds < 0 else timely.WaitTimeoutError("not yet")

    with _Worker(answers) as worker, _foreseen_by(worker.port) as workers:
        with pytest.raises(timely.WaitTimeoutError, match="not yet"):
            workers.ask([(0, Wait(0, "", 1, 0.0), None)], 1e4)
        assert worker.waits == [-1.0, 0.0]


def test_answers_that_do_not_come_soon_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "FORESEEN_SECONDS_MAX", 0.01)
    is_first: list[bool] = []
    limits: list[float] = []
    gather = channel.Channel._gather

    def noted(self: channel.Channel, pending, timeout_seconds: float, *more, **said):  # type: ignore[no-untyped-def]
        limits.append(timeout_seconds)
        return gather(self, pending, timeout_seconds, *more, **said)

    def answers(wait: Wait) -> Reply | None:
        is_first.append(not is_first)
        return None if is_first[-1] else Reply({"complete": 2})

    with _Worker(answers) as worker, _foreseen_by(worker.port) as workers:
        monkeypatch.setattr(channel.Channel, "_gather", noted)
        assert workers.ask([(0, Wait(0, "", 1, 1e4), None)], 1e5) == [Reply({"complete": 2})]
        assert worker.waits[0] == -1.0 and 9e3 < worker.waits[1] < 1e4, "some of its time is over"
        assert limits[0] == 1e5 and 9e4 < limits[1] < 1e5


def test_no_more_are_left_with_a_worker_by_who_gives_up_again_and_again() -> None:
    """As who asks now and then whether what he has sealed is complete, and seals more."""

    def answers(wait: Wait) -> timely.TimelyError | None:
        return None if wait.timeout_seconds < 0 else timely.WaitTimeoutError("not yet")

    with _Worker(answers) as worker, _foreseen_by(worker.port) as workers:
        for epoch in range(1, 12):
            with pytest.raises(timely.WaitTimeoutError, match="not yet"):
                workers.ask([(0, Wait(0, "", epoch, 0.0), None)])
            workers.ask_behind(0, _Poster(), lambda behind, epoch=epoch: Seal(0, epoch + 1, behind))  # type: ignore[misc]
        assert worker.waits.count(0.0) == 11
        assert worker.waits.count(-1.0) == FORESEEN_COUNT_MAX


def test_what_is_lost_with_a_connection_that_has_come_back_is_asked_for_again() -> None:
    is_lost: list[bool] = []

    def answers(wait: Wait) -> Reply | None:
        is_lost.append(not is_lost)
        return None if is_lost[-1] else Reply({"complete": 2})

    with _Worker(answers) as worker, Relay(worker.port) as relay, _foreseen_by(relay.port) as workers:
        relay.break_off()
        sockets, deadline = workers._channel().sockets, time.monotonic() + 30
        while not (sockets.loss(0) and sockets._connections[0]._is_back):
            assert time.monotonic() < deadline
            sockets.wait(0.05)
        assert workers.ask([(0, Wait(0, "", 1, -1.0), None)]) == [Reply({"complete": 2})]


def test_who_has_lost_many_answers_with_connections_that_broke_is_foreseen_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was under way then is no reason to ask nothing any more; nor is it waited for."""
    monkeypatch.setattr(channel, "FORESEEN_SECONDS_MAX", 1e4)

    def answers(wait: Wait) -> Reply | None:
        return None if wait.timeout_seconds < 0 else Reply({"complete": wait.epoch + 1})

    with _Worker(answers) as worker, Relay(worker.port) as relay, _foreseen_by(relay.port) as workers:
        for epoch in range(1, 2 * FORESEEN_COUNT_MAX):
            deadline = time.monotonic() + 30
            while worker.waits.count(-1.0) < epoch:
                assert time.monotonic() < deadline, "it foresees no more"
                time.sleep(0.002)
            relay.break_off()
            sockets = workers._channel().sockets
            while not (sockets.losses(0) == epoch and sockets.is_joined(0)):
                assert time.monotonic() < deadline
                sockets.wait(0.05)
            asked = Wait(0, "", epoch, 1e4)
            assert workers.ask([(0, asked, None)], 1e5) == [Reply({"complete": epoch + 1})]
            workers.ask_behind(0, _Poster(), lambda behind, epoch=epoch: Seal(0, epoch + 1, behind))  # type: ignore[misc]


@pytest.mark.parametrize("who", ["keeper", "worker"])
def test_who_knows_why_a_worker_is_lost_is_heard(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though that takes longer than answers that were foreseen are waited for."""
    monkeypatch.setattr(channel, "FORESEEN_SECONDS_MAX", 0.1)
    monkeypatch.setattr(channel, "KEEPER_SECONDS_MAX", 100.0 if who == "keeper" else 1.0)
    is_ended = False
    looks = 0

    class Keeps:
        """Hears of it late, or never."""

        descriptors: list[int] = []
        knows_best = True

        def check(self) -> None:
            nonlocal looks
            looks += is_ended
            if looks > 60 and who == "keeper":  # each 20 ms after the other
                raise timely.PeerError("the keeper's word")

        def stop(self) -> None:
            """Nothing is kept."""

    with _Worker(lambda wait: None) as worker, _foreseen_by(worker.port, Keeps()) as workers:
        worker.end()
        sockets, deadline = workers._channel().sockets, time.monotonic() + 30
        while not sockets.loss(0):
            assert time.monotonic() < deadline
            sockets.wait(0.05)
        is_ended = True
        with pytest.raises(timely.PeerError, match=f"the {who}'s"):
            workers.ask([(0, Wait(0, "", 1, -1.0), None)], 1e4)
