"""How does a record stand in a segment, and where does a segment end?

    record    length (u32), CRC (u32), mark (u32), and then `length` bytes:
    these     length of the head (u32), the head, zeros, and the frames, each with zeros behind it
    head      [head, lengths of the frames], as msgpack

All numbers are little-endian. Every record, and every frame in it, begins at a multiple of 8, so that kernels
can read the words of rows where they lie.

The CRC is that of `length`, `mark` and the bytes behind them, and it begins with the CRC of the record
before, or with 0. So a whole record of an older file, at a place that the file system has used again, is
recognised. The mark is the CRC of the segment's header if everything before this record was durable when it
was written, and otherwise 0.

The first record of a segment is its header:

    ["segment", FORMAT, cluster, incarnation, process, number, continues, before]

`continues`: the segment needs symbols of the segment before it. `before`: [number, bytes] of the segment
before it, and how many of its bytes count; None for the first one of a log.

A crash leaves a prefix of what was written last, or worse: parts of it, in any order. So the last segment
ends at the first record that is not whole (a *torn tail*). But if a whole record behind that place has the
mark, then the bytes have changed since they were durable, and this is damage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from zlib import crc32

import msgpack

from ..errors import MisuseError, StoreError
from ..wire.batch import UNPACK_ERRORS, Frame, bytes_of

__all__ = ["FORMAT", "TEXT_ERRORS", "Record", "body_of", "packed", "records_behind", "records_in", "sealed"]

FORMAT: Final = 1
"""The number of the format of everything in a store; another one is refused."""

_ALIGN: Final = 8
_FRONT: Final = struct.Struct("<III")
_MARKED: Final = struct.Struct("<II")
_WORD: Final = struct.Struct("<I")
_JOINED_BYTES_MAX: Final = 16 << 10
"""Bodies up to this size are copied into one piece, which costs less than several pieces do."""

_RECORD_BYTES_MAX: Final = (1 << 32) - _ALIGN
TEXT_ERRORS: Final = "surrogatepass"
"""For msgpack: heads quote names and errors of users, and text that is not valid UTF-8 is no reason to refuse
them."""
_ZEROS: Final = tuple(bytes(count) for count in range(_ALIGN))


class Record(NamedTuple):
    """A record as it stands in a segment, in bytes [start, end) of it."""

    start: int
    end: int
    head: list[object]
    frames: list[memoryview]


def body_of(head: Sequence[object], frames: Sequence[Frame]) -> tuple[list[Frame], int]:
    """Return the bytes of a record behind its mark, in pieces, and their number. Large frames stay as is."""
    sizes = [len(frame) if type(frame) is bytes else bytes_of(frame).nbytes for frame in frames]
    packed_head: bytes = msgpack.packb([head, sizes], unicode_errors=TEXT_ERRORS)
    size = _WORD.size + len(packed_head)
    zeros = -(_FRONT.size + size) % _ALIGN
    pieces: list[Frame] = [_WORD.pack(len(packed_head)), packed_head, _ZEROS[zeros]]
    total = size + zeros
    for frame, size in zip(frames, sizes, strict=True):
        pieces += (frame, _ZEROS[-size % _ALIGN])
        total += size + -size % _ALIGN
    if total <= _JOINED_BYTES_MAX:
        return [b"".join(pieces)], total
    if total > _RECORD_BYTES_MAX:
        raise MisuseError(
            f"a record of {total:,} bytes does not fit the log, whose records have at most "
            f"{_RECORD_BYTES_MAX:,}: insert fewer rows at once"
        )
    return [piece for piece in pieces if bytes_of(piece).nbytes], total


def sealed(body: Sequence[Frame], size: int, crc: int, mark: int) -> tuple[Frame, int]:
    """Return what stands before the body of a record behind a record with `crc`, and the CRC of this one."""
    crc = crc32(_MARKED.pack(size, mark), crc)
    for piece in body:
        crc = crc32(piece, crc)
    return _FRONT.pack(size, crc, mark), crc


def packed(head: Sequence[object], frames: Sequence[Frame], crc: int) -> tuple[list[Frame], int, int]:
    """Return a record behind one with `crc`, in pieces; its own CRC; and the number of its bytes."""
    body, size = body_of(head, frames)
    front, crc = sealed(body, size, crc, mark=0)
    return [front, *body], crc, _FRONT.size + size


def records_in(data: memoryview, name: str, end: int | None, is_last: bool) -> Iterator[Record]:
    """Yield the records in the first `end` bytes of segment `name`, its header first.

    If `end` is None, this finds out where the segment ends: the last one at the first record that is not
    whole, any other with its last byte. Raises `StoreError` where a record that must be there is damaged.
    """
    if end is not None and len(data) < end:
        raise _damage(name, len(data), f"{end:,} bytes of it count, and it has {len(data):,}")
    data = data[:end]
    start = crc = 0
    while start < len(data):
        stop = _end_of(data, start, crc)
        if stop is None:
            if end is None and is_last and not _is_followed(data, start):
                return
            raise _damage(name, start, "the record there is not as it was written")
        yield _record(data, start, stop, name)
        crc = _crc_at(data, start)
        start = stop


def records_behind(data: memoryview, name: str, crc: int) -> Iterator[tuple[Record, int]]:
    """Yield the whole records in the bytes of segment `name` that follow a record with `crc`, each with its
    own CRC; stop at the first one that is not whole, which may be being written. `start` and `end` of records
    count from the first of these bytes.
    """
    start = 0
    while (stop := _end_of(data, start, crc)) is not None:
        crc = _crc_at(data, start)
        yield _record(data, start, stop, name), crc
        start = stop


def _end_of(data: memoryview, start: int, crc: int) -> int | None:
    """Return the end of the record at `start`, behind one with `crc`; None if it is not whole."""
    stop = _claimed_end(data, start)
    if stop is None:
        return None
    length, stored, mark = _FRONT.unpack_from(data, start)
    whole = crc32(data[start + _FRONT.size : stop], crc32(_MARKED.pack(length, mark), crc))
    return stop if whole == stored else None


def _claimed_end(data: memoryview, start: int) -> int | None:
    """Return the end of the record at `start` as its length says; None if it has none within `data`."""
    if len(data) - start < _FRONT.size:
        return None
    stop = start + _FRONT.size + _length_at(data, start)
    return stop if stop > start + _FRONT.size and stop % _ALIGN == 0 and stop <= len(data) else None


def _length_at(data: memoryview, start: int) -> int:
    length: int = _FRONT.unpack_from(data, start)[0]
    return length


def _crc_at(data: memoryview, start: int) -> int:
    crc: int = _FRONT.unpack_from(data, start)[1]
    return crc


def _mark_at(data: memoryview, start: int) -> int:
    mark: int = _FRONT.unpack_from(data, start)[2]
    return mark


def _is_followed(data: memoryview, start: int) -> bool:
    """Return True if a whole record of this segment behind the bad one at `start` has the mark.

    The CRC of a record begins with the one that the record before it stores, so records behind a bad one are
    recognised as long as the words before the bodies are as they were.
    """
    stop = _claimed_end(data, start)
    while stop is not None:
        is_whole = _end_of(data, stop, _crc_at(data, start)) is not None
        if is_whole and _mark_at(data, stop) == _crc_at(data, 0):
            return True
        start, stop = stop, _claimed_end(data, stop)
    return False


def _record(data: memoryview, start: int, stop: int, name: str) -> Record:
    """Return the record in bytes [start, stop), whose CRC is right."""
    head_start = start + _FRONT.size + _WORD.size
    (head_size,) = _WORD.unpack_from(data, head_start - _WORD.size)
    at = head_start + head_size
    try:
        head, sizes = msgpack.unpackb(data[head_start:at], strict_map_key=False, unicode_errors=TEXT_ERRORS)
        frames = []
        for size in sizes:
            at += -at % _ALIGN
            frames.append(data[at : at + size])
            at += size
    except UNPACK_ERRORS as error:
        raise _damage(name, start, f"its head cannot be read ({type(error).__name__}: {error})") from error
    if at + -at % _ALIGN != stop or not isinstance(head, list):
        raise _damage(name, start, "its parts do not add up")
    return Record(start, stop, head, frames)


def _damage(name: str, offset: int, what: str) -> StoreError:
    return StoreError(
        f"{name} is damaged at byte {offset:,}: {what}. Put a whole copy of this file in its place; without "
        "one, what this cluster held cannot be restored: start it with another folder, and feed it again"
    )
