"""Credits: a worker holds back new work while other workers have not received what it has sent them.

A worker that is stopped, or in a long call, receives nothing, and what is sent to it takes memory here, on
the way, or in the threads of its sockets. So each worker counts the bytes that it has sent to each peer and
that the peer has not received:

    mark      goes behind every `quantum` bytes; the peer answers it when it receives it. Messages keep their
              order, so everything before the mark has been received by then
    hold      a worker that has sent some peer more than the limit tells the others, and takes it back later
              (`release`)

Over the limit, or while a peer holds, the gate (`gate.py`) is closed: inputs let no rows in, and
worker processes keep requests that would bring new rows or seal epochs
(`worker/answers/held_requests.py`). What is under way goes on. Over twice the limit no vertex runs either, so
that a join that makes much of little waits between two pieces.

Law: no worker waits for ever. A mark is answered by the worker that receives it, whatever its own gate says:
receiving, progress messages and answers never wait. So the counts of a worker depend on nothing but that
its peers receive, a hold depends only on the counts of the worker that sends it, and nothing depends on
holds but the gate. There is no circle.

Bound: beside what one activation sends, and one quantum, a worker has sent a peer at most twice the limit
that this has not received.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from progress.errors import PeerError

from ..limits import UNRECEIVED_BYTES_MAX, UNRECEIVED_OF_PEER_BYTES_MIN
from ..wire.transport import Transport
from .gate import Gate
from .progress_messages import CreditNews, write_credit_header

__all__ = ["Credits", "share_of"]

_QUANTA: Final = 8
"""Marks within a limit."""


def share_of(workers: int) -> int:
    """Return the limit towards each peer in a cluster of so many workers."""
    return max(
        UNRECEIVED_OF_PEER_BYTES_MIN,
        min(UNRECEIVED_BYTES_MAX, 2 * UNRECEIVED_BYTES_MAX // max(1, workers - 1)),
    )


class Credits:
    """What worker `index` of `workers` has sent and the others have not received.

    Args:
        gate: opened and closed by this object.
        transport: by which messages leave; None if there are no others.
        limit: bytes towards each peer; None: as `limits.py` has it, 0: no limit, and nothing is counted.
    """

    def __init__(
        self, index: int, workers: int, gate: Gate, transport: Transport | None, limit: int | None
    ) -> None:
        self.transport = transport
        self.gate = gate
        self._limit = share_of(workers) if limit is None else limit
        self.quantum = max(1, self._limit // _QUANTA)
        """Bytes behind which a mark goes."""
        self._peers = [peer for peer in range(workers) if peer != index]
        self._unreceived = [0] * workers
        self.unmarked = [0] * workers
        """For each peer, the bytes that were sent to it behind the last mark; the worker counts them."""
        self._marks: list[deque[int]] = [deque() for _ in range(workers)]
        """For each peer, the bytes up to each mark that it has not answered, from the one before."""
        self._over: set[int] = set()
        self._spent: set[int] = set()
        self._holding: set[int] = set()
        """The peers that hold."""
        self._told: set[int] = set()
        """The peers to which this worker has sent a hold, and no release yet."""

    def mark(self, peer: int) -> None:
        """Send a mark behind what `unmarked` counts, once that is a quantum."""
        size, self.unmarked[peer] = self.unmarked[peer], 0
        if not self._limit:
            return
        self._marks[peer].append(size)
        self._unreceived[peer] += size
        self._tell(peer, CreditNews.MARK)
        if self._unreceived[peer] > self._limit:
            self._look(peer)

    def on_news(self, peer: int, news: CreditNews) -> None:
        """Take in what a peer says; raise `PeerError` for an answer to no mark."""
        if news is CreditNews.MARK:
            self._tell(peer, CreditNews.RECEIVED)
        elif news is CreditNews.RECEIVED:
            if not self._marks[peer]:
                raise PeerError(f"worker {peer} has answered a mark that nobody sent it")
            self._unreceived[peer] -= self._marks[peer].popleft()
            if peer in self._over:
                self._look(peer)
        else:
            (self._holding.add if news is CreditNews.HOLD else self._holding.discard)(peer)
            self.gate.set_open(not (self._over or self._holding))

    def on_the_way(self) -> list[tuple[int, int]]:
        """Return each peer, and about how many bytes it has not received of what was sent to it: on rings and
        in sockets.
        """
        return [(peer, self._unreceived[peer] + self.unmarked[peer]) for peer in self._peers]

    def late_peers(self) -> list[int]:
        """Return the peers that have not received much of what was sent to them, or that hold."""
        return sorted(self._over | self._holding)

    def compared(self) -> object:
        """Return all that decides what it will do."""
        if not self._limit:
            return ()
        return (
            (self.unmarked, [list(marks) for marks in self._marks]),
            (sorted(self._over), sorted(self._spent), sorted(self._holding), sorted(self._told)),
            (self.gate.is_open, self.gate.has_credit, self.gate.waiting),
        )

    def _tell(self, peer: int, news: CreditNews) -> None:
        assert self.transport is not None
        self.transport.send(peer, [write_credit_header(news)])

    def _look(self, peer: int) -> None:
        """Open or close the gate, since the count of a peer has changed."""
        limit, unreceived = self._limit, self._unreceived[peer]
        if unreceived > limit:
            self._over.add(peer)
        elif unreceived <= limit // 2:
            self._over.discard(peer)
        if unreceived > 2 * limit:
            self._spent.add(peer)
        elif unreceived <= limit:
            self._spent.discard(peer)
        self._tell_others()
        self.gate.has_credit = not self._spent
        self.gate.set_open(not (self._over or self._holding))

    def _tell_others(self) -> None:
        """Tell the peers that receive whether this worker holds."""
        if self._over:
            untold = [peer for peer in self._peers if peer not in self._over and peer not in self._told]
            self._told.update(untold)
            for peer in untold:
                self._tell(peer, CreditNews.HOLD)
        else:
            told, self._told = sorted(self._told), set()
            for peer in told:
                self._tell(peer, CreditNews.RELEASE)
