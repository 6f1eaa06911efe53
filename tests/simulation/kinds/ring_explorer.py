"""All orders in which two workers can use the rings between them (`timely/wire/transport/neighbours.py`).

The code is that of production: `Neighbours`, the two rings in shared memory, and the pipes by which a writer
wakes a reader. Only the sockets are lists. Each of these is one action, and all orders of them are explored:

    write     a worker sends its next message: by the ring if there is room, else by the socket
    deliver   the oldest message that a socket holds arrives, be it an offer of a ring
    take      a worker takes the next message whose turn it is
    sleep     a worker that has nothing to take asks to be woken, looks once more, and sleeps
    wake      a worker that sleeps wakes up: its pipe is readable, its socket has brought something, or a
              client wants it to write

A state is what memory, pipes, sockets and objects hold. `restore` writes it back into them, so that each
state is visited once. What is judged:

    in every state   messages were taken whole, each once, in the order in which they were sent; a worker that
                     sleeps and whose next message is in its ring has been woken
    at every end     all messages were taken, and nobody sleeps on one
"""

from __future__ import annotations

import os
import zlib
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from mmap import PAGESIZE
from typing import TypeAlias

import pytest

from progress.checking.counterexample import Counterexample
from timely.errors import PeerError
from timely.running.checking.reached import Explored
from timely.wire.batch import Frame
from timely.wire.transport import neighbours
from timely.wire.transport.neighbours import Neighbours
from timely.wire.transport.ring import ASLEEP, HEAD, TAIL, InboundRing, OutboundRing

__all__ = ["RingExplorer", "RingTraffic"]

_Move: TypeAlias = tuple[int, str]
"""Which worker does what."""
_Frames: TypeAlias = tuple[bytes, ...]


@dataclass(frozen=True)
class RingTraffic:
    """What two workers send each other: for each the bytes of its messages, in this order.

    sleeps   how often each worker may sleep: otherwise there is no end
    """

    sizes: tuple[Sequence[int], Sequence[int]]
    sleeps: int = 1

    def message(self, worker: int, number: int) -> _Frames:
        """Return a message: one frame that says which it is, and one of its size."""
        size = self.sizes[worker][number]
        return b"%d %d" % (worker, number), bytes([1 + number]) * size


@dataclass(frozen=True)
class _Side:
    """What belongs to one worker: its inbound ring, its line, what it has sent and taken."""

    memory: bytes
    """The inbound ring, compressed."""
    read: int
    written: int
    known_read: int
    sent: int
    taken: int
    waiting: tuple[tuple[int, _Frames], ...]
    socket: tuple[_Frames, ...]
    """What it has sent by its socket and the other worker has not."""
    woken: int
    """Bytes in the pipe by which it is woken."""
    is_asleep: bool = False
    sleeps: int = 0


_State: TypeAlias = tuple[_Side, _Side]


@dataclass(eq=False)
class _Worker:
    """One worker of production, and what is not part of it."""

    neighbours: Neighbours
    socket: deque[_Frames] = field(default_factory=deque)
    is_asleep: bool = False
    sleeps: int = 0

    @property
    def ring(self) -> InboundRing:
        """The ring that it reads."""
        ring = self.neighbours._lines[1 - self.neighbours._index].ring
        assert ring is not None
        return ring

    @property
    def out(self) -> OutboundRing | None:
        """The ring that it writes; None: its offer has not come."""
        return self.neighbours._lines[1 - self.neighbours._index].out


class RingExplorer:
    """Explores a traffic: `run` returns how much there was, or raises `Counterexample`. With `enough` it ends
    once it has visited so many states, the nearest to the first.
    """

    def __init__(self, traffic: RingTraffic, enough: int = 0) -> None:
        self.explored = Explored()
        self._traffic = traffic
        self._enough = enough
        self._came_from: dict[Hashable, tuple[Hashable, _Move] | None] = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(neighbours, "RING_BYTES_MAX", PAGESIZE)
            patch.setattr(neighbours, "_RING_BYTES_MIN", PAGESIZE)
            self._workers = [_Worker(Neighbours(index, self._sender(index))) for index in range(2)]
            for index, worker in enumerate(self._workers):
                worker.neighbours.join([1 - index])
        for index in range(2):
            self._deliver(1 - index)

    def close(self) -> None:
        """Release all memory."""
        for worker in self._workers:
            worker.neighbours.close()

    def _sender(self, index: int):  # type: ignore[no-untyped-def]
        def send(peer: int, frames: Sequence[Frame]) -> None:
            self._workers[index].socket.append(tuple(map(bytes, frames)))

        return send

    # -- going from state to state --

    def run(self) -> Explored:
        """Visit all states, the nearest first."""
        start = self._state()
        self._came_from[start] = None
        waiting = deque([start])
        while waiting and not 0 < self._enough <= self.explored.states:
            state = waiting.popleft()
            self.explored.states += 1
            self._restore(state)
            moves = self._moves()
            if not moves:
                self._judge_end(state)
            for move in moves:
                self._restore(state)
                self.explored.transitions += 1
                self._do(state, move)
                after = self._state()
                if after not in self._came_from:
                    self._came_from[after] = state, move
                    self._judge(after)
                    waiting.append(after)
        return self.explored

    def _moves(self) -> list[_Move]:
        moves: list[_Move] = []
        for index, worker in enumerate(self._workers):
            other = self._workers[1 - index]
            line = worker.neighbours._lines[1 - index]
            if other.socket:
                moves.append((index, "deliver"))
            if worker.is_asleep:
                has_client = line.sent < len(self._traffic.sizes[index])
                if self._is_readable(worker) or line.waiting or has_client:
                    moves.append((index, "wake"))
                continue
            if line.sent < len(self._traffic.sizes[index]):
                moves.append((index, "write"))
            if worker.neighbours.has_more():
                moves.append((index, "take"))
            elif worker.sleeps < self._traffic.sleeps:
                moves.append((index, "sleep"))
        return moves

    def _do(self, state: _State, move: _Move) -> None:
        index, doing = move
        worker = self._workers[index]
        line = worker.neighbours._lines[1 - index]
        number, arrived = line.taken, list[tuple[int, list[memoryview]]]()
        try:
            if doing == "write":
                worker.neighbours.send(1 - index, self._traffic.message(index, line.sent))
            elif doing == "deliver":
                self._deliver(index)
            elif doing == "take":
                arrived = worker.neighbours.take(1, 1 << 30)
            elif doing == "sleep":
                worker.sleeps += 1
                worker.is_asleep = worker.neighbours.fall_asleep()
                if not worker.is_asleep:
                    worker.neighbours.wake_up(self._is_readable(worker))
            else:
                worker.is_asleep = False
                worker.neighbours.wake_up(self._is_readable(worker))
        except (PeerError, AssertionError) as error:
            raise Counterexample(f"{type(error).__name__}: {error}", self._path(state, move)) from error
        for peer, frames in arrived:
            if (peer, tuple(map(bytes, frames))) != (1 - index, self._traffic.message(peer, number)):
                raise Counterexample(f"message {number} of worker {peer} is another", self._path(state, move))

    def _deliver(self, index: int) -> None:
        frames = self._workers[1 - index].socket.popleft()
        self._workers[index].neighbours.by_socket(1 - index, [memoryview(frame) for frame in frames])

    def _is_readable(self, worker: _Worker) -> bool:
        return self._woken(worker) > 0

    def _woken(self, worker: _Worker) -> int:
        """Return how many bytes its pipe holds; they stay there."""
        wake = worker.neighbours._wake
        assert wake is not None
        try:
            held = os.read(wake[0], 1 << 12)
        except BlockingIOError:
            return 0
        os.write(wake[1], held)
        return len(held)

    # -- states --

    def _state(self) -> _State:
        first, second = self._workers
        return self._side(first), self._side(second)

    def _side(self, worker: _Worker) -> _Side:
        line = worker.neighbours._lines[1 - worker.neighbours._index]
        ring, out = worker.ring, line.out
        return _Side(
            zlib.compress(_memory(ring), 1),
            ring._head,
            -1 if out is None else out._tail,
            -1 if out is None else out._head,
            line.sent,
            line.taken,
            tuple((number, tuple(map(bytes, frames))) for number, frames in line.waiting),
            tuple(worker.socket),
            self._woken(worker),
            worker.is_asleep,
            worker.sleeps,
        )

    def _restore(self, state: _State) -> None:
        for worker, side in zip(self._workers, state, strict=True):
            line = worker.neighbours._lines[1 - worker.neighbours._index]
            _write_memory(worker.ring, zlib.decompress(side.memory))
            worker.ring._head = side.read
            if line.out is not None:
                line.out._tail, line.out._head = side.written, side.known_read
            line.sent, line.taken = side.sent, side.taken
            line.waiting = deque(
                (number, [memoryview(frame) for frame in frames]) for number, frames in side.waiting
            )
            worker.socket = deque(side.socket)
            worker.is_asleep, worker.sleeps = side.is_asleep, side.sleeps
            wake = worker.neighbours._wake
            assert wake is not None
            if self._woken(worker):
                os.read(wake[0], 1 << 12)
            if side.woken:
                os.write(wake[1], b"!" * side.woken)

    # -- judging --

    def _judge(self, state: _State) -> None:
        for index, side in enumerate(state):
            worker = self._workers[index]
            # What waits from the socket makes that readable: only the ring needs the pipe.
            is_next_in_ring = worker.ring.number() == side.taken
            if side.is_asleep and is_next_in_ring and not side.woken:
                raise Counterexample(
                    f"worker {index} sleeps, its next message is in the ring, and nobody has woken it",
                    self._path(state, None),
                )

    def _judge_end(self, state: _State) -> None:
        self.explored.ends += 1
        for index, side in enumerate(state):
            count = len(self._traffic.sizes[1 - index])
            if side.taken != count:
                raise Counterexample(
                    f"nothing can happen, and worker {index} has taken {side.taken} of {count} messages",
                    self._path(state, None),
                )

    def _path(self, state: Hashable, move: _Move | None) -> list[str]:
        moves = [] if move is None else [move]
        while (step := self._came_from[state]) is not None:
            state, before = step
            moves.append(before)
        return [f"worker {who}: {doing}" for who, doing in reversed(moves)]


def _memory(ring: InboundRing) -> bytes:
    """Return the memory of a ring, as far as it means something: bytes that were read count as zero."""
    words, size = ring._words, ring._size
    memory = bytearray(ring._map)
    unread = bytearray(size)
    head, tail = words[HEAD], words[TAIL]
    for start, stop in _spans(head, tail, size):
        unread[start:stop] = ring._bytes[start:stop]
    memory[len(memory) - size :] = unread
    return bytes(memory)


def _spans(head: int, tail: int, size: int) -> Iterator[tuple[int, int]]:
    first, stop = head & (size - 1), head & (size - 1)
    stop += tail - head
    yield first, min(stop, size)
    if stop > size:
        yield 0, stop - size


def _write_memory(ring: InboundRing, memory: bytes) -> None:
    ring._map[:] = memory


assert ASLEEP > HEAD > TAIL
