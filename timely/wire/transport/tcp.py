"""What does the host know of one of our connections, given a descriptor that another thread may close?

libzmq reports the number of a connection's file descriptor and may close it at any time; then the number may
belong to another connection. So each function here duplicates the descriptor, which pins the connection, and
compares the other side's address and port with the expected ones: no two connections have the same at a time.
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
"""True if the host keeps the counters that `traffic` returns."""

_SILENCE: Final = struct.Struct("=I")
_SILENCE_AT: Final = 52
_BYTES: Final = struct.Struct("=QQ")
_BYTES_AT: Final = 120
"""Offsets in Linux's `struct tcp_info`: milliseconds since data last came (`_SILENCE_AT`); bytes that the
other side has acknowledged, then bytes received from it (`_BYTES_AT`).
"""


class Traffic(NamedTuple):
    """The traffic of a connection: bytes that the other side has acknowledged, bytes received from it, and
    milliseconds since the last of them.
    """

    taken: int
    received: int
    silent_ms: int


def traffic(number: int, peer: object) -> Traffic | None:
    """Return the traffic of the connection with `peer`; `None` if it is gone, or the host does not count."""
    size = _BYTES_AT + _BYTES.size
    if not IS_COUNTED:
        return None
    with _duplicate(number) as connection:
        if connection is None or _peer_of(connection) != peer:
            return None
        try:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size)
        except OSError:
            return None
    if len(info) < size:
        return None
    return Traffic(*_BYTES.unpack_from(info, _BYTES_AT), *_SILENCE.unpack_from(info, _SILENCE_AT))


def hang_up(number: int, peer: object) -> bool:
    """Shut down the connection of a file descriptor if it is still the one with `peer`; return True if it was
    shut down.
    """
    with _duplicate(number) as connection:
        if connection is None or _peer_of(connection) != peer:
            return False
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False  # the other side was quicker
        return True


def peer_of(number: int) -> object:
    """Return address and port of the other side of a connection; `None` if the connection is gone, or its
    other side has no address.
    """
    with _duplicate(number) as connection:
        return None if connection is None else _peer_of(connection)


@contextmanager
def _duplicate(number: int) -> Iterator[socket.socket | None]:
    """Duplicate a file descriptor that another thread may close at any moment, and yield its connection,
    which stays the same connection; None if there is none any more.
    """
    try:
        copy = os.dup(number)
    except OSError:
        yield None
        return
    try:
        connection = socket.socket(fileno=copy)
    except OSError:  # by now the number belongs to a file
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
