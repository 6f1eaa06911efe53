"""How frames get from worker to worker: one protocol, three forms.

`memory` is for several workers that take turns in one process (embedded use, tests, simulation); `zeromq` for
processes and hosts; `client/embedded/thread_transport.py` for threads of one process. All deliver what one
worker sends to another in the order in which it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from progress.compiled.arrays import Int64s

from ..batch import Frame

__all__ = ["Lent", "Transport"]


class Lent(NamedTuple):
    """Shared memory of a worker and all others, in which messages may be read and written by a kernel.

    lines       int64[peers, LINE]: see `ring.py`
    looks_out   takes a number that grows with each message that was waited for; lets others have the core for
                a moment, and says whether to look once more for what has not come: soon it pays to sleep
    looks       how often a kernel looks for a message before that is asked, some tens of nanoseconds each
    """

    lines: Int64s
    looks_out: Callable[[int], bool]
    looks: int

    def without_looking_out(self) -> Lent:
        """For who has other things to do than to wait."""
        return Lent(self.lines, lambda number: False, self.looks)


class Transport(Protocol):
    """One worker's door to the others."""

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """Hand a message over; it will arrive after all that was sent to `peer` before. Never blocks for
        long.
        """
        ...

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """All messages that have arrived, as (peer, frames); raises `PeerError` when a peer is lost."""
        ...

    def wait(self, timeout_seconds: float) -> None:
        """Block until something may have arrived, at most `timeout_seconds`."""
        ...

    def lend(self) -> Lent | None:
        """What somebody else may read and write instead of this until `take_back`; `None`: nothing now."""
        ...

    def take_back(self) -> tuple[int, int]:
        """The inverse of `lend`: how many messages were sent and taken in between."""
        ...

    def close(self) -> None:
        """Let go of all resources."""
        ...
