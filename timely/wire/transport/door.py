"""Where does a socket listen, who comes in where it is locked, and how much may those cost who do not?

`listen_all` begins to listen, and locks what others than this host can reach.

A connection is *at the door* from the moment the host accepts it until both sides have proved their keys. A
`SocketGuard` is a thread beside one locked socket that

    judges     whom the list of clients (`AllowList`) names is let in, under the public key as user id;
    bounds     so many may be at the door at once, and so many bytes may each have sent: who is beyond is
               hung up on, the oldest of the host that has most of them there, so that one host's flood is
               its own;
    follows    the list of clients, which others ask whether somebody is still on it.

What it sees comes from the socket's monitor, from its requests for authentication (ZAP), and from what the
host counts for each connection: who has taken more bytes than a stranger is ever sent has been let in. (A
host that does not count as Linux does has no bounds at the door.) It hangs up by shutting down a connection
that it has first made sure of: the number of a file descriptor may mean another connection by then, its
addresses cannot.
"""

from __future__ import annotations

import ipaddress
import logging
import socket as sockets
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, cast

import zmq
from zmq.utils import z85

from ...errors import MisuseError
from ...limits import (
    AT_DOOR_BYTES_MAX,
    AT_DOOR_COUNT_MAX,
    LIST_LOOK_SECONDS_MAX,
    SILENCE_SECONDS_DEFAULT,
)
from ..addresses import is_tcp
from ..allowed import AllowList
from ..keys import ClusterKeys, shown_key
from .curve import lock_server
from .socket_options import address_options, has_come
from .tcp import hang_up, peer_of, traffic

__all__ = ["SocketGuard", "listen_all"]

_log = logging.getLogger("timely")
_ZAP: Final = "inproc://zeromq.zap.01"
_EVENTS: Final = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED
_LOOK_SECONDS: Final = 0.05
"""While somebody is at the door, bytes are counted so often."""
_TELL_SECONDS: Final = 60.0
"""Who is turned away is told in the log at most so often."""
_WELCOME_BYTES: Final = 64 + 170
"""What a socket says to a caller whose key it does not know yet: greeting and WELCOME, as ZMTP 3 has them."""
_EVENT: Final = struct.Struct("=HI")
_numbers = count()


@dataclass
class _Caller:
    """A connection at the door."""

    host: str
    peer: object
    """Address and port of the other side: of no two connections at a time the same."""


class SocketGuard:
    """Guards `socket`, which must be locked (`curve.lock_server`) and not be bound yet.

    Args:
        context: of the socket; it has one door.
        allowed: who is let in.
    """

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], socket: zmq.Socket[bytes], allowed: AllowList
    ) -> None:
        self.allowed = allowed
        self.hung_up = 0
        self._callers: dict[int, _Caller] = {}
        self._by_host: dict[str, dict[int, None]] = {}  # the same, the oldest first
        self._turned_away = 0
        self._told_at = -_TELL_SECONDS
        self._zap = context.socket(zmq.REP)
        self._zap.bind(_ZAP)
        self._socket = socket
        self._monitor = _monitor(context, socket)
        self._bell_in, self._bell_out = sockets.socketpair()
        self._thread = threading.Thread(target=self._run, name="naiad-door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and with it what only it may touch. Call before the context is destroyed, from the
        thread to which the socket belongs: from then on nobody new comes in.
        """
        self._socket.disable_monitor()  # whatever it still told would find no listener, and wait for one
        self._bell_in.close()
        self._thread.join()
        self._bell_out.close()

    @property
    def at_door(self) -> int:
        """Connections that have not proved a key yet."""
        return len(self._callers)

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._zap, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        poller.register(self._bell_out.fileno(), zmq.POLLIN)
        look_at = 0.0
        try:
            while True:
                pause = _LOOK_SECONDS if self._callers else LIST_LOOK_SECONDS_MAX
                ready = dict(poller.poll(round(pause * 1000)))
                if self._bell_out.fileno() in ready:
                    return
                self._follow()
                self._judge()
                if time.monotonic() >= look_at:
                    look_at = time.monotonic() + _LOOK_SECONDS
                    for number in list(self._callers):
                        self._look_at(number)
                    self.allowed.look()
        finally:
            self._zap.close(linger=0)
            self._monitor.close(linger=0)

    def _follow(self) -> None:
        """Take in who has come and who has gone."""
        while has_come(self._monitor):
            event, number = _EVENT.unpack(self._monitor.recv_multipart(zmq.NOBLOCK)[0])
            if event == zmq.EVENT_ACCEPTED:
                self._come(number)
            else:
                self._forget(number)

    def _come(self, number: int) -> None:
        peer = peer_of(number)
        if peer is None:
            return  # gone already, or of this host's own folder
        self._forget(number)
        caller = _Caller(_host_of(peer), peer)
        self._callers[number] = caller
        self._by_host.setdefault(caller.host, {})[number] = None
        while len(self._callers) > AT_DOOR_COUNT_MAX:
            self._look_at(self._one_too_many(), is_one_too_many=True)

    def _one_too_many(self) -> int:
        """The oldest caller of the host that has most of them at the door. Cost: one look at each host."""
        crowded = max(self._by_host, key=lambda host: len(self._by_host[host]))
        return next(iter(self._by_host[crowded]))

    def _forget(self, number: int) -> None:
        caller = self._callers.pop(number, None)
        if caller is not None:
            of_host = self._by_host[caller.host]
            del of_host[number]
            if not of_host:
                del self._by_host[caller.host]

    def _look_at(self, number: int, *, is_one_too_many: bool = False) -> None:
        """Forget a caller who is let in or gone; hang up on one who talks too much, or is one too many."""
        peer = self._callers[number].peer
        seen = traffic(number, peer)
        if seen is None or seen.taken > _WELCOME_BYTES + 1:  # one for the connection itself
            self._forget(number)
        elif is_one_too_many or seen.received > AT_DOOR_BYTES_MAX:
            self._forget(number)
            self.hung_up += hang_up(number, peer)

    def _judge(self) -> None:
        while has_come(self._zap):
            version, request, _, address, _, mechanism, *credentials = self._zap.recv_multipart(zmq.NOBLOCK)
            self.allowed.look()
            public = z85.encode(credentials[0]).decode() if mechanism == b"CURVE" and credentials else ""
            name = self.allowed.name_of(public)
            if name is None:
                self._tell_turned_away(address.decode(errors="replace"), public)
                self._zap.send_multipart([version, request, b"400", b"not on the list", b"", b""])
            else:
                self._zap.send_multipart([version, request, b"200", b"", public.encode(), b""])

    def _tell_turned_away(self, address: str, public: str) -> None:
        self._turned_away += 1
        if time.monotonic() - self._told_at >= _TELL_SECONDS:
            _log.warning(
                "refused: key %s from %s is not on the list of clients (%d refused since the last such line)",
                shown_key(public), address, self._turned_away,
            )  # fmt: skip
            self._told_at, self._turned_away = time.monotonic(), 0


def listen_all(
    context: zmq.Context[zmq.Socket[bytes]],
    socket: zmq.Socket[bytes],
    addresses: Sequence[str],
    mend: str,
    keys: ClusterKeys | None,
    silence_seconds: float = SILENCE_SECONDS_DEFAULT,
) -> tuple[list[str], SocketGuard | None]:
    """Listen at `addresses`, of which port 0 is any that is free; behind a door at those of tcp, if there are
    keys, which is to be closed before the context. Returns what is listened at, in that order, with its port.
    Raises `MisuseError` if one is taken, saying `mend`.
    """
    bound: dict[str, str] = {}
    # Options hold for what is bound after them: first what stays open.
    for address in addresses:
        if keys is None or not is_tcp(address):
            bound[address] = _listen(socket, address, mend, silence_seconds)
    locked = [address for address in addresses if address not in bound]
    door = None
    if keys is not None and locked:
        lock_server(socket, keys)
        door = SocketGuard(context, socket, AllowList(keys))
    try:
        bound |= {address: _listen(socket, address, mend, silence_seconds) for address in locked}
    except BaseException:
        if door is not None:
            door.close()
        raise
    return [bound[address] for address in addresses], door


def _host_of(peer: object) -> str:
    """What counts as one host: an address of IPv4, or the 64 bits of IPv6 that one host may fill."""
    text = str(peer[0]) if isinstance(peer, tuple) and peer else ""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return text
    return str(address.ipv4_mapped or ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def _monitor(context: zmq.Context[zmq.Socket[bytes]], socket: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
    """What happens to connections of `socket`; nothing is dropped: a caller unseen would never leave."""
    address = f"inproc://door-{next(_numbers)}"
    socket.monitor(address, _EVENTS)
    monitor = context.socket(zmq.PAIR)
    monitor.set(zmq.RCVHWM, 0)
    monitor.connect(address)
    return monitor


def _listen(socket: zmq.Socket[bytes], address: str, mend: str, silence_seconds: float) -> str:
    try:
        address_options(socket, address, silence_seconds)
        if address.startswith("tcp://*:"):
            _listen_everywhere(socket, address)
        else:
            socket.bind(address)
    except zmq.ZMQError as error:
        if error.errno == zmq.EADDRINUSE:
            raise MisuseError(f"{address} is in use by another program{mend and f': {mend}'}") from error
        raise MisuseError(f"this host cannot listen at {address} ({error}){mend and f': {mend}'}") from error
    return cast(bytes, socket.get(zmq.LAST_ENDPOINT)).decode().rstrip("\0")


def _listen_everywhere(socket: zmq.Socket[bytes], address: str) -> None:
    """At all interfaces, by both kinds of addresses; on a host without IPv6 by the other kind only."""
    try:
        socket.set(zmq.IPV6, True)
        socket.bind(address)
    except zmq.ZMQError as error:
        if error.errno == zmq.EADDRINUSE:
            raise
        socket.set(zmq.IPV6, False)
        socket.bind(address)
