"""How far each client has come in an output, and which changes may be dropped.

A client that reads an output has a *position* there: the first epoch whose changes it has not received.
When a client calls `forget`, changes before its epoch are dropped, but only up to the first position of all
clients. A client that falls silent for `READER_SECONDS_MAX` loses its position: it would hold memory for
ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import MisuseError
from ..limits import READER_SECONDS_MAX, READERS_MAX

__all__ = ["ReaderPositions"]


@dataclass
class _ReaderPosition:
    epoch: int
    seen: float
    seconds: float = READER_SECONDS_MAX


class ReaderPositions:
    """The positions of all clients in one output on one worker."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._places: dict[str, _ReaderPosition] = {}
        self._forgotten = 0
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._places)

    def come(self, reader: str, epoch: int, seconds: float = READER_SECONDS_MAX) -> None:
        """Note that a client is at `epoch`; a client that never calls this has no position. It keeps the
        position until it was silent for `seconds`.

        A client at an epoch that is dropped already holds nothing back; reading will raise an error.
        """
        place = self._places.get(reader)
        if epoch < self._dropped:
            return
        if place is not None:
            place.epoch, place.seen, place.seconds = epoch, self._clock(), seconds
            return
        if len(self._places) >= READERS_MAX:
            self._drop_silent()
            if len(self._places) >= READERS_MAX:
                raise MisuseError(
                    f"{READERS_MAX:,} clients have places in this output already: let go of one with "
                    "output.leave(), or read changes(start, stop), which takes no place"
                )
        self._places[reader] = _ReaderPosition(epoch, self._clock(), seconds)

    def hear(self, reader: str) -> None:
        """Note that a client was heard of, and is at the same position."""
        if reader in self._places:
            self._places[reader].seen = self._clock()

    def leave(self, reader: str) -> None:
        """Drop the position of a client that reads no more."""
        self._places.pop(reader, None)

    def forget(self, stop: int) -> int:
        """Note that some client needs no changes before `stop`. Return the epoch before which none needs
        any.
        """
        self._drop_silent()
        self._forgotten = max(self._forgotten, stop)
        self._dropped = min([self._forgotten, *(place.epoch for place in self._places.values())])
        return self._dropped

    def _drop_silent(self) -> None:
        now = self._clock()
        for reader in [name for name, place in self._places.items() if now - place.seen > place.seconds]:
            del self._places[reader]
