"""socket_options.py: whether something has come, of a socket and of what a monitor tells."""

from __future__ import annotations

import zmq

from timely.wire.transport.socket_options import has_come


def test_a_message_has_come_until_it_is_taken() -> None:
    with zmq.Context() as context, context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
        one.bind("inproc://here")
        other.connect("inproc://here")
        assert not has_come(one) and not has_come(other)  # both could send: that is no message
        one.send(b"word")
        assert other.poll(5_000) and has_come(other) and not has_come(one)
        other.recv()
        assert not has_come(other)
