"""Workers in one process: messages wait in lists.

`MemoryNetwork` may delay messages by a seeded choice, FIFO between each pair: the simulated network of the
tests.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from ..batch import Frame
from . import Lent


class MemoryNetwork:
    """Connects `workers` workers; with a `seed`, messages are held back at random."""

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
        """The door of one worker."""
        return MemoryTransport(self, worker)

    def in_flight(self) -> int:
        """Messages sent and not yet received."""
        return sum(map(len, self._queues.values()))

    def waiting(self, source: int, target: int) -> list[list[memoryview]]:
        """What `source` has sent and `target` not received, oldest first; to look at, not to take."""
        return list(self._queues[source, target])

    def put(self, source: int, target: int, frames: Sequence[Frame]) -> None:
        """A message starts its way. Frames are copied, as a socket would: sender and receiver share no
        memory.
        """
        self._queues[source, target].append([memoryview(bytes(frame)) for frame in frames])

    def take(self, target: int) -> list[tuple[int, list[memoryview]]]:
        """What has arrived at `target`."""
        arrived: list[tuple[int, list[memoryview]]] = []
        for source in range(self.workers):
            if source == target:
                continue
            queue = self._queues[source, target]
            count = len(queue) if self._random is None else self._random.randint(0, len(queue))
            arrived.extend((source, queue.popleft()) for _ in range(count))
        return arrived

    def take_one(self, source: int, target: int) -> list[memoryview]:
        """The oldest message of `source` to `target`, whatever the delays."""
        return self._queues[source, target].popleft()


class MemoryTransport:
    """One worker's door to a `MemoryNetwork`."""

    def __init__(self, network: MemoryNetwork, worker: int) -> None:
        self._network = network
        self._worker = worker

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """Into the peer's queue."""
        self._network.put(self._worker, peer, frames)

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """What the network lets through."""
        return self._network.take(self._worker)

    def heard(self) -> list[int]:
        """The peers of which a message waits, ascending."""
        peers = (peer for peer in range(self._network.workers) if peer != self._worker)
        return [peer for peer in peers if self._network.waiting(peer, self._worker)]

    def recv_one(self, peer: int) -> list[memoryview]:
        """The oldest message of a peer of which one waits."""
        return self._network.take_one(peer, self._worker)

    def wait(self, timeout_seconds: float) -> None:
        """Returns at once: in one process nobody else runs meanwhile."""
        del timeout_seconds

    def lend(self) -> Lent | None:
        """Nothing: messages are lists."""
        return None

    def take_back(self) -> tuple[int, int]:
        """See `lend`."""
        return 0, 0

    def close(self) -> None:
        """Nothing to let go of."""
