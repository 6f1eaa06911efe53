"""What travels between vertices?

A *message* is one envelope time and one batch. The envelope time is held by progress tracking; the batch is
opaque to it. Two kinds of batches exist: those without times of their own (`Records`: Python records, all at
the envelope time) and those whose rows carry times (differential updates). For the latter the envelope is a
lower bound.

Each batch class has a `KIND`, a small integer that names it on the wire; `register` makes it known to the
decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final, Protocol, Self, TypeVar

import msgpack

from progress.errors import InternalError, MisuseError, PeerError

from ..dictionaries import Mark
from ..own_files import OWN_NAMES

KIND_MAX: Final = (1 << 16) - 1
"""The largest `KIND`: it has two bytes in the header of a message."""

UNPACK_ERRORS: Final = (ValueError, TypeError, OverflowError, msgpack.UnpackException)
"""All that msgpack raises for bytes that it cannot read: also a list as a key, a date beyond year 9999."""

Frame = bytes | bytearray | memoryview
"""One frame of a message on the wire."""


def bytes_of(frame: Frame) -> memoryview:
    """The bytes of a frame, in the same memory."""
    view = memoryview(frame)
    return view.cast("B") if view.nbytes else _NOTHING  # what is empty by a shape cannot be cast


_NOTHING: Final = memoryview(b"")


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

    def rebased(self, step: int) -> Self:
        """The same rows for words that count from another epoch: each time later by `step`, which may be
        below 0.

        Batches whose rows carry no times return themselves.
        """
        ...

    def latest(self, shift: int, mask: int) -> int:
        """The largest value of the counter at `shift` and `mask` in the times of its rows; 0 if they have
        none.
        """
        ...

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """The rows whose counter at `shift` and `mask` is at most `last`; None if there are none.

        Batches whose rows carry no times return themselves.
        """
        ...

    def to_frames(self, peer: int) -> list[Frame]:
        """The batch as frames for worker `peer`; `from_frames` of the same class is the inverse.

        Called when the message leaves. What else the peer has to be told, such as the values of symbols, goes
        along; it counts as told when `on_sent` is called, so that a send that fails has told nothing.
        """
        ...

    def on_sent(self, peer: int) -> None:
        """The frames that `to_frames(peer)` has just given were handed to the transport."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all arrays in which there may be words that stand for values; too many do no harm.

        Of a class that does not say it nothing is forgotten as long as a batch of it waits somewhere.
        """
        ...

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """The batch that worker `peer` turned into `frames`; raises `PeerError` if they are malformed."""
        ...

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Take in of a message what concerns this process, and not only the dataflow that it was sent to;
        returns the frames without it, for `from_frames` later on.

        Raises `PeerError` if the frames are malformed. `from_frames` does the same besides giving the batch.
        """
        ...


class Large:
    """A batch that goes to another worker as several messages, so that what is on its way is not as large."""

    __slots__ = ()

    def messages(self) -> Iterator[Batch]:
        """Its rows, in batches that are sent one after another."""
        raise NotImplementedError


class Timed:
    """A batch whose rows carry times, so that rows of several times may go as one."""

    __slots__ = ()

    def with_others(self, others: Sequence[Self]) -> Batch:
        """All rows, of itself and of others from the same place, as one batch; itself if there are none."""
        raise NotImplementedError


Transform = Callable[[Batch], Batch | None]
"""A stateless step that the sender runs: a batch in, a batch or nothing out."""


class Composed:
    """Several transforms, one after another."""

    __slots__ = ("transforms",)

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = tuple(transforms)

    def __call__(self, batch: Batch) -> Batch | None:
        """What the last one gives of what those before have given."""
        current: Batch | None = batch
        for transform in self.transforms:
            if current is None or current.rows == 0:
                return None
            current = transform(current)
        return current


B = TypeVar("B", bound=type[Batch])
_kinds: dict[int, type[Batch]] = {}
_of_users: set[int] = set()
"""The kinds whose classes are not ours."""


def register(batch_class: B) -> B:
    """Make a batch class known to `decode`; used as a class decorator."""
    kind = batch_class.KIND
    known = _kinds.get(kind)
    if known is not None and known.__qualname__ != batch_class.__qualname__:
        raise InternalError(
            f"batch kind {kind} is taken by {known.__qualname__}, asked for by {batch_class.__qualname__}"
        )
    if type(kind) is not int or not 0 <= kind <= KIND_MAX:
        raise MisuseError(
            f"{batch_class.__qualname__}.KIND is a whole number from 0 to {KIND_MAX:,} that no other class "
            f"of batches has, not {type(kind).__name__}"
        )
    _kinds[kind] = batch_class
    if batch_class.__module__.partition(".")[0] not in OWN_NAMES:
        _of_users.add(kind)
    return batch_class


def frames_of(batch: Batch, peer: int) -> Sequence[Frame]:
    """`batch` as frames for worker `peer`, which can read them. Raises `MisuseError` for a batch of a class
    that `decode` does not know there, and for frames that are none.
    """
    known = _kinds.get(batch.KIND)
    kind = type(batch)
    if known is not kind and (known is None or known.__qualname__ != kind.__qualname__):
        raise MisuseError(
            f"a {kind.__qualname__} is sent to another worker, and no worker could read it: give the class a "
            "KIND of its own, and put @register (timely.wire.batch) above it"
        )
    frames = batch.to_frames(peer)
    if batch.KIND not in _of_users:
        return frames
    try:
        return [bytes_of(frame) for frame in frames]
    except TypeError as error:
        raise MisuseError(
            f"{kind.__qualname__}.to_frames returns a list of bytes, of which one message is made: {error}"
        ) from error


def is_of_user(kind: int) -> bool:
    """Whether a user wrote the class of batches of this kind."""
    return kind in _of_users


def decode(kind: int, frames: Sequence[memoryview], peer: int) -> Batch:
    """The batch of class `kind` that worker `peer` sent as `frames`.

    Raises `PeerError` when no class has that kind, and when the frames are malformed.
    """
    return _class_of(kind, peer).from_frames(frames, peer)


def absorb(kind: int, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
    """What `decode` does for the whole process, without the batch: for a message to a dataflow that is not
    here, because it has ended or has not started yet. Returns the frames that are left to be decoded.

    Its sender counts what came with it as told, and will not say it again with the rows of other dataflows.
    What is taken in is taken in once: later on the sender may have forgotten what it told.
    """
    return _class_of(kind, peer).absorb(frames, peer)


def _class_of(kind: int, peer: int) -> type[Batch]:
    batch_class = _kinds.get(kind)
    if batch_class is None:
        raise PeerError(
            f"worker {peer} sent a message with batch kind {kind}, which this process does not know: import "
            "the module that defines it"
        )
    return batch_class


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

    def rebased(self, step: int) -> Self:
        """Itself: records have no times of their own."""
        del step
        return self

    def latest(self, shift: int, mask: int) -> int:
        """0: records have no times of their own."""
        del shift, mask
        return 0

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """Itself: records have no times of their own."""
        return self

    def to_frames(self, peer: int) -> list[Frame]:
        """One msgpack frame; `MisuseError` for a value that cannot travel."""
        del peer
        try:
            return [msgpack.packb(self.records, use_bin_type=True)]
        except (TypeError, ValueError, OverflowError) as error:
            raise MisuseError(
                f"a record cannot be sent to another worker: {error}. Records may hold None, bool, int (64 "
                "bits), float, str, bytes, and tuples or dicts of these"
            ) from error

    def on_sent(self, peer: int) -> None:
        """Records tell a peer nothing besides."""

    def symbols(self, mark: Mark) -> None:
        """Records hold values, not words."""

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """Records from one msgpack frame."""
        if len(frames) != 1:
            raise PeerError(f"worker {peer} sent records as {len(frames)} frames, not as one")
        try:
            records = msgpack.unpackb(frames[0], use_list=False, raw=False, strict_map_key=False)
        except UNPACK_ERRORS as error:
            raise PeerError(
                f"worker {peer} sent records that are not msgpack: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(records, tuple):
            raise PeerError(f"worker {peer} sent a {type(records).__name__}, not a list of records")
        return cls(list(records))

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Nothing: records concern their dataflow only."""
        del peer
        return frames
