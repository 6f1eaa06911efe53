"""Whether a socket has something to be taken."""

from __future__ import annotations

from typing import Final, cast

import zmq

__all__ = ["has_come"]

_READABLE: Final = int(zmq.POLLIN)
"""A plain integer: `&` with a member of an enumeration makes another one, which takes longer than asking."""


def has_come(socket: zmq.Socket[bytes]) -> bool:
    """Whether a message can be received without waiting."""
    return cast(int, socket.get(zmq.EVENTS)) & _READABLE != 0
