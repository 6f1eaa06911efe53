"""Seals that wait for their epoch, at real workers: the wait is sent with the seal, and nothing but time
depends on whether its answers come soon.
"""

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
from timely.client.remote import channel
from timely.client.remote.channel import Channel
from timely.client.remote.workers import RemoteWorkers
from timely.wire.frames.messages import FAREWELL, decode_request, encode_error, encode_reply, number_of
from timely.wire.requests import Decide, Progress, Reply, Request
from timely.wire.transport.server_socket import ServerSocket


@pytest.fixture
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as made:
        yield made


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each seal, whether the waits that were sent with it were answered in time."""
    noted: list[bool] = []
    have_waited = Channel._have_waited

    def noting(self: Channel, dataflow: int, epoch: int, seconds: float) -> bool:
        noted.append(have_waited(self, dataflow, epoch, seconds))
        return noted[-1]

    monkeypatch.setattr(Channel, "_have_waited", noting)
    return noted


def _words(flow: timely.Flow, *words: str) -> None:
    flow.input("words").insert(list(words))


def test_who_seals_and_waits_reads_all_of_the_epoch(cluster: timely.Cluster, soon: list[bool]) -> None:
    flow, total = cluster.install(word_count), Counter[str]()
    for epoch in range(40):
        text = f"a {'b ' * (epoch % 3)}c{epoch % 5}"
        flow.input("lines").insert([text])
        assert flow.seal(wait=True) == epoch and flow.epoch == epoch + 1
        assert flow.output("counts").complete_before() == epoch + 1
        total.update(text.split())
        changed = flow.output("counts").changes(epoch)
        assert sorted(changed) == [(epoch, (word, total[word])) for word in sorted(set(text.split()))]
    assert sum(soon) >= 10, "also if the machine is busy"


def _await_rows(address: str, dataflow: int, rows: int) -> None:
    """Until so many wait at a worker. Which of two clients it hears first is chance."""
    deadline = time.monotonic() + 20
    with timely.connect(address) as watching:
        while True:
            (first, *_) = watching.stats()
            inputs = first["dataflows"][dataflow]["inputs"]  # type: ignore[index]  # plain values
            if sum(one["rows_waiting"] for one in inputs) == rows:
                return
            assert time.monotonic() < deadline


def test_two_clients_that_seal_for_each_other_wait_for_what_they_mean(
    cluster: timely.Cluster, soon: list[bool]
) -> None:
    flow = cluster.install(word_count)
    with timely.connect(cluster.addresses[0]) as second:
        other = second.flow(flow.index)
        for _ in range(15):
            for each in (flow, other):
                each.refresh()
                each.input("lines").insert(["x"])
                sealed = each.seal(wait=True)
                assert each.output("counts").complete_before() > sealed
        counts = [count for _, (_, count) in flow.output("counts").changes()]
        assert counts == list(range(1, 31))
        flow.input("lines").insert(["x"])
        other.input("lines").insert(["x"])
        _await_rows(cluster.addresses[0], flow.index, 2)
        assert flow.seal(wait=True) == 30
        assert other.seal(wait=True) in (30, 31), "30 was sealed meanwhile, perhaps before the row had come"
        other.input("lines").insert(["x"])
        flow.refresh()
        flow.seal(wait=True)
        other.seal()
        other.input("lines").insert(["x"])  # into a later epoch than this client knows
        sealed = other.seal(wait=True)
        assert other.output("counts").complete_before() > sealed
        assert flow.output("counts").changes(sealed)[-1] == (sealed, ("x", 34))
    assert any(soon)


def test_an_epoch_that_fails_is_an_error_of_the_seal_that_waits_and_is_sealed(
    cluster: timely.Cluster,
) -> None:
    flow = cluster.install(fails_on)
    for _ in range(3):
        _words(flow, "good")
        flow.seal(wait=True)
    _words(flow, "bad")
    with pytest.raises(timely.VertexError, match="cannot bear 'bad'"):
        flow.seal(wait=True)
    assert flow.epoch == 4


def test_what_is_refused_before_the_seal_is_told_and_nothing_is_sealed(
    cluster: timely.Cluster, soon: list[bool]
) -> None:
    flow = cluster.install(build)
    for node in range(3):
        flow.input("edges").insert([(node, node + 1)])
        flow.seal(wait=True)
    with timely.connect(cluster.addresses[0]) as second:
        second.flow(flow.index).input("edges").close()
    flow.input("edges").insert([(7, 8)])
    epoch, waited = flow.epoch, len(soon)
    with pytest.raises(timely.InputClosedError, match=r"insert\(…\), input 'edges'"):
        flow.seal(wait=True)
    assert len(soon) == waited, "nobody waits for an epoch that is not sealed"
    assert flow.refresh() == epoch, "nobody has sealed"
    for node in range(3):
        flow.input("roots").insert([(node,)])
        flow.seal(wait=True)
    time.sleep(0.6)
    flow.input("roots").insert([(3,)])
    flow.seal(wait=True)
    assert soon[-1], "it is sent with the seal again"
    assert flow.output("distances").snapshot().num_rows == 4


@pytest.mark.parametrize("timeout", [0.2, 0.8])
def test_a_seal_that_waits_has_the_time_limit_of_the_call(cluster: timely.Cluster, timeout: float) -> None:
    flow = cluster.install(sleeps_on, seconds=3.0)
    for _ in range(3):
        _words(flow, "quick")
        flow.seal(wait=True, timeout=60.0)
    _words(flow, "slow")
    began = time.monotonic()
    with pytest.raises(timely.WaitTimeoutError, match=rf"(after|within) {timeout:g} s: "):
        flow.seal(wait=True, timeout=timeout)
    assert 0.9 * timeout < time.monotonic() - began < timeout + 2.0
    assert flow.epoch == 4, "the epoch is sealed"
    flow.wait(3)
    _words(flow, "quick")
    flow.seal(wait=True)
    assert len(flow.output("words").changes()) == 5


def test_epochs_that_are_sealed_otherwise_are_waited_for_as_well(cluster: timely.Cluster) -> None:
    import pyarrow as pa

    flow = cluster.install(build)
    rows = pa.table({"node": [1], "diff": [1]})
    flow.input("roots").append(rows, writer="w", sequence=0)
    assert flow.seal([("roots", "w", 0)], wait=True) == 0
    assert flow.output("distances").complete_before() == 1
    assert flow.seal(through=7, wait=True, timeout=60.0) == 7
    assert flow.output("distances").complete_before() == 8
    assert flow.seal(through=3, wait=True) == 3
    with pytest.raises(timely.MisuseError, match=r"expected appends have not arrived"):
        flow.seal([("roots", "w", 1)], wait=True)
    with pytest.raises(timely.MisuseError, match=r"write seal\(wait=True, timeout=…\)"):
        flow.seal(timeout=1.0)


def test_who_follows_is_told_the_limit_that_he_has_said_though_he_asks_in_pieces(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_PULSE_SECONDS", 0.25)
    flow = cluster.install(word_count)
    with pytest.raises(timely.WaitTimeoutError, match=r"after 0\.6 s: it is not sealed yet"):
        next(flow.output("counts").follow(timeout=0.6))


def test_who_does_not_wait_sends_no_wait(cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = cluster.install(word_count)
    flow.seal(wait=True)
    sent: list[Request] = []
    send = Channel._send

    def noted(self: Channel, worker: int, request: Request, rows: object) -> int:
        sent.append(request)
        return send(self, worker, request, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(Channel, "_send", noted)
    for _ in range(20):
        flow.input("lines").insert(["a"])
        flow.seal()
    assert not any(isinstance(request, Progress) for request in sent)
    flow.wait()
    assert len(flow.output("counts").changes()) == 20


@pytest.mark.parametrize("word", ["slow", "slower", "slowest", "sleepy"])
def test_a_seal_is_answered_while_the_work_on_its_epoch_goes_on(cluster: timely.Cluster, word: str) -> None:
    """Whichever worker has the slow word, 0 or 1."""
    flow = cluster.install(sleeps_on, word=word, seconds=2.0)
    for _ in range(40):
        _words(flow, "quick")
        flow.seal(wait=True)
    _words(flow, word)
    sealed = flow.seal()
    with pytest.raises(timely.WaitTimeoutError):  # the work takes longer than this and the answer together
        flow.wait(sealed, timeout=0.3)
    flow.wait(sealed)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_is_killed_while_a_seal_waits_is_told_of(cluster: timely.Cluster, victim: int) -> None:
    flow = cluster.install(sleeps_on, seconds=60.0)
    for _ in range(3):
        _words(flow, "quick")
        flow.seal(wait=True)
    process = int(str(cluster.stats()[victim]["process"]))
    _words(flow, "slow")
    threading.Timer(0.3, os.kill, (process, signal.SIGKILL)).start()
    began = time.monotonic()
    with pytest.raises(timely.PeerError, match="SIGKILL"):
        flow.seal(wait=True)
    assert time.monotonic() - began < 20.0


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("seconds", [0.2, 0.8])
def test_who_is_interrupted_in_a_seal_that_waits_may_wait_again(
    cluster: timely.Cluster, seconds: float
) -> None:
    flow = cluster.install(sleeps_on, seconds=2.0)
    for _ in range(3):
        _words(flow, "quick")
        flow.seal(wait=True)
    for _ in range(2):
        _words(flow, "slow")
        sealed = flow.epoch
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt) as caught:
            flow.seal(wait=True)
        assert any(f"waiting for epoch {sealed} of" in note for note in caught.value.__notes__)
        assert flow.epoch == sealed + 1
        assert flow.wait(sealed) == sealed
        assert len(flow.output("words").changes(sealed)) == 1
        _words(flow, "quick")
        flow.seal(wait=True)


# Of one worker, a thread of this process that answers as it is told.


class _Poster:
    """A client of dataflow 0 that has posted nothing."""

    index = 0
    epoch = 0

    def check_refused(self) -> None:
        """Nothing is refused."""

    def on_answer(self, reply: Reply) -> None:
        """Nothing is answered."""

    def on_refusal(self, error: timely.TimelyError, thread: int) -> None:
        """Nothing is refused."""


class _Worker:
    """Answers seals, and waits by `answers`, by whose will there may be no answer. `waits`: how many seconds
    each was to take.
    """

    def __init__(self, answers: Callable[[Progress], Reply | timely.TimelyError | None]) -> None:
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
                number = number_of(frames)
                if isinstance(request, Decide):
                    sealed = Reply({"open": request.epoch + 1, "sealed": request.epoch})
                    self.server.send(client, encode_reply(number, sealed))
                    if request.waits >= 0.0:
                        self._wait(client, number + 1, Progress(0, "", request.epoch, request.waits))
                elif isinstance(request, Progress):
                    self._wait(client, number, request)
        for client in self._clients:
            self.server.send(client, encode_error(FAREWELL, timely.PeerError("the worker's last word")))
        self.server.close()

    def _wait(self, client: bytes, number: int, wait: Progress) -> None:
        self.waits.append(wait.timeout_seconds)
        answer = self._answers(wait)
        if isinstance(answer, Reply):
            self.server.send(client, encode_reply(number, answer))
        elif answer is not None:
            self.server.send(client, encode_error(number, answer))

    def end(self) -> None:
        """Twice is once."""
        self._is_over.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@contextmanager
def _client_of(port: int, launcher: channel.Keeper | None = None) -> Iterator[RemoteWorkers]:
    workers = RemoteWorkers([f"127.0.0.1:{port}"], launcher)
    try:
        yield workers
    finally:
        workers.close()


def test_answers_that_do_not_come_soon_are_not_waited_for_and_the_epoch_is_sealed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel, "SEALED_WAIT_SECONDS_MAX", 0.05)
    with _Worker(lambda wait: None) as worker, _client_of(worker.port) as workers:
        poster = _Poster()
        assert workers.seal(poster, -1.0) == (0, False)
        assert workers.seal(poster, -1.0) == (1, False)
        time.sleep(0.06)
        assert workers.seal(poster, 0.01) == (2, False)
        assert worker.waits == [0.05, 0.01], "none lies there beside another"
        assert poster.epoch == 3


def test_a_connection_that_breaks_while_a_seal_waits_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of every call that waits for an answer; the epoch is known to be sealed."""
    monkeypatch.setattr(channel, "SEALED_WAIT_SECONDS_MAX", 1e4)
    poster = _Poster()
    with _Worker(lambda wait: None) as worker, Relay(worker.port) as relay, _client_of(relay.port) as workers:

        def break_off() -> None:
            deadline = time.monotonic() + 30
            while not poster.epoch and time.monotonic() < deadline:
                time.sleep(0.002)
            relay.break_off()

        breaking = threading.Thread(target=break_off)
        breaking.start()
        with pytest.raises(timely.PeerError, match="lost"):
            workers.seal(poster, -1.0)
        breaking.join()
        assert poster.epoch == 1


@pytest.mark.parametrize("who", ["keeper", "worker"])
def test_who_knows_why_a_worker_is_lost_is_heard(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though that takes longer than the answers to waits that are sent with a seal are waited for."""
    monkeypatch.setattr(channel, "SEALED_WAIT_SECONDS_MAX", 0.1)
    monkeypatch.setattr(channel, "KEEPER_SECONDS_MAX", 100.0 if who == "keeper" else 1.0)
    looks = 0

    class Keeps:
        """Hears of it late, or never."""

        descriptors: list[int] = []
        knows_best = True

        def check(self) -> None:
            nonlocal looks
            looks += is_ended.is_set()
            if looks > 60 and who == "keeper":  # each 20 ms after the other
                raise timely.PeerError("the keeper's word")

        def stop(self) -> None:
            """Nothing is kept."""

    is_ended = threading.Event()

    def answer(wait: Progress) -> None:
        worker._is_over.set()
        is_ended.set()

    with (
        _Worker(answer) as worker,
        _client_of(worker.port, Keeps()) as workers,
        pytest.raises(timely.PeerError, match=f"the {who}'s"),
    ):
        workers.seal(_Poster(), 1e4)
