"""Workers of one process that send one another messages through shared memory, as neighbours do.

The same memory and records as between processes; sockets are lists, which are late by a seed. Nobody waits: a
region that goes on by itself takes up what is there, and leaves the rest.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from math import inf

import pytest

from timely.client.embedded.threads.others_in_turn import Meeting, OthersInTurn
from timely.running.core import Worker
from timely.wire.batch import Frame
from timely.wire.transport import Lent, neighbours
from timely.wire.transport.neighbours import Neighbours

__all__ = ["RingNetwork", "RingTransport"]


class RingNetwork:
    """Connects `workers` workers by rings of `size` bytes. `seed`: of what is late, and how late.
    `is_in_turn`: whether `meet` is to be called.
    """

    def __init__(self, workers: int, size: int, seed: int, is_in_turn: bool = False) -> None:
        self.is_in_turn = is_in_turn
        self.rng = random.Random(seed)
        self.sockets: dict[tuple[int, int], deque[list[bytes]]] = {
            (source, target): deque() for source in range(workers) for target in range(workers)
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(neighbours, "RING_BYTES_MAX", size)
            patch.setattr(neighbours, "_RING_BYTES_MIN", size)
            self.workers = [Neighbours(index, self._sender(index)) for index in range(workers)]
            for index, worker in enumerate(self.workers):
                worker.join([peer for peer in range(workers) if peer != index])
        self.lends = 0.9
        """How often memory is lent to who asks for it."""
        self.lent = 0
        """Messages that were sent or taken by who was lent memory."""
        self.others: list[OthersInTurn] = []

    def meet(self, workers: Sequence[Worker]) -> None:
        """Let a worker that waits in memory that it was lent let the others go on, as in one thread."""
        meeting = Meeting(workers)
        meeting.until = inf
        self.others = [OthersInTurn(meeting, index) for index in range(len(workers))]

    def transport(self, worker: int) -> RingTransport:
        """The door of one worker."""
        return RingTransport(self, worker)

    def in_flight(self) -> int:
        """Whether messages were sent and not received."""
        return sum(map(len, self.sockets.values())) + sum(worker.has_more() for worker in self.workers)

    def arrive(self, source: int, target: int, count: int) -> None:
        """So many messages come through a socket, if there are as many."""
        queue = self.sockets[source, target]
        for _ in range(min(count, len(queue))):
            frames = [memoryview(frame) for frame in queue.popleft()]
            self.workers[target].by_socket(source, frames)

    def close(self) -> None:
        """Let go of all memory."""
        for worker in self.workers:
            worker.close()

    def _sender(self, index: int):  # type: ignore[no-untyped-def]
        def send(peer: int, frames: Sequence[Frame]) -> None:
            self.sockets[index, peer].append([bytes(frame) for frame in frames])

        return send


class RingTransport:
    """One worker's door to a `RingNetwork`."""

    def __init__(self, network: RingNetwork, worker: int) -> None:
        self._network = network
        self._neighbours = network.workers[worker]
        self._worker = worker
        self._peers = [peer for peer in range(len(network.workers)) if peer != worker]

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """Whichever way."""
        self._neighbours.send(peer, frames)

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """Some of what has come."""
        rng = self._network.rng
        for peer in self._peers:
            self._network.arrive(peer, self._worker, rng.randint(0, 3))
        return self._neighbours.take(rng.choice([1, 3, 1 << 30]), 1 << 30)

    def heard(self) -> list[int]:
        """The peers of which a message waits, ascending."""
        for peer in self._peers:
            self._network.arrive(peer, self._worker, 1 << 30)
        return [peer for peer in self._peers if self._neighbours._lines[peer].has_next()]

    def recv_one(self, peer: int) -> list[memoryview]:
        """The oldest message of a peer of which one waits."""
        frames = self._neighbours._lines[peer].next()
        assert frames is not None
        return frames

    def wait(self, timeout_seconds: float) -> None:
        """Nobody else runs meanwhile."""
        del timeout_seconds

    def lend(self) -> Lent | None:
        """Now and then, nothing."""
        network = self._network
        lines = self._neighbours.lend() if network.rng.random() < network.lends else None
        if lines is None:
            return None
        others = network.others[self._worker] if network.others and network.rng.random() < 0.8 else None
        return Lent(lines, lambda number: False, 100, others)

    def take_back(self) -> tuple[int, int]:
        """See `Transport`."""
        sent, taken = self._neighbours.take_back()
        self._network.lent += sent + taken
        return sent, taken

    def close(self) -> None:
        """See `RingNetwork.close`."""
