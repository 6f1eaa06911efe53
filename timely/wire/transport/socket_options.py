"""What all sockets have in common: their options, what waits for them, whether something has come, how they
send.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, cast

import zmq

from ...limits import COPIED_BYTES_MAX, HEARTBEAT_MS_DEFAULT, SILENCE_SECONDS_DEFAULT
from ..addresses import is_tcp, wants_ipv6
from ..batch import Frame
from .tcp import IS_COUNTED

__all__ = ["LINGER_MS", "LOCK_BYTES", "Poller", "address_options", "has_come", "prepare", "send"]

LINGER_MS: Final = 250
LOCK_BYTES: Final = 64
"""By so much a frame may grow when it is encrypted."""
_READABLE: Final = int(zmq.POLLIN)
"""A plain integer: `&` with a member of an enumeration makes another one, which takes longer than asking."""
_RECONNECT_MS: Final = 20
_UNACKNOWLEDGED_SECONDS_MIN: Final = 15.0
"""The host breaks a connection off after so long without an acknowledgement, or after twice the silence that
is borne: it counts the time, too, for which the other side takes nothing more, as one that is stopped does.
"""


class Poller:
    """Waits for sockets and file descriptors; knows which were readable at the last look."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()

    def __contains__(self, source: zmq.Socket[bytes] | int) -> bool:
        return source in self._poller

    def add(self, source: zmq.Socket[bytes] | int) -> None:
        """Wait for this one, too."""
        self._poller.register(source, zmq.POLLIN)

    def add_both_ways(self, source: int) -> None:
        """Wait for this one until it can be read or written; once more: as by `add`, until it can be read."""
        self._poller.register(source, zmq.POLLIN | zmq.POLLOUT)

    def remove(self, source: zmq.Socket[bytes] | int) -> None:
        """The inverse of `add`."""
        self._poller.unregister(source)

    def wait(self, timeout_seconds: float) -> list[zmq.Socket[bytes] | int]:
        """Until one is readable; returns those that are. Milliseconds are counted up: who comes back too
        early asks again and again until the last one is over.
        """
        found = self._poller.poll(max(0, math.ceil(timeout_seconds * 1000)))
        return [source for source, _ in found]


def has_come(socket: zmq.Socket[bytes]) -> bool:
    """Whether a message can be received without waiting."""
    return cast(int, socket.get(zmq.EVENTS)) & _READABLE != 0


def prepare(socket: zmq.Socket[bytes]) -> None:
    """Set what all sockets share, before they are bound or connected."""
    socket.set(zmq.SNDHWM, 0)
    socket.set(zmq.RCVHWM, 0)
    socket.set(zmq.LINGER, LINGER_MS)
    socket.set(zmq.RECONNECT_IVL, _RECONNECT_MS)
    socket.set(zmq.HEARTBEAT_IVL, HEARTBEAT_MS_DEFAULT)
    socket.copy_threshold = COPIED_BYTES_MAX


def address_options(
    socket: zmq.Socket[bytes], address: str, silence_seconds: float = SILENCE_SECONDS_DEFAULT
) -> None:
    """Set what depends on where a socket is bound or connected next, and on how long the other side may be
    silent.

    A probe is answered behind what is being sent, one large frame perhaps, for which a slow link may take
    minutes. So by tcp its lateness says nothing: what counts is whether any bytes come (`tcp.traffic`), and
    that the host's own packets are acknowledged. Where that is not counted, and by ipc, which is never slow,
    the probe's answer has to come in time.
    """
    is_counted = is_tcp(address) and IS_COUNTED
    socket.set(zmq.IPV6, wants_ipv6(address))
    socket.set(zmq.HEARTBEAT_TIMEOUT, 0 if is_counted else math.ceil(1_000 * silence_seconds))
    unacknowledged = max(_UNACKNOWLEDGED_SECONDS_MIN, 2 * silence_seconds)
    socket.set(zmq.TCP_MAXRT, math.ceil(1_000 * unacknowledged) if is_counted else 0)


def send(socket: zmq.Socket[bytes], frames: Sequence[Frame]) -> None:
    """Queue a message. To where no connection will ever come, since this side was refused, it is dropped:
    queues have no other bound, and who receives is told of the refusal.
    """
    try:
        socket.send_multipart(frames, zmq.NOBLOCK, copy=False)
    except zmq.Again:
        pass
    except zmq.ZMQError:
        raise
    except BaseException:
        # Interrupted (Ctrl-C) between two frames: this ends the message, which nobody waits for any more.
        # Else the next one would be read as the rest of it. By itself it is none that anybody waits for.
        if len(frames) > 1:
            socket.send(b"", zmq.NOBLOCK)
        raise
