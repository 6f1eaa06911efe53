"""socket_options.py: whether something has come, of a socket and of what a monitor tells."""

from __future__ import annotations

import resource

import pytest
import zmq

from timely import MisuseError
from timely.wire.transport.socket_options import context, has_come
from timely.wire.transport.zeromq import ClientSockets


def test_a_message_has_come_until_it_is_taken() -> None:
    with zmq.Context() as context, context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
        one.bind("inproc://here")
        other.connect("inproc://here")
        assert not has_come(one) and not has_come(other)  # both could send: that is no message
        one.send(b"word")
        assert other.poll(5_000) and has_come(other) and not has_come(one)
        other.recv()
        assert not has_come(other)


def test_a_client_of_more_workers_than_it_may_have_descriptors_for_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (40, 4_096))
    context(0, asked=10).destroy()
    with pytest.raises(
        MisuseError, match="11 workers needs 44 file descriptors, .* may have 40: .*ulimit -n 88"
    ):
        ClientSockets([f"ipc:///tmp/nobody-{worker}" for worker in range(11)])
