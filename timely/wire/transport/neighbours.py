"""Peers on this host: small messages go through shared memory, the others through sockets, all in order.

Each message to a neighbour has a number, by whichever of the two it goes, and the reader takes messages in
the order of their numbers. So the writer never waits for room: a message that is large, or is sent while the
ring is full or not open yet, goes through the socket. The reader may then take later messages after they have
arrived, never before their turn.

Each worker makes the rings that it reads, one for each neighbour, and offers them through the sockets, before
any other message. A neighbour that can open its ring writes there from then on. A neighbour that cannot, and
all neighbours on hosts without shared memory (`ring.IS_POSSIBLE`), go on with the socket.

The socket reports the loss of a neighbour; the reader takes what that had written to the ring before.
"""

from __future__ import annotations

import ctypes
import logging
import os
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from progress.compiled.arrays import Int64s

from ...cores import cores
from ...errors import PeerError
from ...limits import RING_BYTES_MAX, RINGS_BYTES_MAX, ROUND_SPIN_SECONDS_MAX, SPIN_SECONDS_MAX
from ..batch import Frame
from .ring import (
    IS_POSSIBLE,
    L_KNOWN_READ,
    L_PEER,
    L_READ,
    L_SENT,
    L_SLEEPS,
    L_TAKEN,
    L_WRITTEN,
    LINE,
    InboundRing,
    OutboundRing,
    fence,
)

__all__ = ["Neighbours"]

_NUMBER: Final = struct.Struct("<q")
_OFFER: Final = -1
"""In place of a message number: the second frame is the offer of a ring."""
_RING_BYTES_MIN: Final = 1 << 16
_WAKES: Final = 4096
_LENT: Final = struct.Struct(f"<{LINE}q")
"""A lent line, with its fields in the order of `ring.py`."""
_IN_VAIN_MAX: Final = 4
_TRIES_APART: Final = 16
_DESCRIPTORS: Final = 4
"""File descriptors that the rings between two neighbours take on each side."""

_yield_core = ctypes.CDLL(None).sched_yield if IS_POSSIBLE else os.sched_yield
"""Yields the core. `os.sched_yield` keeps the interpreter's lock, for which a neighbour in this process
may wait.
"""

_log = logging.getLogger("timely")


class Neighbours:
    """The peers of worker `index` on this host.

    Args:
        by_socket: sends a message to a peer through its socket.
        sharing: the number of workers that share the limits of this process (memory, file descriptors).
        wake: wakes a sleeping peer that is a thread of this process; `None`: wake peers by a pipe.
    """

    def __init__(
        self,
        index: int,
        by_socket: Callable[[int, Sequence[Frame]], None],
        sharing: int = 1,
        wake: Callable[[int], None] | None = None,
    ) -> None:
        self._index = index
        self._sharing = sharing
        self._wake_peer = wake
        self._by_socket = by_socket
        self._lines: dict[int, _Line] = {}
        self._order: list[int] = []
        self._rings: list[InboundRing] = []
        self._wake: tuple[int, int] | None = None
        self._has_heard = False
        self.spins = False
        """True if each worker has a core of its own, so that a worker that busy-waits delays no other."""
        self._awaited = -1
        self._awaited_since = 0.0
        self._in_vain = 0
        """How many times in a row busy-waiting has ended without a message."""
        self._lent: Int64s = np.zeros((0, LINE), np.int64)

    def __contains__(self, peer: int) -> bool:
        return peer in self._lines

    @property
    def wake_descriptor(self) -> int | None:
        """Becomes readable when a neighbour has written while this worker slept; `None` if there is no
        pipe.
        """
        return None if self._wake is None else self._wake[0]

    def join(self, peers: Sequence[int]) -> None:
        """Add these peers and offer them rings; call this before the first message to them."""
        lines = {peer: _Line(peer) for peer in peers}
        self._lines.update(lines)
        self._order = list(self._lines)
        if not (lines and IS_POSSIBLE):
            return
        if not _has_descriptors(_DESCRIPTORS * len(self._lines) * self._sharing):
            return
        self.spins = len(self._lines) < len(cores())
        size = RING_BYTES_MAX
        while size > _RING_BYTES_MIN and size * len(self._lines) * self._sharing > RINGS_BYTES_MAX:
            size //= 2
        try:
            if self._wake is None and self._wake_peer is None:
                self._wake = os.pipe()
                for end in self._wake:
                    os.set_blocking(end, False)
            wake = -1 if self._wake is None else self._wake[1]
            for peer, line in lines.items():
                line.ring = InboundRing(size, f"worker {peer}", wake)
                self._rings.append(line.ring)
        except OSError as error:
            _log.info("worker %d: no shared memory, sockets do: %s", self._index, error)
        for peer, line in lines.items():
            if line.ring is not None:
                self._by_socket(peer, [_NUMBER.pack(_OFFER), line.ring.offer])

    def ring_bytes(self) -> dict[int, int]:
        """Return for each neighbour how many bytes wait on the ring to it."""
        return {peer: line.out.unread_bytes for peer, line in self._lines.items() if line.out is not None}

    def send(self, peer: int, frames: Sequence[Frame], by_ring: bool = True) -> None:
        """Send a message through the ring if it has room, else, or without `by_ring`, through the socket."""
        line = self._lines[peer]
        if not by_ring or line.out is None or not line.out.put(line.sent, frames):
            self._by_socket(peer, [_NUMBER.pack(line.sent), *frames])
        line.sent += 1  # not after an error in sending: the reader would wait for that number for ever

    def by_socket(self, peer: int, frames: list[memoryview]) -> None:
        """Take in a message, or an offer, that a neighbour has sent through its socket."""
        line = self._lines[peer]
        if not frames or len(frames[0]) != _NUMBER.size:
            raise PeerError(f"worker {peer} has sent a message without a number")
        (number,) = _NUMBER.unpack(frames[0])
        if number == _OFFER:
            self._accept(line, peer, frames[1:])
        else:
            line.waiting.append((number, frames[1:]))

    def take(self, count: int, size: int) -> list[tuple[int, list[memoryview]]]:
        """Return the messages whose turn it is, as (peer, frames): `count` of them or `size` bytes at most,
        or slightly more. Raises `PeerError` for data that no worker sends.

        The next call begins with the peers that this one did not reach: otherwise those after a peer that
        sends without a pause would never get a turn.
        """
        arrived: list[tuple[int, list[memoryview]]] = []
        peers = self._order
        for position, peer in enumerate(peers):
            line = self._lines[peer]
            while count > 0 and size > 0 and (frames := line.next()) is not None:
                arrived.append((peer, frames))
                count -= 1
                size -= sum(map(len, frames))
            if count <= 0 or size <= 0:
                self._order = peers[position + 1 :] + peers[: position + 1]
                break
        if arrived:
            self._has_heard = True
        return arrived

    @property
    def peers(self) -> int:
        """The number of neighbours."""
        return len(self._lines)

    def looks_out(self, number: int) -> bool:
        """See `Lent`. Yields the core, since two workers that happen to share one would otherwise keep each
        other from sending what both wait for. After some waits in vain it returns True only once in a while.
        """
        is_in_vain = self._in_vain >= _IN_VAIN_MAX and self._in_vain % _TRIES_APART
        if self.spins and not is_in_vain:
            now = time.monotonic()
            if number != self._awaited:
                self._awaited, self._awaited_since = number, now
            _yield_core()
            if now - self._awaited_since < ROUND_SPIN_SECONDS_MAX:
                return True
        self._in_vain += 1
        return False

    def lend(self) -> Int64s | None:
        """Return a line for each peer, by index, with which a kernel reads and writes the rings until
        `take_back`; `None` if some peer has no ring, or has sent a message by its socket that waits.
        """
        lines = self._lines
        self._awaited = -1
        if self._lent.shape[0] != len(lines):
            self._lent = np.zeros((len(lines), LINE), np.int64)
        for position, peer in enumerate(sorted(lines)):
            line = lines[peer]
            ring, out = line.ring, line.out
            if ring is None or out is None or line.waiting:
                return None
            at = position * _LENT.size
            _LENT.pack_into(self._lent.data, at, peer, *ring.lent(), line.taken, *out.lent(), line.sent, 0)
        return self._lent

    def take_back(self) -> tuple[int, int]:
        """Note that the kernel no longer uses the lines; wake the peers that have to be woken. Return how
        many messages the kernel has sent and taken.
        """
        sent = taken = 0
        for lent in _LENT.iter_unpack(self._lent.data):
            line = self._lines[lent[L_PEER]]
            assert line.ring is not None and line.out is not None
            line.ring.take_back(lent[L_READ])
            line.out.take_back(lent[L_WRITTEN], lent[L_KNOWN_READ], lent[L_SLEEPS])
            sent += lent[L_SENT] - line.sent
            taken += lent[L_TAKEN] - line.taken
            line.sent, line.taken = lent[L_SENT], lent[L_TAKEN]
        if taken:
            self._has_heard = True
            self._in_vain = 0
        return sent, taken

    def has_more(self) -> bool:
        """Return True if `take` would return a message."""
        for line in self._lines.values():
            if line.has_next():
                return True
        return False

    def spin(self) -> bool:
        """Busy-wait for a moment for a message, if any has come since the last call; return True if one
        comes.

        A neighbour that has just sent something is often working on the next message, and sleeping would take
        longer. The loop yields the core, so that a client that waits for it gets it meanwhile.
        """
        if not (self.spins and self._has_heard):
            return False
        self._has_heard = False
        until = time.monotonic() + SPIN_SECONDS_MAX
        while time.monotonic() < until:
            for ring in self._rings:
                if ring.has_more():
                    return True
            os.sched_yield()
        return False

    def has_any(self) -> bool:
        """Return True if some message has come, be it its turn or not.

        Any thread may call this: it changes nothing, and reads nothing that another thread may be taking.
        """
        return any(line.has_any() for line in self._lines.values())

    def ask_to_be_woken(self) -> None:
        """Let writers wake this worker from now on. Check once more for messages before sleeping."""
        for ring in self._rings:
            ring.set_asleep(True)
        fence()

    def fall_asleep(self) -> bool:
        """Ask to be woken; return True if the worker may sleep, since no message has come in between."""
        self.ask_to_be_woken()
        return not self.has_more()

    def wake_up(self, was_woken: bool) -> None:
        """Ask no longer to be woken; `was_woken`: the descriptor is readable."""
        for ring in self._rings:
            ring.set_asleep(False)
        if was_woken and self._wake is not None:
            os.read(self._wake[0], _WAKES)

    def close(self) -> None:
        """Release all memory. May be called twice."""
        for line in self._lines.values():
            line.close()
        self._rings = []
        if self._wake is not None:
            for end in self._wake:
                os.close(end)
            self._wake = None

    def _accept(self, line: _Line, peer: int, frames: Sequence[memoryview]) -> None:
        if line.out is not None or len(frames) != 1:
            raise PeerError(f"worker {peer} has offered shared memory twice, or without saying where")
        try:
            line.out = OutboundRing(frames[0], self._wake_peer and partial(self._wake_peer, peer))
        except OSError as error:
            _log.info("worker %d: no shared memory with worker %d: %s", self._index, peer, error)
        except ValueError as error:
            raise PeerError(f"worker {peer} has sent a malformed offer of shared memory: {error}") from error


def _has_descriptors(count: int) -> bool:
    """Return True if `count` is at most a quarter of this process's limit of file descriptors: sockets and
    files need the others.
    """
    import resource  # missing on some systems, which have no rings either

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit == resource.RLIM_INFINITY or 4 * count <= limit


class _Line:
    """Both directions between this worker and one neighbour."""

    __slots__ = ("_peer", "out", "ring", "sent", "taken", "waiting")

    def __init__(self, peer: int) -> None:
        self._peer = peer
        self.out: OutboundRing | None = None
        self.ring: InboundRing | None = None
        self.waiting: deque[tuple[int, list[memoryview]]] = deque()  # messages from the socket
        self.sent = 0
        self.taken = 0

    def next(self) -> list[memoryview] | None:
        """Remove and return the message whose turn it is, if it is here."""
        frames = None if self.ring is None else self.ring.take(self.taken)
        if frames is None and self.waiting:
            number, frames = self.waiting[0]
            if number != self.taken:
                self._check(number)
                return None
            self.waiting.popleft()
        if frames is not None:
            self.taken += 1
        return frames

    def _check(self, number: int) -> None:
        """Raise `PeerError` if `number`, the first from the socket, is an old number, or if the message whose
        turn it is can never come: the first ones from the socket and from the ring are both later ones.
        """
        in_ring = -1 if self.ring is None else self.ring.number()
        if number < self.taken or in_ring > self.taken:
            also = f", and {in_ring} through shared memory" if in_ring >= 0 else ""
            raise PeerError(
                f"worker {self._peer} has sent message {number} by its socket{also}: {self.taken} is next"
            )

    def has_next(self) -> bool:
        """Return True if the message whose turn it is is here."""
        if self.ring is not None and self.ring.has_more() and self.ring.number() == self.taken:
            return True
        return bool(self.waiting) and self.waiting[0][0] == self.taken

    def has_any(self) -> bool:
        """Return True if any message is here."""
        return bool(self.waiting) or (self.ring is not None and self.ring.has_more())

    def close(self) -> None:
        """Release the memory."""
        for ring in (self.out, self.ring):
            if ring is not None:
                ring.close()
        self.out = self.ring = None
