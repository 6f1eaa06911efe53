"""How do frames get from worker to worker? By one protocol with three implementations.

`memory` is for several workers that take turns in one process (embedded use, tests, simulation); `zeromq` for
processes and hosts; `client/embedded/threads/thread_transport.py` for threads of one process. All of them
deliver the messages of one worker to another in the order in which it sent them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from progress.compiled.arrays import Int64s

from ..batch import Frame

__all__ = ["InTurn", "Lent", "Transport"]


class InTurn(Protocol):
    """The other workers of a thread in which workers take turns."""

    def go_on(self, goes_on: Callable[[], bool]) -> bool:
        """Let the compiled loops of others that wait for votes go on; return True if any of them may have
        voted since. `goes_on`: does the same for the caller, while one of the others waits for it.
        """
        ...


class Lent(NamedTuple):
    """Shared memory between a worker and all its peers, in which a kernel may read and write messages.

    lines       int64[peers, LINE]: see `ring.py`
    looks_out   called by a kernel that waits in vain, with a number that grows with each message it waits
                for: yields the core for a moment; returns True if the kernel should look for the message once
                more, False if it pays to sleep
    looks       how often a kernel looks for a message before it calls `looks_out`; a look takes some tens of
                nanoseconds
    others      if workers take turns in one thread: lets the others go on, which cannot do so by themselves
    """

    lines: Int64s
    looks_out: Callable[[int], bool]
    looks: int
    others: InTurn | None = None

    def without_looking_out(self) -> Lent:
        """Return the same memory for a caller that must not wait: its `looks_out` is always False."""
        return Lent(self.lines, lambda number: False, self.looks)


class Transport(Protocol):
    """The connection of one worker to the others."""

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """Send a message; it arrives after all earlier messages to `peer`. Never blocks for long."""
        ...

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """Return the messages that have arrived, as (peer, frames); raises `PeerError` when a peer is
        lost.
        """
        ...

    def wait(self, timeout_seconds: float) -> None:
        """Block until something may have arrived, at most `timeout_seconds`."""
        ...

    def lend(self) -> Lent | None:
        """Return shared memory that a kernel reads and writes in place of this object until `take_back`;
        `None` if that is not possible now.
        """
        ...

    def take_back(self) -> tuple[int, int]:
        """End a `lend`; return how many messages the kernel has sent and taken meanwhile."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...
