"""A transport between workers of one process, each in a thread.

Small messages go by rings, as between processes of one host (`neighbours.py`): kernels read and write these
without the interpreter's lock. Large ones are handed over as they are, without a copy. So are all messages
while workers take turns in one thread, unless a loop waits for them in its ring. A thread that has
nothing to do sleeps, since one that looks out in Python would keep the others from working. It is woken by a
lock, not by a byte in a pipe: a thread that writes to a pipe lets go of the interpreter's lock, and waits
until the thread that it has woken does so.

`sent` and `taken` count messages, each written by the thread of that worker alone: see `worker_threads.py`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from ....limits import RECV_BYTES_MAX, RECV_COUNT_MAX, ROUND_SPIN_SECONDS_MAX
from ....wire.batch import Frame, bytes_of
from ....wire.transport import InTurn, Lent
from ....wire.transport.neighbours import Neighbours
from .looking_out import CALLS, looks_within, new_words, sees_another

__all__ = ["ThreadNetwork", "ThreadTransport"]

_LOOKS: Final = 10_000
"""How often a kernel that waits looks before it returns. Meanwhile it uses its core, but does not hold the
interpreter's lock.
"""


class ThreadNetwork:
    """Connects `workers` workers."""

    def __init__(self, workers: int) -> None:
        self.transports = [ThreadTransport(index, workers) for index in range(workers)]
        for transport in self.transports:
            transport.join(self.transports)

    def transport(self, worker: int) -> ThreadTransport:
        """Return the transport of one worker."""
        return self.transports[worker]

    def in_flight(self) -> int:
        """Return how many messages are sent and not yet received. Requires: no thread is at work."""
        under_way = 0
        for transport in self.transports:
            under_way += transport.sent - transport.taken
        return under_way

    def close(self) -> None:
        """Release all memory. Requires: no thread uses it any more."""
        for transport in self.transports:
            transport.close()


class ThreadTransport:
    """The transport of one worker in a `ThreadNetwork`. Only the worker's own thread calls its methods,
    unless a method says otherwise.
    """

    def __init__(self, index: int, workers: int) -> None:
        self.sent = 0
        self.taken = 0
        self._index = index
        self._workers = workers
        self._transports: Sequence[ThreadTransport] = ()
        self._come: list[deque[list[memoryview]]] = [deque() for _ in range(workers)]
        self.neighbours = Neighbours(index, self._hand_over, workers, self._wake_peer)
        self.is_held = False
        """True if a thread other than its own has the turn of its worker; that one wakes its own if need
        be.
        """
        self.is_called = False
        """True if its thread shall take the turn even if no message has come: it may be about to sleep, so
        that `wake` alone could come too early.
        """
        self.others: InTurn | None = None
        """The workers with which its own takes turns, if they can run compiled loops together."""
        self.is_lent_in_turn = False
        """True if a loop has had the rings in turn, and waits there for votes until messages are taken."""
        self._is_asleep = False
        self._words = new_words()
        self._bell = threading.Lock()
        self._bell.acquire()

    def join(self, transports: Sequence[ThreadTransport]) -> None:
        """Connect to all transports, itself among them."""
        self._transports = transports
        self.neighbours.join([peer for peer in range(self._workers) if peer != self._index])

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """See `Transport`. While workers take turns in one thread, no other thread reads: a message is handed
        over as it is.
        """
        self.neighbours.send(peer, frames, not self.is_held or self._transports[peer].is_lent_in_turn)
        self.sent += 1

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """See `Transport`."""
        self.is_lent_in_turn = False
        self._take_over()
        arrived = self.neighbours.take(RECV_COUNT_MAX, RECV_BYTES_MAX)
        self.taken += len(arrived)
        return arrived

    def wait(self, timeout_seconds: float, is_awaited: Callable[[], bool] = bool) -> None:
        """Sleep until a message has come, or a thread calls `wake`; return at once if `is_awaited` returns
        True. A thread may wait without its turn, while another thread takes the messages: so this only looks.
        """
        self._is_asleep = True  # before looking: a later sender wakes it
        try:
            calls = int(self._words[CALLS])
            self.neighbours.ask_to_be_woken()
            if not self.has_come() and not is_awaited():
                if self.neighbours.spins and sees_another(
                    self._words, calls, looks_within(ROUND_SPIN_SECONDS_MAX)
                ):
                    self._bell.acquire(blocking=False)
                else:
                    self._bell.acquire(timeout=timeout_seconds)
        finally:
            self._is_asleep = False
            self.neighbours.wake_up(False)

    def has_come(self) -> bool:
        """Return True if a message has come; any thread may call this. If one lies in a ring, all with lower
        numbers were handed over before, so `recv_nowait` finds the next one.
        """
        return any(self._come) or self.neighbours.has_any()

    def wake(self) -> None:
        """Let `wait` return; any thread may call it."""
        if self._is_asleep and not self.is_held:
            self._is_asleep = False
            self._words[CALLS] += 1
            try:
                self._bell.release()
            except RuntimeError:
                pass  # another thread has just done so

    def let_go(self) -> None:
        """Give the turn to its own thread; called by the thread that had it."""
        self.is_held = False
        if self._is_asleep:  # a sender meanwhile has called in vain, and would not call again
            self.neighbours.ask_to_be_woken()

    def lend(self) -> Lent | None:
        """See `Transport`."""
        if self.is_held and self.others is None:
            return None
        self._take_over()
        lines = self.neighbours.lend()
        if lines is None:
            return None
        if self.is_held:  # workers that take turns in one thread cannot wait for each other
            self.is_lent_in_turn = True
            return Lent(lines, lambda number: False, 1, self.others)
        return Lent(lines, self._looks_out, _LOOKS)

    def take_back(self) -> tuple[int, int]:
        """See `Transport`."""
        sent, taken = self.neighbours.take_back()
        self.sent += sent
        self.taken += taken
        return sent, taken

    def close(self) -> None:
        """See `Transport`. Twice is once."""
        self.neighbours.close()

    def __del__(self) -> None:
        self.close()

    def _looks_out(self, number: int) -> bool:
        return not any(self._come) and self.neighbours.looks_out(number)

    def _hand_over(self, peer: int, frames: Sequence[Frame]) -> None:
        """Send a message by no ring: hand over its memory, which the sender does not change any more."""
        transport = self._transports[peer]
        transport._come[self._index].append([bytes_of(frame) for frame in frames])
        transport.wake()

    def _wake_peer(self, peer: int) -> None:
        self._transports[peer].wake()

    def _take_over(self) -> None:
        for peer, come in enumerate(self._come):
            while come:
                self.neighbours.by_socket(peer, come.popleft())
