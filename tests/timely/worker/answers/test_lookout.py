"""The thread that answers for a worker in a call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import timely
from timely.limits import ASIDE_PORTS_DEFAULT
from timely.wire.addresses import aside
from timely.wire.frames.messages import decode_reply, encode_request
from timely.wire.requests import Hello, Reply, Request, Why
from timely.wire.transport.server_socket import ServerSocket
from timely.wire.transport.zeromq import ClientSockets
from timely.worker.answers.lookout import Lookout

SECONDS = 10.0


def answered(request: Why) -> Reply:
    if request.epoch == 13:
        raise ValueError("a bug")
    if request.epoch == 7:
        raise timely.MisuseError("no dataflow")
    return Reply({"epoch": request.epoch, "thread": threading.current_thread().name})


def ask(sockets: ClientSockets, request: Request) -> Reply | timely.TimelyError:
    sockets.send(0, encode_request(1, request))
    while (frames := sockets.recv_nowait(0)) is None:
        assert sockets.wait(SECONDS) != [], "no answer"
    return decode_reply(frames)


@pytest.fixture
def sockets(tmp_path: Path) -> Iterator[ClientSockets]:
    address = f"ipc://{tmp_path}/c0"
    lookout = Lookout(address, address, None, 2.5, answered)
    made = ClientSockets([aside(address)])
    yield made
    made.close()
    lookout.close()
    lookout.close()
    assert not list(tmp_path.iterdir()), "its socket is gone"


def test_a_question_is_answered_in_a_thread_of_its_own(sockets: ClientSockets) -> None:
    for epoch in (1, 2):
        reply = ask(sockets, Why(0, epoch))
        assert isinstance(reply, Reply)
        assert reply.values == {"epoch": epoch, "thread": "naiad-lookout"}


def test_whatever_else_is_asked_or_fails_is_an_error_and_the_next_question_is_answered(
    sockets: ClientSockets,
) -> None:
    refused = ask(sockets, Hello())
    assert isinstance(refused, timely.RequestError) and "only 'why' is answered here" in str(refused)
    assert isinstance(ask(sockets, Why(0, 7)), timely.MisuseError)
    assert isinstance(ask(sockets, Why(0, 13)), timely.InternalError)
    sockets.send(0, [b"nonsense"])
    answers = [ask(sockets, Why(0, 1)) for _ in range(2)]
    assert isinstance(answers[-1], Reply)


def test_without_the_port_a_worker_goes_on_and_answers_nothing_there() -> None:
    taken = ServerSocket("tcp://127.0.0.1:0")
    try:
        port = int(taken.address.rpartition(":")[2]) - ASIDE_PORTS_DEFAULT
        lookout = Lookout("tcp://127.0.0.1:0", f"tcp://127.0.0.1:{port}", None, 2.5, answered)
        lookout.close()
    finally:
        taken.close()
