"""What does the host know of a connection of ours? Asked by a file descriptor that another thread may close.

libzmq tells the number of a connection's descriptor and closes it when it likes; then the number may mean
another connection. So each question goes to a copy of the descriptor, which stays the same connection, and
names the other side that it is about: address and port, of which no two connections have the same at a time.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

__all__ = ["IS_COUNTED", "Traffic", "hang_up", "peer_of", "traffic"]

IS_COUNTED: Final = sys.platform == "linux"
"""Whether the host counts what `traffic` tells."""

_SILENCE: Final = struct.Struct("=I")
_SILENCE_AT: Final = 52
_BYTES: Final = struct.Struct("=QQ")
_BYTES_AT: Final = 120
"""Where Linux's `struct tcp_info` has milliseconds since the last data, bytes taken by the other side, and
bytes that came from it.
"""


class Traffic(NamedTuple):
    """What has passed by a connection: bytes that the other side has taken, bytes that came from it, and for
    how many milliseconds none did.
    """

    taken: int
    received: int
    silent_ms: int


def traffic(number: int, peer: object) -> Traffic | None:
    """Of the connection with `peer`; `None` if it is gone, or this host does not count."""
    size = _BYTES_AT + _BYTES.size
    if not IS_COUNTED:
        return None
    with _held(number) as connection:
        if connection is None or _peer_of(connection) != peer:
            return None
        try:
            told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size)
        except OSError:
            return None
    if len(told) < size:
        return None
    return Traffic(*_BYTES.unpack_from(told, _BYTES_AT), *_SILENCE.unpack_from(told, _SILENCE_AT))


def hang_up(number: int, peer: object) -> bool:
    """Shut the connection of a file descriptor down if it is still the one with `peer`; whether it was."""
    with _held(number) as connection:
        if connection is None or _peer_of(connection) != peer:
            return False
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False  # the other side was quicker
        return True


def peer_of(number: int) -> object:
    """Address and port of the other side of a connection; `None` if there is none, or it has none."""
    with _held(number) as connection:
        return None if connection is None else _peer_of(connection)


@contextmanager
def _held(number: int) -> Iterator[socket.socket | None]:
    """The connection behind a file descriptor of another thread, which may close it at any moment: a copy,
    which stays the same connection.
    """
    try:
        copy = os.dup(number)
    except OSError:
        yield None
        return
    try:
        connection = socket.socket(fileno=copy)
    except OSError:  # a file has the number by now
        os.close(copy)
        yield None
        return
    with connection:
        yield connection


def _peer_of(connection: socket.socket) -> object:
    try:
        return connection.getpeername() or None
    except OSError:
        return None
