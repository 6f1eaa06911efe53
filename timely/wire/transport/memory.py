"""The transport between workers that take turns in one process: messages wait in queues.

As the simulated network of the tests, `MemoryNetwork` delays messages by a seeded choice, FIFO between each
pair.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from ..batch import Frame
from . import Lent


class MemoryNetwork:
    """Connects `workers` workers; with a `seed` it delays messages at random."""

    def __init__(self, workers: int, seed: int | None = None) -> None:
        self.workers = workers
        self._random = None if seed is None else random.Random(seed)
        self._queues: dict[tuple[int, int], deque[list[memoryview]]] = {
            (source, target): deque()
            for source in range(workers)
            for target in range(workers)
            if source != target
        }

    def transport(self, worker: int) -> MemoryTransport:
        """Return the transport of one worker."""
        return MemoryTransport(self, worker)

    def in_flight(self) -> int:
        """Return the number of messages sent and not yet received."""
        return sum(map(len, self._queues.values()))

    def waiting(self, source: int, target: int) -> list[list[memoryview]]:
        """Return the messages that `source` has sent and `target` not received, oldest first; they stay
        queued.
        """
        return list(self._queues[source, target])

    def heard(self, target: int) -> list[int]:
        """Return the workers from which a message waits for `target`, ascending."""
        queues = self._queues
        return [source for source in range(self.workers) if source != target and queues[source, target]]

    def put(self, source: int, target: int, frames: Sequence[Frame]) -> None:
        """Queue a message. Frames are copied, as by a socket: sender and receiver share no memory."""
        self._queues[source, target].append([memoryview(bytes(frame)) for frame in frames])

    def take(self, target: int) -> list[tuple[int, list[memoryview]]]:
        """Remove and return the messages that have arrived at `target`, as (source, frames)."""
        arrived: list[tuple[int, list[memoryview]]] = []
        for source in range(self.workers):
            if source == target:
                continue
            queue = self._queues[source, target]
            count = len(queue) if self._random is None else self._random.randint(0, len(queue))
            arrived.extend((source, queue.popleft()) for _ in range(count))
        return arrived

    def take_one(self, source: int, target: int) -> list[memoryview]:
        """Remove and return the oldest message of `source` to `target`, without delay."""
        return self._queues[source, target].popleft()


class MemoryTransport:
    """The `Transport` of one worker over a `MemoryNetwork`."""

    def __init__(self, network: MemoryNetwork, worker: int) -> None:
        self._network = network
        self._worker = worker

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """Queue a message for a peer."""
        self._network.put(self._worker, peer, frames)

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """Remove and return the messages that have arrived."""
        return self._network.take(self._worker)

    def heard(self) -> list[int]:
        """Return the peers with a message waiting here, ascending."""
        return self._network.heard(self._worker)

    def recv_one(self, peer: int) -> list[memoryview]:
        """Remove and return the oldest message of a peer; there must be one."""
        return self._network.take_one(peer, self._worker)

    def wait(self, timeout_seconds: float) -> None:
        """Return at once: in one process no other worker runs meanwhile."""
        del timeout_seconds

    def lend(self) -> Lent | None:
        """Return None: messages are not in shared memory."""
        return None

    def take_back(self) -> tuple[int, int]:
        """Return (0, 0): nothing is ever lent."""
        return 0, 0

    def close(self) -> None:
        """Do nothing: there are no resources."""
