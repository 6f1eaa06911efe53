"""The socket at which clients reach a worker, and, in a cluster with keys, which key each client holds.

A connection has proved its key before its first message comes in, and stays the same client as long as it
lasts. If a key is taken away later, `taken_away` names its clients, so that the caller can notify them, and
this module hangs up on them a moment later. The caller must refuse their requests meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import zmq

from ...limits import (
    CALLERS_MAX,
    RECV_BYTES_MAX,
    RECV_COUNT_MAX,
    REQUEST_BYTES_MAX,
    SILENCE_SECONDS_DEFAULT,
    TAKEN_AWAY_SECONDS_MAX,
)
from ..batch import Frame
from ..keys import ClusterKeys
from ..refusals import taken_away
from .direct import DirectDoor, direct_path
from .door import SocketGuard, listen_all
from .socket_options import LINGER_MS, LOCK_BYTES, has_come, prepare, send
from .tcp import hang_up, peer_of

__all__ = ["ServerSocket"]

_log = logging.getLogger("timely")


@dataclass(frozen=True)
class _Holder:
    """The identity of a client: its key, the name of the key, and its connection."""

    public: str
    name: str
    descriptor: int
    peer: object


class ServerSocket:
    """The socket at which clients reach a worker.

    Args:
        address: where to listen; port 0 takes any free port.
        mend: advice for the user if the address is in use.
        keys: of the cluster; without them every program that reaches the address is a client.
        silence_seconds: how long a client may be silent before the worker hangs up on it.
    """

    def __init__(
        self,
        address: str,
        mend: str = "",
        keys: ClusterKeys | None = None,
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
    ) -> None:
        self._door: SocketGuard | None = None
        self._direct: DirectDoor | None = None
        self._holders: OrderedDict[bytes, _Holder] = OrderedDict()  # the `CALLERS_MAX` newest clients
        self._hang_up_at: dict[bytes, float] = {}
        self._version = 0
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket = self._context.socket(zmq.ROUTER)
        try:
            self.socket.set(zmq.MAXMSGSIZE, REQUEST_BYTES_MAX + LOCK_BYTES)
            prepare(self.socket)
            (self.address,), self._door = listen_all(
                self._context, self.socket, [address], mend, keys, silence_seconds
            )
            self._direct = _direct_door(self.address)
        except BaseException:
            self._context.destroy(linger=0)
            raise

    @property
    def sources(self) -> list[zmq.Socket[bytes] | int]:
        """The sockets and descriptors that become readable when there is something to receive."""
        return [self.socket] if self._direct is None else [self.socket, self._direct.descriptor]

    def recv_nowait(self) -> list[tuple[bytes, list[memoryview]]]:
        """Return requests that have come in, as (client, frames), up to a limit; the next call returns
        more.
        """
        arrived: list[tuple[bytes, list[memoryview]]] = []
        left = RECV_BYTES_MAX
        while left > 0 and len(arrived) < RECV_COUNT_MAX and has_come(self.socket):
            client, *frames = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
            if self._door is not None:
                self._note(self._door, client)
            left -= sum(map(len, frames))
            arrived.append((client.bytes, [frame.buffer for frame in frames]))
        if self._direct is not None:
            arrived += self._direct.recv_nowait(RECV_COUNT_MAX)
        return arrived

    def refusal(self, client: bytes) -> str:
        """Return why this client may send no more requests; empty while it may."""
        holder = self._holders.get(client)
        if self._door is None or holder is None or self._door.allowed.name_of(holder.public) is not None:
            return ""
        return taken_away(holder.name, holder.public)

    def taken_away(self) -> list[bytes]:
        """Return the clients whose key was taken away since the last call. They are hung up on a moment
        later.

        Cost: one comparison while the list is unchanged.
        """
        if self._hang_up_at:
            self._hang_up()
        if self._door is None or self._version == self._door.allowed.version:
            return []
        self._version = self._door.allowed.version
        gone = [client for client in self._holders if client not in self._hang_up_at and self.refusal(client)]
        self._hang_up_at.update(dict.fromkeys(gone, time.monotonic() + TAKEN_AWAY_SECONDS_MAX))
        return gone

    @property
    def patience(self) -> float:
        """The number of seconds within which `taken_away` must be called again."""
        return TAKEN_AWAY_SECONDS_MAX if self._hang_up_at else float("inf")

    @property
    def at_door(self) -> int:
        """The number of connections that have not proved a key yet."""
        return 0 if self._door is None else self._door.at_door

    @property
    def hung_up(self) -> int:
        """The number of such connections ended so far, because they were too many or had sent too much."""
        return 0 if self._door is None else self._door.hung_up

    def send(self, client: bytes, *answers: Sequence[Frame]) -> None:
        """Send answers to a client; ignored if the client has gone."""
        if self._direct is not None and client in self._direct:
            self._direct.send(client, *answers)
        else:
            for frames in answers:
                send(self.socket, [client, *frames])

    @property
    def is_sending(self) -> bool:
        """True if part of an answer on a direct line is still unsent; ZeroMQ does not report this."""
        return self._direct is not None and self._direct.is_sending

    def close(self) -> None:
        """Send what is queued, for a quarter of a second at most, and close the socket. May be called
        twice.
        """
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._direct is not None:
            self._direct.close()
        self._context.destroy(linger=LINGER_MS)

    def _note(self, door: SocketGuard, client: zmq.Frame) -> None:
        """Remember which key the client has; look it up at the first message of a connection only."""
        identity = client.bytes
        if identity in self._holders:
            return
        public = str(client.get("User-Id"))
        number = client.get(zmq.SRCFD)
        self._holders[identity] = _Holder(
            public, door.allowed.name_of(public) or "?", number, peer_of(number)
        )
        if self.refusal(identity):  # its key was taken away between its connection and its first message
            self._hang_up_at[identity] = time.monotonic() + TAKEN_AWAY_SECONDS_MAX
        if len(self._holders) > CALLERS_MAX:
            self._holders.popitem(last=False)

    def _hang_up(self) -> None:
        now = time.monotonic()
        for client in [client for client, when in self._hang_up_at.items() if now >= when]:
            del self._hang_up_at[client]
            holder = self._holders.get(client)
            if holder is not None and self.refusal(client):
                hang_up(holder.descriptor, holder.peer)


def _direct_door(address: str) -> DirectDoor | None:
    """Return the door for direct lines beside an address; None if there can be none: then all clients use
    ZeroMQ.
    """
    path = direct_path(address)
    if path is None:
        return None
    try:
        return DirectDoor(path)
    except OSError as error:  # this path is a little longer than that of the address, perhaps too long
        _log.info("no direct connections of clients at %s: %s", path, error)
        return None
