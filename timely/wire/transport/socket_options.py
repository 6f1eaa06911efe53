"""The options, polling, readiness and sending that all sockets share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, cast

import zmq

from ...errors import MisuseError
from ...limits import COPIED_BYTES_MAX, HEARTBEAT_MS_DEFAULT, SILENCE_SECONDS_DEFAULT, WORKERS_MAX
from ..addresses import is_tcp, wants_ipv6
from ..batch import Frame
from .tcp import IS_COUNTED

__all__ = ["LINGER_MS", "LOCK_BYTES", "Poller", "address_options", "context", "has_come", "prepare", "send"]

LINGER_MS: Final = 250
LOCK_BYTES: Final = 64
"""Upper bound on how much encryption lengthens a frame."""
_READABLE: Final = int(zmq.POLLIN)
"""A plain integer: `&` with an enumeration member creates another member, which takes longer than the query
of the socket.
"""
_RECONNECT_MS: Final = 20
_UNACKNOWLEDGED_SECONDS_MIN: Final = 15.0
"""The host breaks a connection off after this time without an acknowledgement, or after twice the tolerated
silence if that is longer. The time also runs while the other side accepts no more data, as when it is
stopped.
"""


_SOCKETS_OF_CONNECTION: Final = 3
"""The connection itself, and the two ends of its monitor."""
_DESCRIPTORS_OF_CONNECTION: Final = 8
"""File descriptors that a worker has for each other one: five for the sockets of the connection that it
makes, one for that, one for that of the other, and one to spare."""


_DESCRIPTORS_OF_CLIENT: Final = 4
"""File descriptors that a client has for each worker, measured with 50 of them."""


def context(peers: int, asked: int = 0) -> zmq.Context[zmq.Socket[bytes]]:
    """Return a context in which a socket for each worker of the largest cluster has room. If `peers` take
    more file descriptors than this process may have, it asks for more of them, as far as the system allows.

    A user's process has no peers, but asks this many workers (`asked`). Its limit is the user's: raise
    `MisuseError` if it is too low for them.
    """
    if asked:
        _check_descriptors(asked)
    result: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    result.set(zmq.MAX_SOCKETS, 2 * _SOCKETS_OF_CONNECTION * WORKERS_MAX)
    needed = _DESCRIPTORS_OF_CONNECTION * peers
    with suppress(ImportError, OSError, ValueError):  # on other systems connecting fails if there are too few
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and 2 * needed > soft:
            more = 2 * needed if hard == resource.RLIM_INFINITY else min(2 * needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, more), hard))
    return result


def _check_descriptors(workers: int) -> None:
    with suppress(ImportError, OSError):
        import resource

        needed, (soft, _) = _DESCRIPTORS_OF_CLIENT * workers, resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and needed > soft:
            raise MisuseError(
                f"a client of {workers:,} workers needs {needed:,} file descriptors, and this process "
                f"may have {soft:,}: give it more by `ulimit -n {2 * needed}` before it starts"
            )


class Poller:
    """Waits until one of several sockets and file descriptors is readable."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()

    def __contains__(self, source: zmq.Socket[bytes] | int) -> bool:
        return source in self._poller

    def add(self, source: zmq.Socket[bytes] | int) -> None:
        """Wait for this source, too, until it is readable."""
        self._poller.register(source, zmq.POLLIN)

    def add_both_ways(self, source: int) -> None:
        """Wait for this descriptor until it is readable or writable. A later `add` waits for reading only."""
        self._poller.register(source, zmq.POLLIN | zmq.POLLOUT)

    def remove(self, source: zmq.Socket[bytes] | int) -> None:
        """The inverse of `add`."""
        self._poller.unregister(source)

    def wait(self, timeout_seconds: float) -> list[zmq.Socket[bytes] | int]:
        """Block until a source is ready, at most `timeout_seconds`; return the sources that are.

        The timeout is rounded up to milliseconds: a caller woken too early would poll in a loop until its
        last millisecond is over.
        """
        ready = self._poller.poll(max(0, math.ceil(timeout_seconds * 1000)))
        return [source for source, _ in ready]


def has_come(socket: zmq.Socket[bytes]) -> bool:
    """Return True if a message can be received without waiting."""
    return cast(int, socket.get(zmq.EVENTS)) & _READABLE != 0


def prepare(socket: zmq.Socket[bytes]) -> None:
    """Set the options that all sockets share, before they are bound or connected."""
    socket.set(zmq.SNDHWM, 0)
    socket.set(zmq.RCVHWM, 0)
    socket.set(zmq.LINGER, LINGER_MS)
    socket.set(zmq.RECONNECT_IVL, _RECONNECT_MS)
    socket.set(zmq.HEARTBEAT_IVL, HEARTBEAT_MS_DEFAULT)
    socket.copy_threshold = COPIED_BYTES_MAX


def address_options(
    socket: zmq.Socket[bytes], address: str, silence_seconds: float = SILENCE_SECONDS_DEFAULT
) -> None:
    """Set the options that depend on the next address to bind or connect to, and on the tolerated silence.

    The other side answers a probe (heartbeat) after the frame that it is sending, which may be large and take
    minutes on a slow link. So by tcp a late answer says nothing: there it counts whether any bytes come
    (`tcp.traffic`), and whether the other host acknowledges our packets. On hosts without these counters, and
    by ipc, which is never slow, the answer to the probe has to come in time.
    """
    is_counted = is_tcp(address) and IS_COUNTED
    socket.set(zmq.IPV6, wants_ipv6(address))
    socket.set(zmq.HEARTBEAT_TIMEOUT, 0 if is_counted else math.ceil(1_000 * silence_seconds))
    unacknowledged = max(_UNACKNOWLEDGED_SECONDS_MIN, 2 * silence_seconds)
    socket.set(zmq.TCP_MAXRT, math.ceil(1_000 * unacknowledged) if is_counted else 0)


def send(socket: zmq.Socket[bytes], frames: Sequence[Frame]) -> None:
    """Queue a message; drop it if this side was refused, so that no connection will ever carry it.

    Queues have no other bound, and a call that receives from there raises the refusal.
    """
    try:
        socket.send_multipart(frames, zmq.NOBLOCK, copy=False)
    except zmq.Again:
        pass
    except zmq.ZMQError:
        raise
    except BaseException:
        # Interrupted (Ctrl-C) between two frames: an empty last frame ends the message, which nobody waits
        # for any more. Otherwise the receiver would read the next message as its rest. If no frame of the
        # message was sent, nobody waits for the empty one either.
        if len(frames) > 1:
            socket.send(b"", zmq.NOBLOCK)
        raise
