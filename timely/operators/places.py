"""How far has each client come in an output, and what may be dropped?

A client that reads an output has a *place* there: the first epoch whose changes it has not been given.
Changes are dropped when some client says that it needs those before an epoch no more (`forget`), and then
only up to the first place of all. A client that falls silent for `READER_SECONDS_MAX` loses its place: it
would hold memory for ever.
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
    """The places of all clients in one output on one worker."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._places: dict[str, _ReaderPosition] = {}
        self._forgotten = 0
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._places)

    def come(self, reader: str, epoch: int, seconds: float = READER_SECONDS_MAX) -> None:
        """A client is at `epoch` now, and has been heard of; one that never comes has no place. It keeps the
        place until it was silent for `seconds`.

        Who asks for what is dropped already will be told so, and holds nothing back.
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
        """A client is where it was, and has been heard of."""
        if reader in self._places:
            self._places[reader].seen = self._clock()

    def leave(self, reader: str) -> None:
        """A client reads no more."""
        self._places.pop(reader, None)

    def forget(self, stop: int) -> int:
        """Some client needs nothing before `stop`; returns before which epoch nobody needs anything."""
        self._drop_silent()
        self._forgotten = max(self._forgotten, stop)
        self._dropped = min([self._forgotten, *(place.epoch for place in self._places.values())])
        return self._dropped

    def _drop_silent(self) -> None:
        now = self._clock()
        for reader in [name for name, place in self._places.items() if now - place.seen > place.seconds]:
            del self._places[reader]
