"""How frames get from thread to thread: workers of one process, each in a thread.

What is small goes by rings, as between processes of one host (`neighbours.py`), since kernels read and write
these without the interpreter's lock; what is large is handed over as it is, without a copy. Who has nothing
to do sleeps, for whoever looks out in Python keeps the others from working; and it is woken by a lock, not by
a byte in a pipe: who writes lets go of the interpreter's lock for that, and has to wait until the one that it
has woken does so.

`sent` and `taken` count messages, each by the thread of that worker alone: see `crew.py`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from ...limits import BEAT_SPIN_SECONDS_MAX, RECV_BYTES_MAX, RECV_COUNT_MAX
from ...wire.batch import Frame, bytes_of
from ...wire.transport import Lent
from ...wire.transport.neighbours import Neighbours
from .looking_out import CALLS, looks_within, new_words, sees_another

__all__ = ["Door", "ThreadNetwork"]

_LOOKS: Final = 10_000
"""Of a kernel, which has the core to itself meanwhile, and not the interpreter's lock."""


class ThreadNetwork:
    """Connects `workers` workers."""

    def __init__(self, workers: int) -> None:
        self.doors = [Door(index, workers) for index in range(workers)]
        for door in self.doors:
            door.join(self.doors)

    def transport(self, worker: int) -> Door:
        """The door of one worker."""
        return self.doors[worker]

    def in_flight(self) -> int:
        """Messages sent and not yet received, while nobody is at work."""
        return sum(door.sent for door in self.doors) - sum(door.taken for door in self.doors)

    def close(self) -> None:
        """Let go of all memory, when no thread uses it any more."""
        for door in self.doors:
            door.close()


class Door:
    """One worker's door to a `ThreadNetwork`: its own thread's, but for what says otherwise."""

    def __init__(self, index: int, workers: int) -> None:
        self.sent = 0
        self.taken = 0
        self._index = index
        self._workers = workers
        self._doors: Sequence[Door] = ()
        self._come: list[deque[list[memoryview]]] = [deque() for _ in range(workers)]
        self._neighbours = Neighbours(index, self._hand_over, workers, self._wake_peer)
        self.is_held = False
        """Whether somebody else than its thread has its worker's turn, who will wake that if need be."""
        self.is_called = False
        """Whether its thread is to take the turn, though nothing may have come: it may be about to sleep."""
        self._is_asleep = False
        self._words = new_words()
        self._bell = threading.Lock()
        self._bell.acquire()

    def join(self, doors: Sequence[Door]) -> None:
        """These are there, itself among them."""
        self._doors = doors
        self._neighbours.join([peer for peer in range(self._workers) if peer != self._index])

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """See `Transport`."""
        self._neighbours.send(peer, frames)
        self.sent += 1

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """See `Transport`."""
        self._take_over()
        arrived = self._neighbours.take(RECV_COUNT_MAX, RECV_BYTES_MAX)
        self.taken += len(arrived)
        return arrived

    def wait(self, timeout_seconds: float, is_awaited: Callable[[], bool] = bool) -> None:
        """Sleep until something has come, or somebody calls `wake`, or what is awaited is true already. Its
        thread may do so without the turn, while somebody else takes what has come: so it only looks.
        """
        self._is_asleep = True  # before looking: who comes later wakes
        try:
            known = int(self._words[CALLS])
            self._neighbours.ask_to_be_woken()
            if not self.has_come() and not is_awaited():
                if self._neighbours.spins and sees_another(
                    self._words, known, looks_within(BEAT_SPIN_SECONDS_MAX)
                ):
                    self._bell.acquire(blocking=False)
                else:
                    self._bell.acquire(timeout=timeout_seconds)
        finally:
            self._is_asleep = False
            self._neighbours.wake_up(False)

    def has_come(self) -> bool:
        """Whether `recv_nowait` would find something; of any thread. What has a lower number than what lies
        in a ring was handed over before that was written.
        """
        return any(self._come) or self._neighbours.has_any()

    def wake(self) -> None:
        """Let `wait` return; of any thread."""
        if self._is_asleep and not self.is_held:
            self._is_asleep = False
            self._words[CALLS] += 1
            try:
                self._bell.release()
            except RuntimeError:
                pass  # somebody else has just done so

    def let_go(self) -> None:
        """Its thread may have the turn; of whoever had it."""
        self.is_held = False
        if self._is_asleep:  # who wrote meanwhile has called in vain, and would not call again
            self._neighbours.ask_to_be_woken()

    def lend(self) -> Lent | None:
        """See `Transport`."""
        if self.is_held:  # whoever takes turns with all others waits for nobody
            return None
        self._take_over()
        lines = self._neighbours.lend()
        return None if lines is None else Lent(lines, self._looks_out, _LOOKS)

    def take_back(self) -> tuple[int, int]:
        """See `Transport`."""
        sent, taken = self._neighbours.take_back()
        self.sent += sent
        self.taken += taken
        return sent, taken

    def close(self) -> None:
        """See `Transport`. Twice is once."""
        self._neighbours.close()

    def __del__(self) -> None:
        self.close()

    def _looks_out(self, number: int) -> bool:
        return not any(self._come) and self._neighbours.looks_out(number)

    def _hand_over(self, peer: int, frames: Sequence[Frame]) -> None:
        """What does not go by a ring. The sender, whose memory it is, does not write there any more."""
        door = self._doors[peer]
        door._come[self._index].append([bytes_of(frame) for frame in frames])
        door.wake()

    def _wake_peer(self, peer: int) -> None:
        self._doors[peer].wake()

    def _take_over(self) -> None:
        for peer, come in enumerate(self._come):
            while come:
                self._neighbours.by_socket(peer, come.popleft())
