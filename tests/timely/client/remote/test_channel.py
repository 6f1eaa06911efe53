"""What one thread asks of workers: what is found without waiting, and a seal that a wait is sent with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import timely
from timely.client.installed import Members
from timely.client.remote import channel
from timely.client.remote.channel import Channel, _limit_of
from timely.limits import SEALED_WAIT_SECONDS_MAX
from timely.wire.batch import Frame
from timely.wire.frames.messages import encode_error, encode_reply
from timely.wire.requests import Decide, Hello, Progress, Read, Reply, Request
from timely.wire.transport.zeromq import ClientSockets


class _Sockets:
    """In place of those of a client: what was read, what is lost, and how often more is waited for."""

    def __init__(self) -> None:
        self.read: dict[int, list[list[memoryview]]] = {}
        self.coming: list[tuple[int, list[memoryview]]] = []
        self.lost = ""
        self.waits = 0

    def reads(self, worker: int, number: int, reply: Reply) -> None:
        """It has come, and nobody has asked for it yet."""
        self.read.setdefault(worker, []).append([*map(memoryview, encode_reply(number, reply))])

    def is_losing(self) -> bool:
        return bool(self.lost)

    def has_arrived(self) -> bool:
        return any(self.read.values())

    def loss(self, worker: int) -> str:
        return self.lost

    def refusal(self, worker: int) -> str:
        return ""

    def recv_nowait(self, worker: int) -> list[memoryview] | None:
        return self.read[worker].pop() if self.read.get(worker) else None

    def wait(self, seconds: float) -> list[int] | None:
        self.waits += 1
        return [self.coming[0][0]] if self.coming else None

    def heard(self, worker: int) -> list[list[memoryview]]:
        return [self.coming.pop(0)[1]]

    def forgive(self, worker: int) -> None:
        """Nothing comes back."""

    def choose(self, worker: int) -> None:
        """There is one way only."""

    def send(self, worker: int, frames: object) -> None:
        """Nobody listens."""


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Channel]:
    """Of two workers, by `_Sockets`."""
    addresses = [f"ipc://{tmp_path}/{worker}" for worker in range(2)]
    made = Channel(addresses, Members(2, 0), 2.5, None, threading.Lock(), None)
    sockets, made.sockets = made.sockets, cast("ClientSockets", _Sockets())
    yield made
    sockets.close()


def test_what_was_read_already_is_not_waited_for(asking: Channel) -> None:
    """Nothing wakes who waits for it."""
    sockets = cast("_Sockets", asking.sockets)
    sockets.reads(0, 1, Reply({"index": 0}))
    assert asking.ask([(0, Hello(), None)], 1e4, 1e4) == [Reply({"index": 0})]
    assert not sockets.waits


def test_what_is_known_to_be_lost_is_not_waited_for(asking: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "VERDICT_SECONDS_MAX", 0.0)
    sockets = cast("_Sockets", asking.sockets)
    sockets.lost = "it is gone"
    with pytest.raises(timely.PeerError, match="it is gone"):
        asking.ask([(0, Hello(), None)], 1e4, 1e4)
    assert not sockets.waits


def test_a_refusal_of_one_worker_is_told_without_waiting_for_another(asking: Channel) -> None:
    sockets = cast("_Sockets", asking.sockets)
    refused = encode_error(1, timely.MisuseError("not so"))
    sockets.coming.append((0, [*map(memoryview, refused)]))
    with pytest.raises(timely.MisuseError, match="not so"):
        asking.ask([(worker, Hello(), None) for worker in range(2)], 1e4, 1e4)
    assert sockets.waits == 1


def test_who_has_all_answers_is_not_told_of_a_loss(asking: Channel) -> None:
    """What is lost by then the next request says."""

    class Keeps:
        """Knows of a loss."""

        descriptors: list[int] = []
        knows_best = True

        def check(self) -> None:
            raise timely.PeerError("it is gone")

        def stop(self) -> None:
            """Nothing is kept."""

    asking._launcher = Keeps()
    sockets = cast("_Sockets", asking.sockets)
    sockets.reads(0, 1, Reply({"index": 0}))
    assert asking.ask([(0, Hello(), None)], 1e4, 1e4) == [Reply({"index": 0})]
    with pytest.raises(timely.PeerError, match="it is gone"):
        asking.ask([(0, Hello(), None)], 1e4, 1e4)


class _Poster:
    """A client of dataflow 0 that has posted nothing."""

    index = 0

    def __init__(self) -> None:
        self.epoch = 0
        self.refused: timely.TimelyError | None = None

    def check_refused(self) -> None:
        if self.refused is not None:
            raise self.refused

    def on_answer(self, reply: Reply) -> None:
        """Nothing is answered."""

    def on_refusal(self, error: timely.TimelyError, thread: int) -> None:
        """Nothing is refused."""


_SEALED = Reply({"open": 1, "sealed": 0})
_DONE = Reply({"complete": 1})


@pytest.fixture
def sent(asking: Channel, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Request]]:
    """The requests that are sent, each with its worker."""
    noted: list[tuple[int, Request]] = []
    send = asking._send

    def noting(worker: int, request: Request, rows: Frame | None) -> int:
        noted.append((worker, request))
        return send(worker, request, rows)

    monkeypatch.setattr(asking, "_send", noting)
    monkeypatch.setattr(asking.posts, "_send", noting)
    return noted


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]], ids=str)
def test_a_seal_and_the_waits_with_it_are_answered_in_any_order(
    asking: Channel, order: list[int], sent: list[tuple[int, Request]]
) -> None:
    sockets, poster = cast("_Sockets", asking.sockets), _Poster()
    coming = [(0, _SEALED), (0, _DONE), (1, _DONE)]
    for place in order:
        worker, reply = coming[place]
        sockets.coming.append((worker, [*map(memoryview, encode_reply(1 + place, reply))]))
    assert asking.seal(poster, -1.0) == (0, True)
    seal = Decide(0, 0, True, waits=SEALED_WAIT_SECONDS_MAX)
    assert sent == [(0, seal), (1, Progress(0, "", 0, SEALED_WAIT_SECONDS_MAX))]
    assert poster.epoch == 1 and not asking._early and not sockets.coming


def test_the_epoch_of_a_client_never_goes_back_though_another_thread_seals_meanwhile(
    asking: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next seal would complete an epoch that is sealed, and leave the rows of that thread open."""
    poster, integer = _Poster(), Reply.integer

    def meanwhile(reply: Reply, name: str) -> int:
        found = integer(reply, name)
        if name == "open":
            poster.epoch = 7
        return found

    monkeypatch.setattr(Reply, "integer", meanwhile)
    cast("_Sockets", asking.sockets).reads(0, 1, _SEALED)
    assert asking.seal(poster, None) == (0, False)
    assert poster.epoch == 7


def test_a_seal_without_a_limit_for_waiting_goes_alone(
    asking: Channel, sent: list[tuple[int, Request]]
) -> None:
    cast("_Sockets", asking.sockets).reads(0, 1, _SEALED)
    assert asking.seal(_Poster(), None) == (0, False)
    assert sent == [(0, Decide(0, 0, True))]


@pytest.mark.parametrize(("known", "opened"), [(0, 9), (12, 12)])
def test_behind_a_seal_the_open_epoch_is_the_latest_that_is_known(
    asking: Channel, known: int, opened: int
) -> None:
    """Another client has sealed more, or another thread of this one has heard of that meanwhile."""
    poster = _Poster()
    answer = asking._answer

    def hears(worker: int, number: int, seconds: float) -> Reply | timely.TimelyError:
        poster.epoch = known
        return answer(worker, number, seconds)

    asking.posts._gather = hears
    cast("_Sockets", asking.sockets).reads(0, 1, Reply({"open": 9, "sealed": 0}))
    assert asking.seal(poster, None) == (0, False)
    assert poster.epoch == opened


def test_a_wait_that_is_sent_with_a_seal_lies_with_workers_no_longer_than_the_caller_has_said(
    asking: Channel, sent: list[tuple[int, Request]]
) -> None:
    sockets = cast("_Sockets", asking.sockets)
    for worker, number, reply in ((0, 2, _DONE), (0, 1, _SEALED), (1, 3, _DONE)):
        sockets.reads(worker, number, reply)
    assert asking.seal(_Poster(), SEALED_WAIT_SECONDS_MAX / 2) == (0, True)
    limit = SEALED_WAIT_SECONDS_MAX / 2
    assert sent == [(0, Decide(0, 0, True, waits=limit)), (1, Progress(0, "", 0, limit))]


@pytest.mark.parametrize("why", ["refused", "not known", "later", "not yet"])
def test_after_a_wait_that_came_to_nothing_none_is_sent_with_a_seal_while_it_may_lie_there(
    asking: Channel, sent: list[tuple[int, Request]], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a client whose seals are refused again and again would fill the places that it has there."""
    now = [100.0]
    monkeypatch.setattr(channel, "time", SimpleNamespace(monotonic=lambda: now[0]))
    sockets, poster = cast("_Sockets", asking.sockets), _Poster()
    if why == "refused":
        sockets.coming.append((0, [*map(memoryview, encode_error(1, timely.MisuseError("not so")))]))
        with pytest.raises(timely.MisuseError, match="not so"):
            asking.seal(poster, -1.0)
    else:
        sealed = {"not known": -1, "later": 3, "not yet": 0}[why]
        if why == "not yet":
            late = encode_error(2, timely.WaitTimeoutError("not yet"))
            sockets.coming.append((0, [*map(memoryview, late)]))
        reply = Reply({"open": sealed + 1, "sealed": sealed})
        sockets.coming.append((0, [*map(memoryview, encode_reply(1, reply))]))
        assert asking.seal(poster, -1.0) == (sealed, False)
        assert poster.epoch == sealed + 1
    assert len(sent) == 2 and not asking._early
    for number, seconds in ((4, 0.0), (5, SEALED_WAIT_SECONDS_MAX / 2)):
        now[0] += seconds
        sockets.reads(0, number, Reply({"open": poster.epoch + 1, "sealed": poster.epoch}))
        assert not asking.seal(poster, -1.0)[1]
    assert len(sent) == 4, "they went alone"
    now[0] += SEALED_WAIT_SECONDS_MAX / 2
    epoch = poster.epoch
    for worker, number, reply in (
        (0, 7, _DONE),
        (0, 6, Reply({"open": epoch + 1, "sealed": epoch})),
        (1, 8, _DONE),
    ):
        sockets.reads(worker, number, reply)
    assert asking.seal(poster, -1.0) == (epoch, True)
    assert len(sent) == 6


def test_what_is_refused_before_a_seal_is_raised_and_nothing_is_sent(
    asking: Channel, sent: list[tuple[int, Request]]
) -> None:
    poster = _Poster()
    poster.refused = timely.MisuseError("not so")
    with pytest.raises(timely.MisuseError, match="not so"):
        asking.seal(poster, -1.0)
    assert sent == [] and poster.epoch == 0


def test_the_limit_that_messages_say_is_the_callers() -> None:
    assert _limit_of(Progress(0, "", 1, 1.5, 0.5), 9.0) == 2.0
    assert (
        _limit_of(Read(0, "out", -1, 2, 1.5), 9.0)
        == _limit_of(Read(0, "", 0, 1, 1.5, is_open_ended=True), 9.0)
        == 1.5
    )
    assert _limit_of(Progress(0, "", 1, -1.0), 9.0) == _limit_of(Hello(), 9.0) == 9.0
