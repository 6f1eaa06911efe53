"""Listen at addresses. Which connections does a locked socket admit, and how much may the others cost?

`listen_all` binds a socket, and locks the addresses that other hosts can reach.


A connection is *at the door* from the moment the host accepts it until both sides have proved their keys. A
`SocketGuard` is a thread beside one locked socket that

    judges     it admits the clients on the list (`AllowList`), with the public key as user id;
    bounds     it limits the number of connections at the door, and the bytes that each may have sent. If
               there are too many, it hangs up on the oldest connection of the host that has most of them at
               the door, so that a flood from one host hurts that host alone;
    follows    it keeps the list of clients up to date, which others query.

It learns of connections from the socket's monitor, from requests for authentication (ZAP), and from the
host's counters for each connection: if the other side has acknowledged more bytes than are ever sent to a
stranger, it has been admitted. (Hosts without the counters of Linux have no bounds at the door.) It hangs up
by shutting down a connection, after checking address and port: the number of a file descriptor may belong to
another connection by then, address and port cannot.
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
"""How often the guard checks the bytes of connections while any is at the door."""
_LOG_SECONDS: Final = 60.0
"""The least time between two lines in the log about refused clients."""
_WELCOME_BYTES: Final = 64 + 170
"""Bytes that a socket sends to a caller whose key it does not know yet: greeting and WELCOME of ZMTP 3."""
_EVENT: Final = struct.Struct("=HI")
_numbers = count()


@dataclass
class _Caller:
    """A connection at the door."""

    host: str
    peer: object
    """Address and port of the other side: no two connections have the same at a time."""


class SocketGuard:
    """Guards `socket`, which must be locked (`curve.lock_server`) and not be bound yet.

    Args:
        context: of the socket; a context can have one guard.
        allowed: the admitted clients.
    """

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], socket: zmq.Socket[bytes], allowed: AllowList
    ) -> None:
        self.allowed = allowed
        self.hung_up = 0
        self._callers: dict[int, _Caller] = {}
        self._by_host: dict[str, dict[int, None]] = {}  # the keys of `_callers` by host, the oldest first
        self._refused = 0
        self._logged_at = -_LOG_SECONDS
        self._zap = context.socket(zmq.REP)
        self._zap.bind(_ZAP)
        self._socket = socket
        self._monitor = _monitor(context, socket)
        self._bell_in, self._bell_out = sockets.socketpair()
        self._thread = threading.Thread(target=self._run, name="naiad-door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, which closes its sockets. From then on no new client is admitted.

        Call this before the context is destroyed, from the thread to which the socket belongs.
        """
        self._socket.disable_monitor()  # a further event would wait for a reader for ever
        self._bell_in.close()
        self._thread.join()
        self._bell_out.close()

    @property
    def at_door(self) -> int:
        """The number of connections that have not proved a key yet."""
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
        """Take in the connections that have come and gone."""
        while has_come(self._monitor):
            event, number = _EVENT.unpack(self._monitor.recv_multipart(zmq.NOBLOCK)[0])
            if event == zmq.EVENT_ACCEPTED:
                self._come(number)
            else:
                self._forget(number)

    def _come(self, number: int) -> None:
        peer = peer_of(number)
        if peer is None:
            return  # gone already, or an ipc connection
        self._forget(number)
        caller = _Caller(_host_of(peer), peer)
        self._callers[number] = caller
        self._by_host.setdefault(caller.host, {})[number] = None
        while len(self._callers) > AT_DOOR_COUNT_MAX:
            self._look_at(self._one_too_many(), is_one_too_many=True)

    def _one_too_many(self) -> int:
        """Return the oldest caller of the host with most callers at the door. Cost: one look at each host."""
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
        """Forget a caller that was admitted or is gone; hang up on one that has sent too much, or is one too
        many.
        """
        peer = self._callers[number].peer
        seen = traffic(number, peer)
        if seen is None or seen.taken > _WELCOME_BYTES + 1:  # tcp counts one more, for the connection itself
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
                self._log_refused(address.decode(errors="replace"), public)
                self._zap.send_multipart([version, request, b"400", b"not on the list", b"", b""])
            else:
                self._zap.send_multipart([version, request, b"200", b"", public.encode(), b""])

    def _log_refused(self, address: str, public: str) -> None:
        self._refused += 1
        if time.monotonic() - self._logged_at >= _LOG_SECONDS:
            _log.warning(
                "refused: key %s from %s is not on the list of clients (%d refused since the last such line)",
                shown_key(public), address, self._refused,
            )  # fmt: skip
            self._logged_at, self._refused = time.monotonic(), 0


def listen_all(
    context: zmq.Context[zmq.Socket[bytes]],
    socket: zmq.Socket[bytes],
    addresses: Sequence[str],
    mend: str,
    keys: ClusterKeys | None,
    silence_seconds: float = SILENCE_SECONDS_DEFAULT,
) -> tuple[list[str], SocketGuard | None]:
    """Listen at `addresses`; port 0 takes any free port.

    Return the addresses with their ports, in the same order, and the guard of the tcp addresses; None without
    `keys` or tcp addresses. Close the guard before the context. Raises `MisuseError`, with the advice `mend`,
    if an address is in use or cannot be bound.
    """
    bound: dict[str, str] = {}
    # Options hold for addresses bound after them, so those that stay open come first.
    for address in addresses:
        if keys is None or not is_tcp(address):
            bound[address] = _listen(socket, address, mend, silence_seconds)
    locked = [address for address in addresses if address not in bound]
    guard = None
    if keys is not None and locked:
        lock_server(socket, keys)
        guard = SocketGuard(context, socket, AllowList(keys))
    try:
        bound |= {address: _listen(socket, address, mend, silence_seconds) for address in locked}
    except BaseException:
        if guard is not None:
            guard.close()
        raise
    return [bound[address] for address in addresses], guard


def _host_of(peer: object) -> str:
    """Return what counts as one host: an IPv4 address, or an IPv6 /64 network, which one host may fill."""
    text = str(peer[0]) if isinstance(peer, tuple) and peer else ""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return text
    return str(address.ipv4_mapped or ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def _monitor(context: zmq.Context[zmq.Socket[bytes]], socket: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
    """Return a socket with the events of `socket`'s connections. It has no high-water mark: a caller whose
    departure was dropped would stay at the door for ever.
    """
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
    """Listen at all interfaces, by IPv6 and IPv4; on a host without IPv6 by IPv4 only."""
    try:
        socket.set(zmq.IPV6, True)
        socket.bind(address)
    except zmq.ZMQError as error:
        if error.errno == zmq.EADDRINUSE:
            raise
        socket.set(zmq.IPV6, False)
        socket.bind(address)
