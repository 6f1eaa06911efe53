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
from typing import Final, NamedTuple

from ...errors import MisuseError
from ...limits import READER_SECONDS_MAX, READERS_MAX, REWRITE_SECONDS_MIN

__all__ = ["ReaderPositions", "ReaderTold", "reader_id"]

_PART_CHARS_MAX: Final = 200
_NAME_CHARS: Final = 8
"""As much of a unique name as people see of it."""


def reader_id(unique: str, client: str, site: str) -> str:
    """Return the name by which workers know a reader: unique, and then what it is to people."""
    return "\n".join([unique, client[:_PART_CHARS_MAX], site[-_PART_CHARS_MAX:]])


class ReaderTold(NamedTuple):
    """A reader, as people see it.

    name     what tells it apart
    client   its process and host; empty if it has not said so
    site     the line of its program that has begun to read
    epoch    the first that it has not read
    seconds  since it was heard of
    """

    name: str
    client: str
    site: str
    epoch: int
    seconds: float


@dataclass
class _ReaderPosition:
    epoch: int
    seen: float
    written: float
    """When it was last written to the log of a durable cluster; at first, when it was taken."""
    seconds: float = READER_SECONDS_MAX
    is_heard: bool = True
    """False: the position is from before a restart, and the client was not heard of since."""


class ReaderPositions:
    """The positions of all clients in one output on one worker."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._places: dict[str, _ReaderPosition] = {}
        self._forgotten = 0
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._places)

    def begin(self, epoch: int) -> None:
        """Note that changes before `epoch` were dropped in an earlier life of the output."""
        self._forgotten = self._dropped = epoch

    def of(self, reader: str) -> tuple[int, float] | None:
        """Return the position of a client, and how long it keeps that in silence; None if it has none."""
        place = self._places.get(reader)
        return None if place is None else (place.epoch, place.seconds)

    def told(self) -> list[ReaderTold]:
        """Return who each client is, where it is, and for how many seconds it was silent."""
        now = self._clock()
        told = []
        for reader, place in self._places.items():
            unique, _, rest = reader.partition("\n")
            client, _, site = rest.partition("\n")
            # A name without more is one that a program has chosen, as a query of Spark.
            name = unique[:_NAME_CHARS] if rest else unique[:_PART_CHARS_MAX]
            told.append(ReaderTold(name, client, site, place.epoch, now - place.seen))
        return told

    def written_of(self, reader: str) -> tuple[int, float] | None:
        """Return the same, but -1 for the epoch of a client that was not heard of since a restart, or whose
        position was written long ago: that has to be written again, as logs forget the positions of clients
        that were silent for long.
        """
        place = self._places.get(reader)
        if place is not None and (not place.is_heard or self._clock() - place.written > REWRITE_SECONDS_MIN):
            return -1, place.seconds
        return self.of(reader)

    def note_written(self, reader: str) -> None:
        """Note that the position of a client was written now."""
        if (place := self._places.get(reader)) is not None:
            place.written = self._clock()

    def come(self, reader: str, epoch: int, seconds: float = READER_SECONDS_MAX) -> None:
        """Note that a client is at `epoch`; a client that never calls this has no position. It keeps the
        position until it was silent for `seconds`.

        A client at an epoch that is dropped already holds nothing back; reading will raise an error.
        """
        place = self._places.get(reader)
        if epoch < self._dropped:
            return
        if place is not None:
            place.epoch, place.seen, place.seconds, place.is_heard = epoch, self._clock(), seconds, True
            return
        if len(self._places) >= READERS_MAX:
            self._drop_silent()
            self._drop_unheard()
            if len(self._places) >= READERS_MAX:
                raise MisuseError(
                    f"{READERS_MAX:,} clients have places in this output already: let go of one with "
                    "output.leave(), or read changes(start, stop), which takes no place"
                )
        self._places[reader] = _ReaderPosition(epoch, self._clock(), self._clock(), seconds)

    def put_back(self, reader: str, epoch: int, seconds: float) -> None:
        """Note where a client was before a restart. Most clients of long ago are gone, and the log does not
        say which: if there is no room for another client, the first of those that were not heard of since
        loses its position.

        A client that moved on while all workers were killed may have moved on some of them only. These have
        dropped what it no longer needed, and a base may have no more than they had: so it is where that
        begins.
        """
        self.come(reader, max(epoch, self._dropped), seconds)
        if (place := self._places.get(reader)) is not None:
            place.is_heard = False

    def hear(self, reader: str) -> None:
        """Note that a client was heard of, and is at the same position."""
        if (place := self._places.get(reader)) is not None:
            place.seen, place.is_heard = self._clock(), True

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

    def _drop_unheard(self) -> None:
        """Drop as many positions from before a restart as there are too many for one more."""
        unheard = [reader for reader, place in self._places.items() if not place.is_heard]
        for reader in unheard[: max(0, len(self._places) + 1 - READERS_MAX)]:
            del self._places[reader]
