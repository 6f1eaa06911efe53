"""What programs that are no clients of ours send to a worker's client port."""

from __future__ import annotations

import random
import socket
import struct

import zmq
from fuzz.mutations import mutated
from fuzz.targets import TARGETS

from timely.wire.handshake import PROTOCOL_VERSION

__all__ = ["connect_and_go", "odd_messages", "raw_bytes"]

_ZMTP_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31)


def odd_messages(address: str, choose: random.Random, messages: int) -> None:
    """Messages over a proper socket: requests made odd, of none to five frames, and of very many."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        dealer = context.socket(zmq.DEALER)
        dealer.set(zmq.LINGER, 200)
        dealer.connect(f"tcp://{address}")
        seeds = TARGETS["request"].seeds
        for _ in range(messages):
            what = choose.random()
            if what < 0.7:
                frames = mutated(choose.choice(seeds), choose.choice(seeds), choose, "msgpack")
            elif what < 0.95:
                frames = [choose.randbytes(choose.choice([0, 1, 3, 90])) for _ in range(choose.randint(1, 5))]
            else:
                frames = [b""] * 2_000
            if not _asks_for_the_end(frames):
                dealer.send_multipart(frames or [b""])
    finally:
        context.destroy(linger=200)


def _asks_for_the_end(frames: list[bytes]) -> bool:
    """To end the cluster is a client's right: not garbage. Nor is what changes a dataflow of this test."""
    harmful = (b"shutdown", b"decide", b"deliver", b"drop", b"forget", b"install")
    return bool(frames) and any(word in frames[0] for word in harmful)


def raw_bytes(address: str, choose: random.Random) -> None:
    """A connection on which something else than ZMTP is spoken, or that breaks off in the middle of it."""
    host, _, port = address.rpartition(":")
    whole = (
        _ZMTP_GREETING + b"\x04\x26\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
    )
    said = choose.choice(
        [
            b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
            choose.randbytes(choose.choice([1, 10, 64, 4_000])),
            whole[: choose.randrange(len(whole))],
            whole + b"\x02" + struct.pack(">Q", 1 << 62) + b"x",
            whole + b"\x00\x05" + bytes([0x92, PROTOCOL_VERSION]),
            b"",
        ]
    )
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(said)


def connect_and_go(address: str, connections: int) -> None:
    """Connections opened and closed at once."""
    host, _, port = address.rpartition(":")
    for _ in range(connections):
        socket.create_connection((host, int(port)), timeout=5).close()
