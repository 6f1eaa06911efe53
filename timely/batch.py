"""What travels between vertices?

A *message* is one envelope time and one batch. The envelope time is held by progress tracking; the batch is
opaque to it. Two kinds of batches exist: those without times of their own (`Records`: Python records, all at
the envelope time) and those whose rows carry times (differential updates). For the latter the envelope is a
lower bound.

Each batch class has a `KIND`, a small integer that names it on the wire; `register` makes it known to the
decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol, Self, TypeVar

import msgpack

from progress.errors import InternalError, MisuseError, PeerError

Frame = bytes | bytearray | memoryview
"""One frame of a message on the wire."""


class Batch(Protocol):
    """A piece of a stream: some rows, sent together."""

    KIND: ClassVar[int]

    @property
    def rows(self) -> int:
        """How many rows are in it; an empty batch is never sent."""
        ...

    def shifted(self, keep: int, add: int) -> Self:
        """The same rows after crossing a connector that maps a time word `t` to `(t & keep) + add`.

        Batches whose rows carry no times return themselves.
        """
        ...

    def latest(self, shift: int, mask: int) -> int:
        """The largest value of the counter at `shift` and `mask` in the times of its rows; 0 if they have
        none.
        """
        ...

    def to_frames(self) -> list[Frame]:
        """The batch as frames; `from_frames` of the same class is the inverse."""
        ...

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview]) -> Self:
        """The batch that `to_frames` turned into `frames`; raises `PeerError` if they are malformed."""
        ...


B = TypeVar("B", bound=type[Batch])
_kinds: dict[int, type[Batch]] = {}


def register(batch_class: B) -> B:
    """Make a batch class known to `decode`; used as a class decorator."""
    kind = batch_class.KIND
    known = _kinds.get(kind)
    if known is not None and known.__qualname__ != batch_class.__qualname__:
        raise InternalError(
            f"batch kind {kind} is taken by {known.__qualname__}, asked for by {batch_class.__qualname__}"
        )
    _kinds[kind] = batch_class
    return batch_class


def decode(kind: int, frames: Sequence[memoryview]) -> Batch:
    """The batch of class `kind` that was sent as `frames`; `PeerError` when no class has that kind."""
    batch_class = _kinds.get(kind)
    if batch_class is None:
        raise PeerError(
            f"a message came in with batch kind {kind}, which this process does not know: import the "
            "module that defines it"
        )
    return batch_class.from_frames(frames)


@register
class Records:
    """Python records that share the envelope time.

    On the wire they are one msgpack frame, so a record may hold None, booleans, integers of 64 bits, floats,
    strings, bytes, and tuples or dictionaries of these. Lists arrive as tuples on another worker.
    """

    KIND: ClassVar[int] = 1
    __slots__ = ("records",)

    def __init__(self, records: list[object]) -> None:
        self.records = records

    def __repr__(self) -> str:
        return f"Records({self.records!r})"

    @property
    def rows(self) -> int:
        """How many records."""
        return len(self.records)

    def shifted(self, keep: int, add: int) -> Self:
        """Itself: records have no times of their own."""
        del keep, add
        return self

    def latest(self, shift: int, mask: int) -> int:
        """0: records have no times of their own."""
        del shift, mask
        return 0

    def to_frames(self) -> list[Frame]:
        """One msgpack frame; `MisuseError` for a value that msgpack cannot write."""
        try:
            return [msgpack.packb(self.records, use_bin_type=True)]
        except (TypeError, ValueError, OverflowError) as error:
            raise MisuseError(
                f"a record cannot be sent to another worker: {error}. Records may hold None, bool, int (64 "
                "bits), float, str, bytes, and tuples or dicts of these"
            ) from error

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview]) -> Self:
        """Records from one msgpack frame."""
        if len(frames) != 1:
            raise PeerError(f"records come as one frame, not {len(frames)}")
        try:
            records = msgpack.unpackb(frames[0], use_list=False, raw=False, strict_map_key=False)
        except Exception as error:  # msgpack raises whatever a map's key or a nesting leads to
            raise PeerError(f"records that are not msgpack: {error}") from error
        if not isinstance(records, tuple):
            raise PeerError(f"records come as a list, not {type(records).__name__}")
        return cls(list(records))
