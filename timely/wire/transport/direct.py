"""Direct lines between a client and a worker of one host, without threads in between.

ZeroMQ hands each message to a thread of its own, on either side. If there are no more cores than workers,
these threads have to wait for a core, and a client's request that takes no time to answer is not even read
for a millisecond. So beside each ipc address there is a second one, of a Unix socket:

    DirectDoor   the listening socket of a worker, for any number of clients
    DirectLine   one connection, of either side
    DirectLines  those of a client, to workers of its host

A client sends requests without a table, or with a small one, by its line, and all answers to them come by it.
The ZeroMQ connection stays: for large requests, and to detect that a worker is gone, or silent.

The worker greets each client that it has admitted by a message without frames, and the client uses its line
from then on. A request sent before that might never be read: a worker with too many lines hangs up on further
ones.

A message consists of its number of frames, their sizes, and the frames. Neither side waits for the other:
bytes that find no room are sent later (`flush`).
"""

from __future__ import annotations

import secrets
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Final

from ...limits import (
    DIRECT_COUNT_MAX,
    DIRECT_TABLE_BYTES_MAX,
    DIRECT_UNSENT_BYTES_MAX,
    FRAME_BYTES_MAX,
    HEADER_BYTES_MAX,
)
from ..batch import Frame, bytes_of
from .socket_options import Poller

__all__ = ["BrokenLineError", "DirectDoor", "DirectLine", "DirectLines", "connect", "direct_path"]

_IS_POSSIBLE: Final = hasattr(select, "epoll") and hasattr(socket, "AF_UNIX")
_PREFIX: Final = "ipc://"
_NAME: Final = b"direct-"
_FRAMES_MAX: Final = 8
_PARTS_MAX: Final = 64
_READ_BYTES: Final = 96 << 10
"""Bytes for which the first read has room. Nearly all messages are small. For 256 KiB the C library may ask
the system for memory: then a read of 150 bytes took 18 µs in place of 2.
"""
_MORE_BYTES: Final = 1 << 18
"""The same for the second read, if the first has filled its room."""
_COUNT: Final = struct.Struct("<q")
_TRIES_MAX: Final = 16
"""A worker that has just been started may not listen yet. One that has no door is not asked for ever."""
_FULL_SECONDS: Final = 1.0
"""If no file descriptor was left for a client that waits to be admitted, the door tries again after this
time.
"""


class BrokenLineError(Exception):
    """The other side is gone, or has sent a malformed message."""


def direct_path(address: str) -> str | None:
    """Return the path of the direct door beside an address; None if the address has none."""
    return f"{address.removeprefix(_PREFIX)}-direct" if _IS_POSSIBLE and address.startswith(_PREFIX) else None


def connect(address: str) -> DirectLine | None:
    """Return a line to the worker at an address, not greeted yet; None if no worker listens there."""
    path = direct_path(address)
    if path is None:
        return None
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError:  # no descriptor left: ZeroMQ's connection will do
        return None
    try:
        connection.setblocking(False)
        connection.connect(path)
    except OSError:  # not there yet, or too many clients wait to be admitted
        connection.close()
        return None
    return DirectLine(connection, FRAME_BYTES_MAX)


class DirectLine:
    """One connection, of either side; `bytes_max`: the largest frame that it accepts."""

    def __init__(self, connection: socket.socket, bytes_max: int) -> None:
        self._connection = connection
        self.descriptor = connection.fileno()
        """The file descriptor to poll."""
        self._bytes_max = bytes_max
        self._unread = bytearray()
        self._unsent: deque[bytes | memoryview] = deque()
        self.unsent_bytes = 0

    def send(self, *messages: Sequence[Frame]) -> None:
        """Send messages, as far as there is room now; keep the rest. Raises `BrokenLineError`."""
        for frames in messages:
            # Fast path: bytes, as nearly all frames are, go as they are.
            views = [frame if type(frame) is bytes else bytes_of(frame) for frame in frames]
            header = struct.pack(f"<{1 + len(views)}q", len(views), *map(len, views))
            for part in (header, *views):
                if len(part):
                    self._unsent.append(part)
                    self.unsent_bytes += len(part)
        self.flush()

    def flush(self) -> None:
        """Send unsent bytes, as far as there is room now. Raises `BrokenLineError`."""
        while self._unsent:
            try:
                count = self._connection.sendmsg([*islice(self._unsent, _PARTS_MAX)], (), socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError as error:
                raise BrokenLineError(str(error)) from error
            self.unsent_bytes -= count
            while count:
                part = self._unsent.popleft()
                if len(part) > count:
                    self._unsent.appendleft(memoryview(part)[count:])
                count -= min(count, len(part))

    def recv(self) -> list[list[memoryview]]:
        """Return messages that have come in, up to a limit.

        Raises `BrokenLineError` when the other side has hung up and all messages have been read, or for a
        malformed message.
        """
        try:
            read = self._connection.recv(_READ_BYTES)
            if len(read) == _READ_BYTES:
                with suppress(OSError):  # nothing more has come; or the next call finds what is wrong
                    read += self._connection.recv(_MORE_BYTES)
        except BlockingIOError:
            return []
        except OSError as error:
            raise BrokenLineError(str(error)) from error
        if not read:
            raise BrokenLineError("the other side has hung up")
        if self._unread:
            self._unread += read
            if self._message(memoryview(self._unread), 0) is None:
                return []  # return early, so that an incomplete message is not copied with each read
            read = bytes(self._unread)
        messages: list[list[memoryview]] = []
        view, at = memoryview(read), 0
        while (message := self._message(view, at)) is not None:
            frames, at = message
            messages.append(frames)
        self._unread = bytearray(view[at:])
        return messages

    def _message(self, view: memoryview, at: int) -> tuple[list[memoryview], int] | None:
        """Return the frames of the message that begins at `at`, and its end; None if it is incomplete."""
        left = len(view) - at
        if left < 8:
            return None
        (count,) = _COUNT.unpack_from(view, at)
        if not 0 <= count <= _FRAMES_MAX:
            raise BrokenLineError(f"a message of {count} frames")
        at += 8 + 8 * count
        if left < 8 + 8 * count:
            return None
        sizes = struct.unpack_from(f"<{count}q", view, at - 8 * count)
        if count and (min(sizes) < 0 or max(sizes) > self._bytes_max):
            raise BrokenLineError(f"a message with frames of {sizes} bytes")
        if at + sum(sizes) > len(view):
            return None
        frames = []
        for size in sizes:
            frames.append(view[at : at + size])
            at += size
        return frames, at

    def close(self) -> None:
        """Hang up. May be called twice."""
        self._connection.close()


class DirectDoor:
    """The Unix socket at which clients of this host reach a worker.

    Args:
        path: of the socket. Raises `OSError` if this process cannot listen there.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines: dict[bytes, DirectLine] = {}
        self._clients: dict[int, bytes] = {}
        self._watched: dict[int, int] = {}
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listening.setblocking(False)
            self._listening.bind(path)
            self._listening.listen(DIRECT_COUNT_MAX)
            self._poll = select.epoll()
        except BaseException:
            self._listening.close()
            raise
        self._poll.register(self._listening.fileno(), select.EPOLLIN)
        self._full_until: float | None = None

    @property
    def descriptor(self) -> int:
        """The descriptor that becomes readable when there is something to receive, or room to send."""
        return self._poll.fileno()

    def __contains__(self, client: bytes) -> bool:
        return client in self._lines

    def recv_nowait(self, count: int) -> list[tuple[bytes, list[memoryview]]]:
        """Return requests that have come in, as (client, frames), of `count` clients at most."""
        arrived: list[tuple[bytes, list[memoryview]]] = []
        if self._full_until is not None and time.monotonic() >= self._full_until:
            self._full_until = None
            self._poll.modify(self._listening.fileno(), select.EPOLLIN)
        for descriptor, _ in self._poll.poll(0, count):
            client = self._clients.get(descriptor)
            if client is None:
                self._let_in()
                continue
            line = self._lines[client]
            try:
                line.flush()
                if line.unsent_bytes <= DIRECT_UNSENT_BYTES_MAX:
                    arrived += [(client, frames) for frames in line.recv()]
                self._watch(line)
            except BrokenLineError:
                self._hang_up(client)
        return arrived

    def send(self, client: bytes, *answers: Sequence[Frame]) -> None:
        """Send answers to a client; ignored if the client has gone."""
        line = self._lines.get(client)
        if line is None:
            return
        try:
            line.send(*answers)
            self._watch(line)
        except BrokenLineError:
            self._hang_up(client)

    @property
    def is_sending(self) -> bool:
        """True if part of some answer is still unsent."""
        return any(line.unsent_bytes for line in self._lines.values())

    def close(self) -> None:
        """Hang up on all clients, and admit no more. May be called twice."""
        if self._poll.closed:
            return
        for client in list(self._lines):
            self._hang_up(client)
        self._poll.close()
        self._listening.close()
        Path(self._path).unlink(missing_ok=True)

    def _let_in(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except BlockingIOError:  # no client waits any more
                return
            except OSError:  # no descriptor left: stop polling for a while, since it would stay readable
                self._full_until = time.monotonic() + _FULL_SECONDS
                self._poll.modify(self._listening.fileno(), 0)
                return
            if len(self._lines) >= DIRECT_COUNT_MAX:
                connection.close()
                continue
            connection.setblocking(False)
            client = _NAME + secrets.token_bytes(16)
            line = self._lines[client] = DirectLine(connection, HEADER_BYTES_MAX)
            self._clients[line.descriptor] = client
            self.send(client, [])

    def _watch(self, line: DirectLine) -> None:
        """Poll a line for reading unless its client leaves too many answers unread, and for writing while
        some are unsent.
        """
        events = select.EPOLLIN if line.unsent_bytes <= DIRECT_UNSENT_BYTES_MAX else 0
        events |= select.EPOLLOUT if line.unsent_bytes else 0
        watched = self._watched.get(line.descriptor)
        if watched is None:
            self._poll.register(line.descriptor, events)
        elif watched != events:
            self._poll.modify(line.descriptor, events)
        self._watched[line.descriptor] = events

    def _hang_up(self, client: bytes) -> None:
        line = self._lines.pop(client)
        self._clients.pop(line.descriptor)
        # Otherwise a copy of the descriptor, in a process that user code has forked, would keep waking this
        # one.
        if self._watched.pop(line.descriptor, None) is not None:
            self._poll.unregister(line.descriptor)
        line.close()


class _DropUnlessDone:
    """Drops a line if the `with` block raises; suppresses `BrokenLineError`. A class, since a generator takes
    0.5 µs more.
    """

    __slots__ = ("_drop", "_worker")

    def __init__(self, drop: Callable[[int], None], worker: int) -> None:
        self._drop = drop
        self._worker = worker

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if kind is not None:
            self._drop(self._worker)
        return isinstance(error, BrokenLineError)


class DirectLines:
    """The lines to the workers at `addresses` that have one; `poller` waits for them."""

    def __init__(self, addresses: Sequence[str], poller: Poller) -> None:
        self._addresses = addresses
        self._poller = poller
        self._tries = [_TRIES_MAX] * len(addresses)
        self._lines: list[DirectLine | None] = [None] * len(addresses)
        self._arrived: list[deque[list[memoryview]]] = [deque() for _ in addresses]
        self._greeted: set[int] = set()
        self._chosen: set[int] = set()
        self._full: set[int] = set()
        """The workers whose lines have unsent bytes."""
        self.speakers: dict[int, int] = {}
        """The worker of each line, by the line's descriptor."""

    def choose(self, worker: int) -> None:
        """See `ClientSockets.choose`."""
        if worker in self._chosen:
            return
        if self._lines[worker] is None:
            self._try(worker)
        elif worker not in self._greeted:
            self._take(worker)
        if worker in self._greeted:
            self._chosen.add(worker)

    def send(self, worker: int, frames: Sequence[Frame]) -> bool:
        """Send a request by the line to a worker; return False if there is none, or the table is too
        large.
        """
        line = self._lines[worker]
        if line is None or worker not in self._chosen or not _are_small(frames):
            return False
        with self._whole(worker):
            line.send(frames)
        if worker not in self._chosen:
            return False
        if line.unsent_bytes:
            self._full.add(worker)
            self._poller.add_both_ways(line.descriptor)
        return True

    def has_unsent(self, worker: int) -> bool:
        """Return True if part of a request to this worker is unsent."""
        return worker in self._full

    @property
    def is_full(self) -> bool:
        """True if some line has unsent bytes."""
        return bool(self._full)

    def flush(self) -> None:
        """Send unsent bytes of all lines, as far as there is room."""
        for worker in list(self._full):
            line = self._lines[worker]
            assert line is not None, "what is dropped is not full"
            with self._whole(worker):
                line.flush()
            if worker in self._full and not line.unsent_bytes:
                self._full.discard(worker)
                self._poller.add(line.descriptor)

    def recv_nowait(self, worker: int) -> list[memoryview] | None:
        """Return the next message of a worker, if one has come in by its line."""
        arrived = self._arrived[worker]
        if not arrived and self._lines[worker] is not None:
            self._take(worker)
        return arrived.popleft() if arrived else None

    def take(self, worker: int) -> list[list[memoryview]]:
        """Read the line of a worker once; return all its messages that have come in."""
        self._take(worker)
        arrived = self._arrived[worker]
        taken = [*arrived]
        arrived.clear()
        return taken

    def has_arrived(self) -> bool:
        """Return True if a message was read and has not been returned yet."""
        return any(self._arrived)

    def close(self) -> None:
        """Hang up on all workers. May be called twice."""
        for line in self._lines:
            if line is not None:
                line.close()

    def _try(self, worker: int) -> None:
        if self._tries[worker] <= 0:
            return
        self._tries[worker] -= 1
        line = connect(self._addresses[worker])
        if line is None:
            return
        try:
            self._lines[worker] = line
            self._poller.add(line.descriptor)
            self.speakers[line.descriptor] = worker
        except BaseException:  # a line that the poller does not know would be slow
            self.drop(worker)
            raise

    def _take(self, worker: int) -> None:
        line = self._lines[worker]
        assert line is not None
        with self._whole(worker):
            for message in line.recv():
                if message:
                    self._arrived[worker].append(message)
                else:
                    self._greeted.add(worker)

    def _whole(self, worker: int) -> _DropUnlessDone:
        """Return a context for one operation on a line: if it is interrupted (Ctrl-C), nobody knows how much
        of a message was read or sent, so the line is dropped as a broken one is.
        """
        return _DropUnlessDone(self.drop, worker)

    def drop(self, worker: int) -> None:
        """Drop a broken line, for good. If the worker is gone, its ZeroMQ connection reports that."""
        line, self._lines[worker] = self._lines[worker], None
        self._tries[worker] = 0
        if line is not None:
            if line.descriptor in self._poller:
                self._poller.remove(line.descriptor)
            self.speakers.pop(line.descriptor, None)
            line.close()
        for workers in (self._greeted, self._chosen, self._full):
            workers.discard(worker)


def _are_small(frames: Sequence[Frame]) -> bool:
    """Return True if all frames but the first are small enough for a direct line."""
    return all(memoryview(frame).nbytes <= DIRECT_TABLE_BYTES_MAX for frame in frames[1:])
