"""What one thread asks of workers: what is found without waiting, and a wait of which some time is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

import timely
from timely.client.remote import channel, foreseen
from timely.client.remote.channel import Channel, _limit_of, _patience_of, _shortened
from timely.limits import FORESEEN_SECONDS_MAX
from timely.wire.frames.messages import encode_error, encode_reply
from timely.wire.requests import Changes, Hello, Reply, Seal, Snapshot, Wait
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
    made = Channel(addresses, 2.5, None, threading.Lock(), None)
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


@pytest.mark.parametrize("early", [[], [0], [1], [1, 0]], ids=["none", "of 0", "of 1", "of both"])
def test_answers_that_were_foreseen_are_in_the_order_of_workers_whenever_they_come(
    asking: Channel, early: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreseen, "_FRESH_SECONDS", 1e9)
    sockets = cast("_Sockets", asking.sockets)
    answers = [Reply({"complete": 20}), Reply({"complete": 21})]
    asking._send(0, Seal(0, 0), None)
    for epoch, first in ((0, 2), (1, 5)):  # the numbers of waits, behind those of seals
        for worker in (0, 1):
            if epoch and worker in early:
                continue
            sockets.reads(worker, first + worker, answers[worker])
        for worker in early if epoch else []:
            asking._foreseen.take(worker, first + worker, answers[worker])
        asked = [(worker, Wait(0, "", epoch, -1.0), None) for worker in range(2)]
        assert asking.ask(asked, 1e4, 1e4) == answers
        if not epoch:
            asking._send(0, Seal(0, 1), None)
    assert not any(sockets.read.values())
    assert asking._number == 6, "nothing was asked twice"


def test_a_wait_that_is_asked_later_ends_when_it_would_have() -> None:
    assert _shortened(Wait(0, "", 1, 2.0), 0.5) == Wait(0, "", 1, 1.5, 0.5)
    assert _shortened(Wait(0, "", 1, 0.25), 0.5) == Wait(0, "", 1, 0.0, 0.25)
    assert _shortened(Wait(0, "", 1, 1.5, 0.5), 0.5) == Wait(0, "", 1, 1.0, 1.0)
    assert _shortened(Wait(0, "", 1, -1.0), 0.5) == Wait(0, "", 1, -1.0)
    assert _shortened(Hello(), 0.5) == Hello()


def test_the_limit_that_messages_say_is_the_callers() -> None:
    assert _limit_of(Wait(0, "", 1, 1.5, 0.5), 9.0) == 2.0
    assert (
        _limit_of(Snapshot(0, "out", 1, 1.5), 9.0)
        == _limit_of(Changes(0, "", "", 0, 1, True, 1.5), 9.0)
        == 1.5
    )
    assert _limit_of(Wait(0, "", 1, -1.0), 9.0) == _limit_of(Hello(), 9.0) == 9.0


def test_what_was_foreseen_is_waited_for_no_longer_than_the_call_itself_would() -> None:
    assert _patience_of(Wait(0, "", 1, -1.0)) == _patience_of(Hello()) == FORESEEN_SECONDS_MAX
    assert _patience_of(Wait(0, "", 1, FORESEEN_SECONDS_MAX / 2)) == FORESEEN_SECONDS_MAX / 2
    assert _patience_of(Wait(0, "", 1, 2 * FORESEEN_SECONDS_MAX)) == FORESEEN_SECONDS_MAX
    assert _patience_of(Wait(0, "", 1, 0.0)) == 0.0
