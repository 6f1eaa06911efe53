"""Sockets: between workers, and between workers and clients. The only file that imports zmq.

    WorkerMesh     one worker's door to the others: a `Transport`
    ServerSocket   a worker's door for clients
    ClientSockets  a client's doors to all workers of a cluster

Each worker listens at one socket (ROUTER) and has one connection out to each peer (DEALER), so that what one
worker sends another arrives in order. Nothing is dropped: queues have no high-water mark (a slow peer costs
memory, never messages). Frames above `COPIED_BYTES_MAX` are sent from where they lie: their sender must not
change them afterwards.

A peer is lost when the connection out to it breaks: at once if its process ends, after `HEARTBEAT_MS_MAX` if
it falls silent. Since its last words come by another connection, they get `LOST_SECONDS_MAX` to arrive. By
then it is known, too, which of the two it was: what is only silent lets a new connection begin and says
nothing on it.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Final, cast

import zmq
from zmq.utils.monitor import parse_monitor_message

from ...errors import MisuseError, PeerError
from ...limits import (
    COPIED_BYTES_MAX,
    FRAME_BYTES_MAX,
    HEARTBEAT_MS_DEFAULT,
    HEARTBEAT_MS_MAX,
    LOST_SECONDS_MAX,
    RECV_BYTES_MAX,
    RECV_COUNT_MAX,
    REQUEST_BYTES_MAX,
)
from ..batch import Frame

__all__ = ["ClientSockets", "ServerSocket", "WorkerMesh"]

_NAME: Final = b"naiad-worker-"
_RECONNECT_MS: Final = 20
_LINGER_MS: Final = 250
_LOOKS: Final = 64
"""While messages keep coming, connections are looked at once in so many times."""
_EVENTS: Final = zmq.EVENT_DISCONNECTED | zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED


class _Poller:
    """Waits for sockets and file descriptors; knows which were readable at the last look."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()

    def add(self, source: zmq.Socket[bytes] | int) -> None:
        self._poller.register(source, zmq.POLLIN)

    def remove(self, source: zmq.Socket[bytes] | int) -> None:
        self._poller.unregister(source)

    def wait(self, timeout_seconds: float) -> None:
        self._poller.poll(max(0, round(timeout_seconds * 1000)))


class _Connection:
    """What the monitor of one connection has told: whether it broke, and whether it came back."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.monitor = socket.get_monitor_socket(_EVENTS)
        self.lost_since: float | None = None
        self._is_begun_anew = False
        self._is_back = False

    def look(self) -> None:
        """Take in what has happened since the last look."""
        while cast(int, self.monitor.get(zmq.EVENTS)) & zmq.POLLIN:
            event = parse_monitor_message(self.monitor.recv_multipart(zmq.NOBLOCK))["event"]
            if event == zmq.EVENT_DISCONNECTED:
                self.lost_since = self.lost_since or time.monotonic()
                self._is_begun_anew = self._is_back = False
            elif event == zmq.EVENT_CONNECTED:
                self._is_begun_anew = True
            else:
                self._is_back = True

    def loss(self) -> str:
        """Why the other side counts as lost; empty while it does not."""
        if self.lost_since is None or time.monotonic() - self.lost_since < LOST_SECONDS_MAX:
            return ""
        if self._is_begun_anew and not self._is_back:
            return (
                f"it is silent: no answer to a probe for {HEARTBEAT_MS_MAX / 1000:g} s, though its "
                "host takes "
                "connections. It may be stopped, or kept from running"
            )
        return "its process ended, or its host cannot be reached"

    @property
    def is_joined(self) -> bool:
        """Whether the other side has taken it, and it did not break since."""
        self.look()
        return self._is_back

    def forgive(self) -> None:
        """A connection that broke and came back while nothing was under way is as good as new."""
        self.look()
        if self._is_back:
            self.lost_since = None


class WorkerMesh:
    """Joins worker `index` with its peers.

    Args:
        index: of this worker.
        listen: where it listens, such as "ipc:///tmp/x/mesh-0" or "tcp://*:7301"; several are possible.
        peers: where each other worker listens; `join` may name them later, once all ports are known.
        mend: what to tell the user if an address of `listen` is taken.

    Raises `MisuseError` when it cannot listen there.
    """

    def __init__(self, index: int, listen: Sequence[str], peers: Mapping[int, str], mend: str = "") -> None:
        self.index = index
        self._peers: dict[int, str] = {}
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._poller = _Poller()
        self._looks = 0
        self._inbound = self._context.socket(zmq.ROUTER)
        self._outbound: dict[int, zmq.Socket[bytes]] = {}
        self._connections: dict[int, _Connection] = {}
        self._names: dict[bytes, int] = {}
        self.addresses: list[str] = []  # those of `listen`, with the port in place of 0
        try:
            self._inbound.set(zmq.MAXMSGSIZE, FRAME_BYTES_MAX)
            _prepare(self._inbound)
            for address in listen:
                _listen(self._inbound, address, mend)
                self.addresses.append(_endpoint(self._inbound))
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._poller.add(self._inbound)
        self.join(peers)

    def join(self, peers: Mapping[int, str]) -> None:
        """Connect to these workers, too; before the first message."""
        self._peers.update(peers)
        self._names.update({_NAME + str(peer).encode(): peer for peer in peers})
        for peer, address in peers.items():
            self._connect(peer, address)

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """Queue a message for `peer`; raises `MisuseError` for a frame that is too large. That a peer is lost
        is told by `recv_nowait`.
        """
        for frame in frames:
            if len(frame) > COPIED_BYTES_MAX and memoryview(frame).nbytes > FRAME_BYTES_MAX:
                raise MisuseError(
                    f"a frame of {memoryview(frame).nbytes:,} bytes for worker {peer} is larger than "
                    f"{FRAME_BYTES_MAX:,}: insert fewer rows per epoch, or use more workers"
                )
        _send(self._outbound[peer], frames)

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """What has come in, in order for each peer, up to a limit, so that vertices and clients have their
        turn; the next call goes on. `PeerError` when a peer is lost.
        """
        arrived: list[tuple[int, list[memoryview]]] = []
        inbound = self._inbound
        left = RECV_BYTES_MAX
        while left > 0 and len(arrived) < RECV_COUNT_MAX and cast(int, inbound.get(zmq.EVENTS)) & zmq.POLLIN:
            name, *frames = inbound.recv_multipart(zmq.NOBLOCK, copy=False)
            peer = self._names.get(name.bytes)
            # Not one of ours: another program that found the port. Its talk is not read.
            if peer is not None:
                arrived.append((peer, [frame.buffer for frame in frames]))
                left -= sum(map(len, frames))
        self._looks += 1
        if not arrived or self._looks % _LOOKS == 0:
            self._check_peers()
        return arrived

    def wait(self, timeout_seconds: float) -> None:
        """Block until a message, an event of a connection, or anything that is `watch`ed has come in."""
        is_losing = any(connection.lost_since is not None for connection in self._connections.values())
        self._poller.wait(min(timeout_seconds, LOST_SECONDS_MAX) if is_losing else timeout_seconds)

    def watch(self, source: ServerSocket | int) -> None:
        """Let `wait` return also when this socket or file descriptor becomes readable."""
        self._poller.add(source if isinstance(source, int) else source.socket)

    def close(self) -> None:
        """Send what is queued, for a quarter of a second at most, and let go of all. Twice is once."""
        if self._context.closed:
            return
        for socket in self._outbound.values():
            socket.disable_monitor()
        for connection in self._connections.values():
            connection.monitor.close(linger=0)
        self._connections.clear()
        self._context.destroy(linger=_LINGER_MS)

    def _connect(self, peer: int, address: str) -> None:
        socket = self._context.socket(zmq.DEALER)
        _prepare(socket)
        socket.set(zmq.IDENTITY, _NAME + str(self.index).encode())
        connection = _Connection(socket)
        self._poller.add(connection.monitor)
        self._connections[peer] = connection
        socket.connect(address)
        self._outbound[peer] = socket

    def _check_peers(self) -> None:
        for peer, connection in self._connections.items():
            connection.look()
            if loss := connection.loss():
                raise PeerError(f"worker {self.index} lost worker {peer} at {self._peers[peer]}: {loss}")


class ServerSocket:
    """Where clients reach a worker.

    Args:
        address: where to listen; port 0 takes any that is free.
        mend: what to tell the user if the address is taken.
    """

    def __init__(self, address: str, mend: str = "") -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket = self._context.socket(zmq.ROUTER)
        try:
            self.socket.set(zmq.MAXMSGSIZE, REQUEST_BYTES_MAX)
            _prepare(self.socket)
            _listen(self.socket, address, mend)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self.address = _endpoint(self.socket)

    def recv_nowait(self) -> list[tuple[bytes, list[memoryview]]]:
        """Requests that have come in, as (who asks, frames), up to a limit; the next call goes on."""
        arrived: list[tuple[bytes, list[memoryview]]] = []
        left = RECV_BYTES_MAX
        while (
            left > 0 and len(arrived) < RECV_COUNT_MAX and cast(int, self.socket.get(zmq.EVENTS)) & zmq.POLLIN
        ):
            client, *frames = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
            left -= sum(map(len, frames))
            arrived.append((client.bytes, [frame.buffer for frame in frames]))
        return arrived

    def send(self, client: bytes, frames: Sequence[Frame]) -> None:
        """Answer; a client that has gone is no error."""
        _send(self.socket, [client, *frames])

    def close(self) -> None:
        """Send what is queued, for a quarter of a second at most, and let go of the socket."""
        self._context.destroy(linger=_LINGER_MS)


class ClientSockets:
    """Connections to some workers; connecting happens in the background.

    When it is dropped without `close`, sockets are closed before their context, which would otherwise wait
    for them for ever, in whatever line of the program the collector runs.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = list(addresses)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._poller = _Poller()
        self._sockets: list[zmq.Socket[bytes]] = []
        self._connections: list[_Connection] = []
        self._let_go = weakref.finalize(self, _let_go, self._context, self._sockets, self._connections)
        self._let_go.atexit = False
        try:
            for address in addresses:
                self._connect(address)
        except BaseException:
            self._context.destroy(linger=0)
            raise

    def send(self, worker: int, frames: Sequence[Frame]) -> None:
        """Queue a request for a worker."""
        _send(self._sockets[worker], frames)

    def recv_nowait(self, worker: int) -> list[memoryview] | None:
        """The next message of a worker, if one has come in."""
        socket = self._sockets[worker]
        if not cast(int, socket.get(zmq.EVENTS)) & zmq.POLLIN:
            return None
        return [frame.buffer for frame in socket.recv_multipart(zmq.NOBLOCK, copy=False)]

    def loss(self, worker: int) -> str:
        """Why no answer of a worker can come any more, since its connection broke; empty while one can. A
        connection that is refused is no loss, it is tried again.
        """
        connection = self._connections[worker]
        connection.look()
        return connection.loss()

    def is_joined(self, worker: int) -> bool:
        """Whether a worker is reached. It need not be free to answer for that."""
        return self._connections[worker].is_joined

    def is_losing(self) -> bool:
        """Whether some connection has broken: `loss` will say more of it within a moment."""
        return any(connection.lost_since is not None for connection in self._connections)

    def forgive(self, worker: int) -> None:
        """Before a request: what broke before, and has come back since, is of no interest."""
        self._connections[worker].forgive()

    def wait(self, timeout_seconds: float) -> None:
        """Block until a message or an event of a connection comes in."""
        self._poller.wait(timeout_seconds)

    def watch(self, descriptor: int) -> None:
        """Let `wait` return also when this file descriptor becomes readable."""
        self._poller.add(descriptor)

    def unwatch(self, descriptor: int) -> None:
        """The inverse of `watch`."""
        self._poller.remove(descriptor)

    def close(self) -> None:
        """Let go of all sockets; requests that have not left are forgotten. Twice is once."""
        self._let_go()

    def _connect(self, address: str) -> None:
        socket = self._context.socket(zmq.DEALER)
        _prepare(socket)
        connection = _Connection(socket)
        try:
            socket.connect(address)
        except zmq.ZMQError as error:
            connection.monitor.close(linger=0)
            raise MisuseError(f"{address!r} is no address of a worker ({error}): write host:port") from error
        self._sockets.append(socket)
        self._connections.append(connection)
        self._poller.add(socket)
        self._poller.add(connection.monitor)


def _let_go(
    context: zmq.Context[zmq.Socket[bytes]],
    sockets: Sequence[zmq.Socket[bytes]],
    connections: Sequence[_Connection],
) -> None:
    if context.closed:
        return
    for socket, connection in zip(sockets, connections, strict=True):
        socket.disable_monitor()
        connection.monitor.close(linger=0)
        socket.close(linger=0)
    context.destroy(linger=0)


def _prepare(socket: zmq.Socket[bytes]) -> None:
    socket.set(zmq.SNDHWM, 0)
    socket.set(zmq.RCVHWM, 0)
    socket.set(zmq.LINGER, _LINGER_MS)
    socket.set(zmq.RECONNECT_IVL, _RECONNECT_MS)
    socket.set(zmq.HEARTBEAT_IVL, HEARTBEAT_MS_DEFAULT)
    socket.set(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_MS_MAX)
    socket.copy_threshold = COPIED_BYTES_MAX


def _listen(socket: zmq.Socket[bytes], address: str, mend: str) -> None:
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        if error.errno == zmq.EADDRINUSE:
            raise MisuseError(f"{address} is in use by another program{mend and f': {mend}'}") from error
        raise MisuseError(f"this host cannot listen at {address} ({error}){mend and f': {mend}'}") from error


def _endpoint(socket: zmq.Socket[bytes]) -> str:
    """Where it listens by what it was told last."""
    return cast(bytes, socket.get(zmq.LAST_ENDPOINT)).decode().rstrip("\0")


def _send(socket: zmq.Socket[bytes], frames: Sequence[Frame]) -> None:
    socket.send_multipart(frames, copy=False)
