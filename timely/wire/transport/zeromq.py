"""The sockets between workers, and between workers and clients. Only this folder imports zmq.

    WorkerMesh     a worker's connections to the others: a `Transport`
    ClientSockets  a client's connections to all workers of a cluster

The socket at which a worker accepts clients is in `server_socket.py`.

Each worker listens at one socket (ROUTER) and has one outgoing connection to each peer (DEALER), so that the
messages of one worker to another arrive in order. Between workers of one host small messages go through
shared memory (`neighbours.py`). Nothing is dropped: queues have no high-water mark, so a slow peer costs
memory, never messages. Frames above `COPIED_BYTES_MAX` are sent without a copy: the sender must not change
them afterwards.

A peer is lost when the outgoing connection to it breaks: at once if its process ends, after `silence_seconds`
if it falls silent. Its last messages come by another connection, and get `LOST_SECONDS_MAX` to arrive. By
then this side can also tell the two cases apart: a peer that is only silent lets a new connection begin, and
sends nothing on it. By tcp, silence means that no bytes come, of probes or others: a large frame over a slow
link is not silence.

With keys all tcp traffic is encrypted, and both sides have proved their identity before the first message
(`curve.py`, `door.py`). Ipc needs no keys: its sockets lie in a private folder.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Final

import zmq

from ...errors import MisuseError, PeerError
from ...limits import (
    COPIED_BYTES_MAX,
    FRAME_BYTES_MAX,
    HANDSHAKE_FAILURES_MAX,
    LOST_SECONDS_MAX,
    RECV_BYTES_MAX,
    RECV_COUNT_MAX,
    SILENCE_SECONDS_DEFAULT,
)
from ..addresses import is_tcp
from ..batch import Frame
from ..keys import ClientKeys, ClusterKeys
from ..refusals import Refusal, client_refusal, worker_refusal
from . import Lent
from .curve import lock_client
from .direct import DirectLines
from .door import SocketGuard, listen_all
from .events import MonitorEvents
from .neighbours import Neighbours
from .socket_options import LINGER_MS, LOCK_BYTES, Poller, address_options, context, has_come, prepare, send
from .tcp import peer_of, traffic

__all__ = ["ClientSockets", "WorkerMesh"]

_NAME: Final = b"naiad-worker-"
_JUST_NOW_SECONDS: Final = 1e-3
_ROUND_LOOKS: Final = 100
"""The `looks` of `Lent`: how often a kernel looks for a message before it yields the core."""
_LOOKS: Final = 64
"""While messages keep coming, one in this many calls of `recv_nowait` checks the connections."""
_SOCKET_LOOKS: Final = 8
"""While messages keep coming, one in this many calls of `recv_nowait` checks the socket."""
_CHECK_SECONDS: Final = 0.01
"""While no messages come, the least time between two checks of the connections without news of one."""
_FAILED: Final = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
_EVENTS: Final = zmq.EVENT_DISCONNECTED | zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | _FAILED
_LISTEN_SECONDS: Final = 0.1
"""The least time between two checks for silence on a connection."""
_DOUBT_SECONDS: Final = 2.0
"""A client gives up after this time in which the other side has ended every connection before it had
begun.
"""
_DOUBT_OF_PEERS_SECONDS: Final = 10.0
"""The time after which a worker gives up on a peer in the same case; peers may be started by hand."""


class _Connection:
    """The state of one connection, from the events of its monitor: whether it broke, whether it came back, or
    why it never begins.

    Args:
        socket: not connected yet.
        has_keys: True if this side proves a key.
        doubt_seconds: after this time in which the other side has ended every connection before it had begun,
            it counts as refusing them all.
        silence_seconds: how long the other side may be silent before it counts as lost.
    """

    def __init__(
        self, socket: zmq.Socket[bytes], *, has_keys: bool, doubt_seconds: float, silence_seconds: float
    ) -> None:
        self._events = MonitorEvents(socket.get_monitor_socket(_EVENTS))
        self.monitor = self._events.socket
        self.lost_since: float | None = None
        self.refusal: Refusal | None = None
        self.failing_since: float | None = None
        self._failures = 0
        self._has_keys = has_keys
        self._doubt_seconds = doubt_seconds
        self._silence_seconds = silence_seconds
        self._is_up = False
        self._is_begun_anew = False
        self._is_back = False
        self._number = -1
        self._peer: object = None
        self._listen_at = 0.0
        self._is_silent = False
        self._looked_at = 0.0

    def look(self) -> None:
        """Take in the events since the last look."""
        self._looked_at = time.monotonic()
        for event, value in self._events.take() if has_come(self.monitor) else ():
            if event == zmq.EVENT_CONNECTED:
                self._is_begun_anew = True
                self._number, self._peer = value, peer_of(value)
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._is_up = self._is_back = True
                self._failures, self.failing_since = 0, None
            elif event == zmq.EVENT_DISCONNECTED:
                if self._is_up:  # otherwise it had not begun: not a loss, and zmq tries again
                    self.lost_since = self.lost_since or time.monotonic()
                    self._is_begun_anew = self._is_back = False
                self._is_up = self._is_silent = False
            else:
                self._note_failure(event, value)
        if self._is_up and self._peer is not None and time.monotonic() >= self._listen_at:
            self._listen()

    def _listen(self) -> None:
        """Check whether any bytes come by a tcp connection: at least probes do, as long as the other side
        runs.

        Bytes that come after a silence end it, unless the loss was reported already.
        """
        self._listen_at = time.monotonic() + _LISTEN_SECONDS
        heard = traffic(self._number, self._peer)
        is_silent = heard is not None and heard.silent_ms > 1_000 * self._silence_seconds
        if is_silent and not self._is_silent:
            self.lost_since = self.lost_since or time.monotonic()
            self._is_back = False
        elif self._is_silent and not is_silent:
            self._is_back = True
        self._is_silent = is_silent

    def _note_failure(self, event: int, value: int) -> None:
        self._failures += 1
        self.failing_since = self.failing_since or time.monotonic()
        if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self.refusal = Refusal.NOT_LISTED
        elif value == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
            self.refusal = Refusal.KEYS_UNKNOWN if self._has_keys else Refusal.KEYS_WANTED
        elif self._failures >= HANDSHAKE_FAILURES_MAX:
            if time.monotonic() - self.failing_since >= self._doubt_seconds:
                self.refusal = Refusal.BROKEN_OFF

    def loss(self) -> str:
        """Return why the other side counts as lost; empty while it does not."""
        if self._is_given_up():
            return "each connection to it ends before it has begun. Its process has ended, or is about to"
        if self.lost_since is None or time.monotonic() - self.lost_since < LOST_SECONDS_MAX:
            return ""
        if self._is_silent or (self._is_begun_anew and not self._is_back):
            return (
                f"it is silent: no answer to a probe for {self._silence_seconds:g} s. It may be stopped, "
                "kept from running, or cut off"
            )
        return "its process ended, or its host cannot be reached"

    def _is_given_up(self) -> bool:
        """Return True if the other side has ended a connection before it had begun, and none has begun for
        long enough since. One such end suffices: if the process has ended in between, nobody listens any more
        to end another connection.
        """
        since = self.failing_since
        return since is not None and time.monotonic() - since >= self._doubt_seconds + LOST_SECONDS_MAX

    @property
    def is_joined(self) -> bool:
        """True if the other side has accepted the connection, and it has not broken since."""
        self.look()
        return self._is_back

    def forgive(self) -> None:
        """Forget that the connection broke if it has come back; for a time when no request is outstanding.

        Without a new look if the last one was less than `_JUST_NOW_SECONDS` ago: breaking and coming back
        takes longer than that.
        """
        self.look_lately()
        if self._is_back:
            self.lost_since = None

    def look_lately(self) -> None:
        """Take in the events since the last look, unless that was just now."""
        if time.monotonic() - self._looked_at > _JUST_NOW_SECONDS:
            self.look()


class WorkerMesh:
    """Connects worker `index` with its peers.

    Args:
        index: of this worker.
        listen: addresses at which it listens, such as "ipc:///tmp/x/mesh-0" or "tcp://*:7301".
        peers: the address of each other worker; `join` may add them later, once all ports are known.
        mend: advice for the user if an address of `listen` is in use.
        keys: of the cluster; without them every program that reaches an address of `listen` can talk to it.
        silence_seconds: how long a peer may be silent before it counts as lost.

    Raises `MisuseError` if it cannot listen at one of the addresses.
    """

    def __init__(
        self,
        index: int,
        listen: Sequence[str],
        peers: Mapping[int, str],
        mend: str = "",
        keys: ClusterKeys | None = None,
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
    ) -> None:
        self.index = index
        self._keys = keys
        self._silence_seconds = silence_seconds
        self._door: SocketGuard | None = None
        self._peers: dict[int, str] = {}
        self._context = context(len(peers))
        self._poller = Poller()
        self.neighbours = Neighbours(index, self._by_socket)
        self._looks, self._check_at = 0, 0.0
        self.has_other_news = False
        """True if the last `wait` ended for anything but a message through shared memory."""
        self.ready: Sequence[zmq.Socket[bytes] | int] = []
        """The sockets and descriptors for which the last `wait` ended."""
        self._inbound = self._context.socket(zmq.ROUTER)
        self._outbound: dict[int, zmq.Socket[bytes]] = {}
        self._connections: dict[int, _Connection] = {}
        self._names: dict[bytes, int] = {}
        self.addresses: list[str] = []  # those of `listen`, with the port in place of 0
        try:
            self._inbound.set(zmq.MAXMSGSIZE, FRAME_BYTES_MAX + LOCK_BYTES)
            prepare(self._inbound)
            if keys is not None:
                keys = ClusterKeys(keys.pair)  # admits workers only: clients use another socket
            self.addresses, self._door = listen_all(
                self._context, self._inbound, listen, mend, keys, silence_seconds
            )
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._poller.add(self._inbound)
        self.join(peers)

    def join(self, peers: Mapping[int, str]) -> None:
        """Connect to these workers, too; call this before the first message to them."""
        self._peers.update(peers)
        self._names.update({_NAME + str(peer).encode(): peer for peer in peers})
        for peer, address in peers.items():
            self._connect(peer, address)
        self.neighbours.join([peer for peer, address in peers.items() if not is_tcp(address)])
        if (wake := self.neighbours.wake_descriptor) is not None:
            self._poller.add(wake)

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """Queue a message for `peer`; raises `MisuseError` for a frame that is too large.

        If the peer is lost, `recv_nowait` raises the error.
        """
        for frame in frames:
            if len(frame) > COPIED_BYTES_MAX and memoryview(frame).nbytes > FRAME_BYTES_MAX:
                raise MisuseError(
                    f"a frame of {memoryview(frame).nbytes:,} bytes for worker {peer} is larger than "
                    f"{FRAME_BYTES_MAX:,}: insert fewer rows per epoch, or use more workers"
                )
        if peer in self.neighbours:
            self.neighbours.send(peer, frames)
        else:
            self._by_socket(peer, frames)

    def _by_socket(self, peer: int, frames: Sequence[Frame]) -> None:
        send(self._outbound[peer], frames)

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """Return the messages that have come in, in order for each peer. Raises `PeerError` when a peer is
        lost.

        It returns them up to a limit, so that vertices and clients get their turn; the next call returns
        more.
        """
        neighbours = self.neighbours
        arrived = neighbours.take(RECV_COUNT_MAX, RECV_BYTES_MAX)
        self._looks += 1
        # If all peers share memory, a socket rarely has a message, so it is checked less often. Order holds
        # all the same: no later message from shared memory is returned before one that waits in the socket.
        if not arrived or self._looks % _SOCKET_LOOKS == 0 or neighbours.peers < len(self._outbound):
            self._recv_by_socket(arrived)
        if self._looks % _LOOKS == 0 or (not arrived and time.monotonic() >= self._check_at):
            self._check_peers()
        return arrived

    def _recv_by_socket(self, arrived: list[tuple[int, list[memoryview]]]) -> None:
        """Add the messages from the socket, and those from shared memory whose turn it is after them."""
        inbound, had_neighbours = self._inbound, False
        left, count = RECV_BYTES_MAX, RECV_COUNT_MAX - len(arrived)
        while left > 0 and count > 0 and has_come(inbound):
            name, *frames = inbound.recv_multipart(zmq.NOBLOCK, copy=False)
            peer = self._names.get(name.bytes)
            count -= 1
            # Without a peer the sender is no worker, but another program that found the port: ignore it.
            if peer is not None:
                left -= sum(map(len, frames))
                buffers = [frame.buffer for frame in frames]
                if peer in self.neighbours:
                    self.neighbours.by_socket(peer, buffers)
                    had_neighbours = True
                else:
                    arrived.append((peer, buffers))
        if had_neighbours:
            arrived += self.neighbours.take(RECV_COUNT_MAX - len(arrived), RECV_BYTES_MAX)

    def wait(self, timeout_seconds: float) -> None:
        """Block until a message or an event of a connection comes in, or a `watch`ed source is readable."""
        self.has_other_news, self.ready = False, []
        is_losing = any(connection.lost_since is not None for connection in self._connections.values())
        seconds = min(timeout_seconds, LOST_SECONDS_MAX) if is_losing else timeout_seconds
        if seconds > 0 and self.neighbours.spin():
            return
        ready = self.ready = self._poller.wait(seconds if self.neighbours.fall_asleep() else 0.0)
        was_woken = self.neighbours.wake_descriptor in ready
        self.neighbours.wake_up(was_woken)
        if len(ready) > was_woken:
            self.has_other_news = True
            if any(type(source) is not int for source in ready):
                self._check_at = 0.0  # perhaps an event of a connection: until read, it would end each `wait`

    def lend(self) -> Lent | None:
        """See `Transport`."""
        neighbours = self.neighbours
        lines = neighbours.lend() if neighbours.peers == len(self._outbound) else None
        return None if lines is None else Lent(lines, neighbours.looks_out, _ROUND_LOOKS)

    def take_back(self) -> tuple[int, int]:
        """See `Transport`."""
        return self.neighbours.take_back()

    def watch(self, *sources: zmq.Socket[bytes] | int) -> None:
        """Let `wait` also return when one of these sockets or file descriptors becomes readable."""
        for each in sources:
            self._poller.add(each)

    def unwatch(self, *sources: zmq.Socket[bytes] | int) -> None:
        """The inverse of `watch`."""
        for each in sources:
            self._poller.remove(each)

    def close(self) -> None:
        """Send what is queued, for a quarter of a second at most, and release all. May be called twice."""
        if self._context.closed:
            return
        for socket in self._outbound.values():
            socket.disable_monitor()
        for connection in self._connections.values():
            connection.monitor.close(linger=0)
        self._connections.clear()
        self.neighbours.close()
        if self._door is not None:
            self._door.close()
        self._context.destroy(linger=LINGER_MS)

    def _connect(self, peer: int, address: str) -> None:
        socket = self._context.socket(zmq.DEALER)
        prepare(socket)
        socket.set(zmq.IDENTITY, _NAME + str(self.index).encode())
        is_locked = self._keys is not None and is_tcp(address)
        if self._keys is not None and is_locked:
            lock_client(socket, self._keys.as_client())
        # Without keys a worker keeps trying: hosts are started by hand, and the peer may come later.
        doubt = _DOUBT_OF_PEERS_SECONDS if is_locked else float("inf")
        connection = _Connection(
            socket, has_keys=is_locked, doubt_seconds=doubt, silence_seconds=self._silence_seconds
        )
        self._poller.add(connection.monitor)
        self._connections[peer] = connection
        address_options(socket, address, self._silence_seconds)
        socket.connect(address)
        self._outbound[peer] = socket

    def _check_peers(self) -> None:
        self._check_at = time.monotonic() + _CHECK_SECONDS
        for peer, connection in self._connections.items():
            connection.look()
            if connection.refusal is not None:
                raise PeerError(
                    f"worker {self.index} cannot join worker {peer} at {self._peers[peer]}: "
                    f"{worker_refusal(connection.refusal)}"
                )
            if loss := connection.loss():
                raise PeerError(f"worker {self.index} lost worker {peer} at {self._peers[peer]}: {loss}")


class ClientSockets:
    """Connections to some workers, each silent for `silence_seconds` at most; they connect in the background.

    If the object is dropped without `close`, a finalizer closes the sockets before their context. Otherwise
    the context would wait for them for ever, in whatever line of the program the garbage collector runs.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        keys: ClientKeys | None = None,
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
    ) -> None:
        self.addresses = list(addresses)
        self._keys = keys
        self._silence_seconds = silence_seconds
        self._context = context(0, len(self.addresses))
        self._poller = Poller()
        self._sockets: list[zmq.Socket[bytes]] = []
        self._connections: list[_Connection] = []
        self._is_given_up: list[bool] = []
        self._direct = DirectLines(self.addresses, self._poller)
        self._let_go = weakref.finalize(
            self, _let_go, self._context, self._sockets, self._connections, self._direct
        )
        self._let_go.atexit = False
        try:
            for address in addresses:
                self._connect(address)
        except BaseException:
            self._context.destroy(linger=0)
            raise

    def send(self, worker: int, frames: Sequence[Frame]) -> None:
        """Queue a request for a worker."""
        if not self._direct.send(worker, frames):
            send(self._sockets[worker], frames)

    def has_unsent(self, worker: int) -> bool:
        """Return True if part of a request waits here for room on the direct line to a worker. Requests by
        ZeroMQ are sent by a thread of its own.
        """
        return self._direct.has_unsent(worker)

    def choose(self, worker: int) -> None:
        """Use the direct line to a worker from now on, if there is one.

        Call this while no request is outstanding, since requests by different connections may arrive in
        another order.
        """
        self._direct.choose(worker)

    def recv_nowait(self, worker: int) -> list[memoryview] | None:
        """Return the next message of a worker, if one has come in."""
        if (message := self._direct.recv_nowait(worker)) is not None:
            return message
        socket = self._sockets[worker]
        if not has_come(socket):
            return None
        try:
            return [frame.buffer for frame in socket.recv_multipart(zmq.NOBLOCK, copy=False)]
        except BaseException:
            # Interrupted (Ctrl-C) between two frames: drop the rest, which would pass for the next message.
            while socket.get(zmq.RCVMORE):
                socket.recv(zmq.NOBLOCK)
            raise

    def has_arrived(self) -> bool:
        """Return True if a message of any worker has been read and not been returned yet."""
        return self._direct.has_arrived()

    def heard(self, worker: int) -> list[list[memoryview]]:
        """Return the messages of a worker that `wait` has returned."""
        return self._direct.take(worker)

    def loss(self, worker: int) -> str:
        """Return why no answer of a worker can come any more, since its connection broke; empty while one
        can.

        A refused connection is not a loss: it is tried again.
        """
        connection = self._connections[worker]
        connection.look()
        return connection.loss()

    def is_joined(self, worker: int) -> bool:
        """Return True if the connection to a worker stands. The worker need not be free to answer for
        that.
        """
        return self._connections[worker].is_joined

    def refusal(self, worker: int) -> str:
        """Return why a worker never talks to this client; empty while it may.

        If there is a reason, the connection is not tried again.
        """
        connection = self._connections[worker]
        connection.look()
        if connection.refusal is None:
            return ""
        if not self._is_given_up[worker]:
            self._is_given_up[worker] = True
            self._sockets[worker].disconnect(self.addresses[worker])
        return client_refusal(connection.refusal, self.addresses[worker], self._keys)

    def is_losing(self) -> bool:
        """Return True if some connection has broken, or fails to begin: `loss` or `refusal` returns the
        reason soon.
        """
        return any(
            connection.lost_since is not None or connection.failing_since is not None
            for connection in self._connections
        )

    def forgive(self, worker: int) -> None:
        """Forget that the connection to a worker broke if it has come back; call this before a request."""
        self._connections[worker].forgive()

    def has_broken(self, worker: int) -> bool:
        """Return True if the connection to a worker has broken and is not forgiven, though it may be back."""
        connection = self._connections[worker]
        connection.look_lately()
        return connection.lost_since is not None

    def wait(self, timeout_seconds: float) -> list[int] | None:
        """Block until a message or an event of a connection comes in.

        Return the workers that have sent messages on direct lines, or None if anything else has happened, or
        may have. Takes in the events of all connections: one that is left would end every later call at once,
        and a client that waits would use its core all the time.
        """
        ready = self._poller.wait(timeout_seconds)
        speakers = self._direct.speakers
        heard = [speakers[source] for source in ready if isinstance(source, int) and source in speakers]
        if ready and len(heard) == len(ready) and not self._direct.is_full:
            return heard
        self._direct.flush()
        for connection in self._connections:
            connection.look()
        return None

    def watch(self, descriptor: int) -> None:
        """Let `wait` also return when this file descriptor becomes readable."""
        self._poller.add(descriptor)

    def unwatch(self, descriptor: int) -> None:
        """The inverse of `watch`."""
        self._poller.remove(descriptor)

    def close(self) -> None:
        """Close all sockets and drop unsent requests. May be called twice."""
        self._let_go()

    def _connect(self, address: str) -> None:
        socket = self._context.socket(zmq.DEALER)
        prepare(socket)
        has_keys = self._keys is not None and is_tcp(address)
        connection = _Connection(
            socket,
            has_keys=has_keys,
            doubt_seconds=_DOUBT_SECONDS,
            silence_seconds=self._silence_seconds,
        )
        try:
            if self._keys is not None and has_keys:
                lock_client(socket, self._keys)
            address_options(socket, address, self._silence_seconds)
            socket.connect(address)
        except zmq.ZMQError as error:
            connection.monitor.close(linger=0)
            raise MisuseError(f"{address!r} is no address of a worker ({error}): write host:port") from error
        self._sockets.append(socket)
        self._connections.append(connection)
        self._is_given_up.append(False)
        self._poller.add(socket)
        self._poller.add(connection.monitor)


def _let_go(
    context: zmq.Context[zmq.Socket[bytes]],
    sockets: Sequence[zmq.Socket[bytes]],
    connections: Sequence[_Connection],
    direct: DirectLines,
) -> None:
    if context.closed:
        return
    direct.close()
    for socket, connection in zip(sockets, connections, strict=True):
        socket.disable_monitor()
        connection.monitor.close(linger=0)
        socket.close(linger=0)
    context.destroy(linger=0)
