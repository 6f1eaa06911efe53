"""Answers that wait for the next one to the same client, keep their order, and go into it if they can."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf
from typing import cast

import pyarrow as pa
import pytest

from timely.limits import POSTED_COUNT_MAX
from timely.wire.batch import Frame
from timely.wire.frames.messages import decode_reply, encode_reply, number_of
from timely.wire.requests import IN_OPEN, Decide, Deliver, Reply, Value
from timely.wire.transport.server_socket import ServerSocket
from timely.worker.answers.outbox import Outbox

NONE = Reply()


class Clients:
    def __init__(self) -> None:
        self.sent: list[tuple[bytes, int]] = []
        self.values: list[dict[str, Value]] = []

    def send(self, client: bytes, *answers: Sequence[Frame]) -> None:
        for frames in answers:
            views = [memoryview(frame) for frame in frames]
            answer = decode_reply(views)
            assert isinstance(answer, Reply)
            self.sent.append((client, number_of(views)))
            self.values.append(answer.values)


def made() -> tuple[Outbox, Clients]:
    clients = Clients()
    return Outbox(cast("ServerSocket", clients)), clients


def post(sequence: int = 0, dataflow: int = 0) -> Deliver:
    return Deliver(dataflow, "in", "w", sequence, IN_OPEN, 0, 1)


def seal(*sequences: int) -> Decide:
    """One that names posts."""
    return Decide(0, 3, True, [["in", "w", sequence] for sequence in sequences], waits=1.0)


def test_later_answers_go_before_the_next_one_to_that_client() -> None:
    outbox, clients = made()
    outbox.send_later(b"a", 1, Reply({"epoch": 7}), post())
    outbox.send_later(b"b", 2, NONE, post())
    outbox.send(b"a", encode_reply(3, NONE))
    assert clients.sent == [(b"a", 1), (b"a", 3)] and outbox.has_unsent
    assert clients.values == [{"epoch": 7}, {}]
    outbox.send_unsent(but={b"b"})
    assert len(clients.sent) == 2
    outbox.send_unsent()
    assert clients.sent[2:] == [(b"b", 2)] and not outbox.has_unsent


def test_no_more_wait_than_a_client_may_have_outstanding() -> None:
    outbox, clients = made()
    for number in range(POSTED_COUNT_MAX):
        assert not clients.sent
        outbox.send_later(b"a", number, NONE, post())
    assert len(clients.sent) == POSTED_COUNT_MAX and not outbox.has_unsent


def test_clients_may_listen_elsewhere_meanwhile() -> None:
    outbox, before = made()
    after = Clients()
    outbox.send_later(b"a", 1, NONE, post())
    outbox.clients = cast("ServerSocket", after)
    outbox.send_unsent()
    assert before.sent == [] and after.sent == [(b"a", 1)]


def test_an_answer_that_is_held_goes_with_the_next_one_or_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 10.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    outbox, clients = made()
    outbox.send_later(b"a", 1, NONE, post())
    assert outbox.has_posts_only
    outbox.hold(b"a", 2, NONE, 0.5)
    assert not outbox.has_posts_only
    outbox.send_later(b"b", 1, NONE, post())
    assert outbox.held_until == 10.5
    outbox.send_unsent()
    assert clients.sent == [(b"b", 1)] and outbox.has_unsent
    outbox.send(b"a", encode_reply(9, NONE))
    assert clients.sent[1:] == [(b"a", 1), (b"a", 2), (b"a", 9)]
    assert outbox.held_until == inf and not outbox.has_unsent

    outbox.hold(b"a", 10, NONE, 0.5)
    now = 10.2
    outbox.hold(b"a", 20, NONE, 0.5)
    assert outbox.held_until == 10.5, "the first one is not kept back for longer"
    now = 10.5
    outbox.send_unsent()
    assert clients.sent[4:] == [(b"a", 10), (b"a", 20)]
    assert outbox.held_until == inf


def test_the_answer_to_a_wait_is_in_that_to_its_seal() -> None:
    outbox, clients = made()
    outbox.send_later(b"a", 1, NONE, post())
    outbox.hold(b"a", 2, Reply({"open": 4, "sealed": 3}), 60.0)
    outbox.answer(b"a", 3, Reply({"complete": 4}))
    assert clients.sent == [(b"a", 1), (b"a", 2)]
    assert clients.values[1] == {"open": 4, "sealed": 3, "complete": 4}
    assert outbox.held_until == inf and not outbox.has_unsent


@pytest.mark.parametrize("last", ["another wait", "a post", "a seal of another client", "a seal without one"])
def test_an_answer_is_in_no_other_one(last: str) -> None:
    outbox, clients = made()
    if last == "another wait":
        outbox.hold(b"a", 1, NONE, 60.0)
    elif last == "a post":
        outbox.hold(b"a", 1, NONE, 60.0)
        outbox.send_later(b"a", 2, NONE, post())
    elif last == "a seal of another client":
        outbox.hold(b"b", 2, NONE, 60.0)
    else:
        outbox.answer(b"a", 2, NONE)
    outbox.answer(b"a", 3, Reply({"complete": 4}))
    assert clients.sent[-1] == (b"a", 3) and clients.values[-1] == {"complete": 4}
    assert clients.values.count({"complete": 4}) == 1


def test_an_answer_with_a_table_has_a_message_of_its_own() -> None:
    outbox, clients = made()
    outbox.hold(b"a", 2, NONE, 60.0)
    outbox.answer(b"a", 3, Reply({}, pa.table({"n": [1]})))
    assert clients.sent == [(b"a", 2), (b"a", 3)]


def test_a_seal_that_was_carried_out_answers_the_posts_that_it_names() -> None:
    outbox, clients = made()
    outbox.send_later(b"a", 1, NONE, post(0))
    outbox.send_later(b"a", 2, NONE, post(1))
    outbox.send_later(b"a", 3, NONE, post(1, dataflow=5))
    outbox.send_later(b"a", 4, Reply({"open": 1, "input": "in"}), post(2))
    outbox.send_later(b"a", 5, NONE, post(9))
    outbox.send_later(b"b", 6, NONE, post(0))
    reply = Reply({"open": 4, "sealed": 3})
    outbox.answer_named(b"a", seal(0, 1, 2), reply)
    outbox.hold(b"a", 7, reply, 60.0)
    outbox.answer(b"a", 8, Reply({"complete": 4}))
    assert clients.sent == [(b"a", 3), (b"a", 4), (b"a", 5), (b"a", 7)], "what it does not name, or says more"
    assert clients.values[-1] == {"open": 4, "sealed": 3, "took": True, "complete": 4}
    outbox.send_unsent()
    assert clients.sent[4:] == [(b"b", 6)]


def test_a_seal_that_names_all_that_waits_leaves_nothing() -> None:
    outbox, _ = made()
    outbox.send_later(b"a", 1, NONE, post(0))
    outbox.answer_named(b"a", seal(0), Reply({"open": 4, "sealed": 3}))
    assert not outbox.has_unsent
    outbox.answer_named(b"a", seal(0), reply := Reply({"open": 4, "sealed": 3}))
    assert reply.values["took"] is True, "also where they are answered already"


def test_a_seal_that_was_not_carried_out_answers_nothing_else() -> None:
    outbox, clients = made()
    outbox.send_later(b"a", 1, NONE, post(0))
    refused = Reply({"open": -1, "sealed": -1})
    outbox.answer_named(b"a", seal(0), refused)
    outbox.answer(b"a", 2, refused)
    assert clients.sent == [(b"a", 1), (b"a", 2)] and "took" not in clients.values[1]
