"""Answers to posted insertions wait for the next answer to the same client, and keep their order."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf
from typing import cast

import pytest

from timely.limits import POSTED_COUNT_MAX
from timely.wire.batch import Frame
from timely.wire.transport.server_socket import ServerSocket
from timely.worker.answers.outbox import Outbox


class Clients:
    def __init__(self) -> None:
        self.sent: list[tuple[bytes, list[Frame]]] = []

    def send(self, client: bytes, *answers: Sequence[Frame]) -> None:
        self.sent += [(client, [*frames]) for frames in answers]


def made() -> tuple[Outbox, Clients]:
    clients = Clients()
    return Outbox(cast("ServerSocket", clients)), clients


def test_later_answers_go_before_the_next_one_to_that_client() -> None:
    outbox, clients = made()
    outbox.send_later(b"a", [b"1"])
    outbox.send_later(b"b", [b"2"])
    outbox.send(b"a", [b"3"])
    assert clients.sent == [(b"a", [b"1"]), (b"a", [b"3"])] and outbox.has_unsent
    outbox.send_unsent(but={b"b"})
    assert len(clients.sent) == 2
    outbox.send_unsent()
    assert clients.sent[2:] == [(b"b", [b"2"])] and not outbox.has_unsent


def test_no_more_wait_than_a_client_may_have_outstanding() -> None:
    outbox, clients = made()
    for number in range(POSTED_COUNT_MAX):
        assert not clients.sent
        outbox.send_later(b"a", [bytes([number % 256])])
    assert len(clients.sent) == POSTED_COUNT_MAX and not outbox.has_unsent


def test_clients_may_listen_elsewhere_meanwhile() -> None:
    outbox, before = made()
    after = Clients()
    outbox.send_later(b"a", [b"1"])
    outbox.clients = cast("ServerSocket", after)
    outbox.send_unsent()
    assert before.sent == [] and after.sent == [(b"a", [b"1"])]


def test_an_answer_that_is_held_goes_with_the_next_one_or_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 10.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    outbox, clients = made()
    outbox.send_later(b"a", [b"posted"])
    assert outbox.has_posts_only
    outbox.hold(b"a", [b"sealed"], 0.5)
    assert not outbox.has_posts_only
    outbox.send_later(b"b", [b"other"])
    assert outbox.held_until == 10.5
    outbox.send_unsent()
    assert clients.sent == [(b"b", [b"other"])] and outbox.has_unsent
    outbox.send(b"a", [b"done"])
    assert clients.sent[1:] == [(b"a", [b"posted"]), (b"a", [b"sealed"]), (b"a", [b"done"])]
    assert outbox.held_until == inf and not outbox.has_unsent

    outbox.hold(b"a", [b"sealed again"], 0.5)
    now = 10.2
    outbox.hold(b"a", [b"and again"], 0.5)
    assert outbox.held_until == 10.5, "the first one is not kept back for longer"
    now = 10.5
    outbox.send_unsent()
    assert clients.sent[4:] == [(b"a", [b"sealed again"]), (b"a", [b"and again"])]
    assert outbox.held_until == inf
