"""What travels between vertices?

A *message* is one envelope time and one batch. Progress tracking holds the envelope time and does not look
into the batch. There are batches without times of their own (`Records`: Python records, all at the envelope
time) and batches whose rows carry times (differential updates). For the latter the envelope is a lower bound.

Each batch class has a `KIND`, a small integer that names it on the wire; `register` adds it to the decoder.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final, Protocol, Self, TypeVar, runtime_checkable

import msgpack

from progress.errors import InternalError, MisuseError, PeerError

from ..dictionaries import Mark
from ..own_files import OWN_NAMES
from .frames.record_values import VALUES, pack_value, unpack_value

KIND_MAX: Final = (1 << 16) - 1
"""The largest `KIND`: the header of a message has two bytes for it."""

UNPACK_ERRORS: Final = (ValueError, TypeError, OverflowError, msgpack.UnpackException)
"""All errors that msgpack raises for bytes it cannot read, such as a list as a key or a date beyond 9999."""

Frame = bytes | bytearray | memoryview
"""One frame of a message on the wire."""


def bytes_of(frame: Frame) -> memoryview:
    """Return the bytes of a frame, in the same memory."""
    view = memoryview(frame)
    return view.cast("B") if view.nbytes else _NOTHING  # a view with a zero in its shape cannot be cast


_NOTHING: Final = memoryview(b"")


class Batch(Protocol):
    """A piece of a stream: some rows, sent together."""

    KIND: ClassVar[int]

    @property
    def rows(self) -> int:
        """The number of rows; an empty batch is never sent."""
        ...

    def shifted(self, keep: int, add: int) -> Self:
        """Return the rows after crossing a connector that maps a time word `t` to `(t & keep) + add`.

        Batches whose rows carry no times return themselves.
        """
        ...

    def rebased(self, step: int) -> Self:
        """Return the rows with each time word increased by `step`, which may be negative.

        Used when time words count from another epoch.

        Batches whose rows carry no times return themselves.
        """
        ...

    def latest(self, shift: int, mask: int) -> int:
        """Return the largest counter at `shift` and `mask` in the times of the rows; 0 if they have no
        times.
        """
        ...

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """Return the rows whose counter at `shift` and `mask` is at most `last`; None if there are none.

        Batches whose rows carry no times return themselves.
        """
        ...

    def to_frames(self, peer: int) -> list[Frame]:
        """Return the batch as frames for worker `peer`; `from_frames` of the same class is the inverse.

        Called when the message leaves. The frames also carry whatever else the peer needs, such as the values
        of symbols. The sender counts these as known to the peer only after `on_sent`, so that a failed send
        leaves them unknown.
        """
        ...

    def on_sent(self, peer: int) -> None:
        """Note that the frames last returned by `to_frames(peer)` were handed to the transport."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Pass `mark` all arrays that may hold words which stand for values; extra arrays do no harm.

        While a batch of a class without this method waits somewhere, no symbol is forgotten.
        """
        ...

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """Return the batch that worker `peer` turned into `frames`; raises `PeerError` if they are
        malformed.
        """
        ...

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Take in the content of a message that concerns the whole process, not only its dataflow.

        Return the frames without that content, for a later `from_frames`. Raises `PeerError` if the frames
        are malformed. `from_frames` takes in the same content besides returning the batch.
        """
        ...


@runtime_checkable
class HasBytes(Protocol):
    """A batch that knows how much memory it takes."""

    @property
    def size_bytes(self) -> int:
        """The bytes of its rows."""
        ...


class Large:
    """A batch that is sent to another worker as several messages, so that each of them is small."""

    __slots__ = ()

    def messages(self) -> Iterator[Batch]:
        """Yield the rows in batches, to be sent one after another."""
        raise NotImplementedError


class Timed:
    """A batch whose rows carry times, so that rows of several times may be sent as one batch."""

    __slots__ = ()

    def with_others(self, others: Sequence[Self]) -> Batch:
        """Return one batch with its own rows and those of `others`, all from the same sender; itself if
        `others` is empty.
        """
        raise NotImplementedError


Transform = Callable[[Batch], Batch | None]
"""A stateless step that the sender runs: it takes a batch and returns a batch or None."""


class Composed:
    """Several transforms, one after another."""

    __slots__ = ("transforms",)

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = tuple(transforms)

    def __call__(self, batch: Batch) -> Batch | None:
        """Apply the transforms in order; None as soon as no rows are left."""
        current: Batch | None = batch
        for transform in self.transforms:
            if current is None or current.rows == 0:
                return None
            current = transform(current)
        return current


B = TypeVar("B", bound=type[Batch])
_kinds: dict[int, type[Batch]] = {}
_MODULES: Final = {
    2: "differential.columns.update_batch",
    5: "differential.columns.update_batch",
    6: "timely.wire.frames.table_batch",
}
"""By kind of batches of ours: the module that registers it."""
_of_users: set[int] = set()
"""The kinds whose classes a user wrote."""


def register(batch_class: B) -> B:
    """Add a batch class to those that `decode` knows; used as a class decorator.

    Raises `InternalError` if another class has its `KIND`, `MisuseError` if `KIND` is out of range.
    """
    kind = batch_class.KIND
    registered = _kinds.get(kind)
    if registered is not None and registered.__qualname__ != batch_class.__qualname__:
        raise InternalError(
            f"batch kind {kind} is taken by {registered.__qualname__}: "
            f"{batch_class.__qualname__} needs a KIND of its own"
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
    """Return `batch` as frames that worker `peer` can read.

    Raises `MisuseError` if the batch's class is not registered, so that `decode` would not know it there, and
    if `to_frames` of a user's class returns anything but bytes.
    """
    registered = _kinds.get(batch.KIND)
    kind = type(batch)
    if registered is not kind and (registered is None or registered.__qualname__ != kind.__qualname__):
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
            f"{kind.__qualname__}.to_frames must return a list of bytes, the frames of one message: {error}"
        ) from error


def is_known(kind: int) -> bool:
    """Return True if this process has the batch class of this kind. One of ours is imported for that: logs
    may have batches of dataflows that have ended.
    """
    if kind not in _kinds and kind in _MODULES:
        importlib.import_module(_MODULES[kind])
    return kind in _kinds


def is_of_user(kind: int) -> bool:
    """Return True if a user wrote the batch class of this kind."""
    return kind in _of_users


def decode(kind: int, frames: Sequence[memoryview], peer: int) -> Batch:
    """Return the batch of class `kind` that worker `peer` sent as `frames`.

    Raises `PeerError` when no class has that kind, and when the frames are malformed.
    """
    return _class_of(kind, peer).from_frames(frames, peer)


def absorb(kind: int, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
    """Take in what `decode` takes in for the whole process, but make no batch; return the remaining frames.

    For a message to a dataflow that is not here, because it has ended or has not started yet. The sender
    counts the symbols in the message as known here, and will not send them again with rows of other
    dataflows. Call this once for a message: the sender may forget those symbols later on.
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

    On the wire they are one msgpack frame (`record_values.py` has what a record may hold). Lists arrive as
    tuples on another worker.
    """

    KIND: ClassVar[int] = 1
    __slots__ = ("records",)

    def __init__(self, records: list[object]) -> None:
        self.records = records

    def __repr__(self) -> str:
        return f"Records({self.records!r})"

    @property
    def rows(self) -> int:
        """The number of records."""
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
        """Return one msgpack frame; raises `MisuseError` for a value that no record may hold."""
        del peer
        try:
            return [pack_value(self.records)]
        except (TypeError, ValueError, OverflowError) as error:
            raise MisuseError(
                f"a record cannot be sent to another worker: {error}. Records may hold {VALUES}"
            ) from error

    def on_sent(self, peer: int) -> None:
        """Do nothing: frames of records carry nothing besides the records."""

    def symbols(self, mark: Mark) -> None:
        """Do nothing: records hold values, not words."""

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """Return the records in one msgpack frame; raises `PeerError` if it is malformed."""
        if len(frames) != 1:
            raise PeerError(f"worker {peer} sent records as {len(frames)} frames, not as one")
        try:
            records = unpack_value(frames[0])
        except UNPACK_ERRORS as error:
            raise PeerError(
                f"worker {peer} sent records that are not msgpack: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(records, tuple):
            raise PeerError(f"worker {peer} sent a {type(records).__name__}, not a list of records")
        return cls(list(records))

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Return the frames as they are: records concern their dataflow only."""
        del peer
        return frames
