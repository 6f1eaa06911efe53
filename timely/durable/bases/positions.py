"""How far have readers of outputs and sources come?

A source says, when it gives up an epoch, by a *position* where it goes on after all that it has sent. Each of
its workers writes its own. Positions of one incarnation replace all earlier ones once every worker of the
source has written one: before that, only those who wrote the earlier ones have told of their part. A worker
that has dropped its right without a position, since it had nothing to send, has told of no part.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias, cast

import msgpack

from ...limits import READER_SECONDS_MAX, READERS_MAX, REWRITE_SECONDS_MIN
from ..records import TEXT_ERRORS

__all__ = [
    "Place",
    "SourcePosition",
    "SourcePositions",
    "latest_places",
    "packed_position",
    "source_key",
    "source_of_key",
]

_KEY: Final = "source "

Place: TypeAlias = tuple[int, float, int]
"""The epoch of a reader, -1 if it has left; how many seconds of silence it may bear; and when it was last
heard of, in seconds since 1970, or somewhat later."""


def latest_places(places: Mapping[tuple[str, str], Place]) -> dict[tuple[str, str], Place]:
    """Return as many places of each output as it may have, those that moved last; without those of readers
    that have lost them by silence, be it that of clients that ended before a restart.
    """
    silent = time.time() - READER_SECONDS_MAX - REWRITE_SECONDS_MIN
    places = {key: place for key, place in places.items() if place[2] >= silent}
    counts: Counter[str] = Counter()
    latest: list[tuple[str, str]] = []
    for output, reader in reversed([*places]):
        counts[output] += 1
        if counts[output] <= READERS_MAX:
            latest.append((output, reader))
    return {key: places[key] for key in reversed(latest)}


def source_key(name: str) -> str:
    """Return the name under which logs and bases have the rows of a source, beside those of inputs."""
    return _KEY + name


def source_of_key(key: str) -> str | None:
    """Return the name of the source whose rows have this name; None if they are those of an input."""
    return key.removeprefix(_KEY) if key.startswith(_KEY) else None


def packed_position(position: object) -> bytes:
    """Return a position as logs have it; raise what msgpack raises if it is no plain data, or would not come
    out of a log again, as a dict whose keys are tuples.
    """
    packed = cast("bytes", msgpack.packb(position, unicode_errors=TEXT_ERRORS))
    _unpacked(packed)
    return packed


def _unpacked(position: bytes) -> object:
    return cast("object", msgpack.unpackb(position, strict_map_key=False, unicode_errors=TEXT_ERRORS))


class SourcePosition(NamedTuple):
    """What one worker has written last about a source.

    of        on how many workers the source may send
    held      the first epoch at which it may still send there; if it is over there, `~held` is the last one
              that it has held
    position  packed; empty if there is none, since nothing was sent
    """

    incarnation: int
    worker: int
    of: int
    held: int
    position: bytes


class SourcePositions:
    """The positions of one source that count, as far as logs were read."""

    def __init__(self, entries: Iterable[Iterable[object]] = ()) -> None:
        """`entries`: see `plain`."""
        self._entries: dict[tuple[int, int], SourcePosition] = {}
        self.durable = 0
        """All rows of the epochs before this one were in the logs as worker 0 wrote so."""
        for entry in entries:
            self.note(SourcePosition._make(entry))

    def note(self, entry: SourcePosition) -> None:
        """Take in what a worker has written. Incarnations come in their order."""
        self._entries[entry.incarnation, entry.worker] = entry
        if not self._is_whole(entry.incarnation):
            return
        own = {key: one for key, one in self._entries.items() if key[0] >= entry.incarnation}
        if all(one.position for one in own.values()):
            self._entries = own
            return
        # A worker had nothing to send, and gave no position: what was read before is in the earlier ones.
        repeated = {one.position for one in own.values()}
        earlier = {key: one for key, one in self._entries.items() if one.position not in {b"", *repeated}}
        self._entries = earlier | own

    def first_held(self, first_epoch: int) -> int:
        """Return the first epoch at which the source may still send; if it is over, `~epoch` for the last
        one that it has held. It began with `first_epoch`.
        """
        whole = [incarnation for incarnation, _ in self._entries if self._is_whole(incarnation)]
        if not whole:
            return first_epoch
        held = [one.held for (incarnation, _), one in self._entries.items() if incarnation >= max(whole)]
        return min([epoch for epoch in held if epoch >= 0] or held)

    def values(self) -> list[object]:
        """Return the positions that workers have given, earlier incarnations first, then by worker."""
        return [_unpacked(one.position) for _, one in sorted(self._entries.items()) if one.position]

    def plain(self) -> list[list[object]]:
        """Return what msgpack holds."""
        return [list(one) for _, one in sorted(self._entries.items())]

    def _is_whole(self, incarnation: int) -> bool:
        """Return True if all workers of an incarnation that have the source have written of it."""
        own = [one for key, one in self._entries.items() if key[0] == incarnation]
        return bool(own) and len(own) >= own[0].of
