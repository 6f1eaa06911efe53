"""What does a captured stream look like in a file?

    file      "NaiadC1\\n", and then frames
    frame     length (u64), kind (u32), CRC of the payload (u32), CRC of these 16 bytes (u32); and the payload
              of `length` bytes

    kind      payload
    0 header  msgpack [worker, workers, numbers in a time]; the first frame, and the only one of its kind
    1 records a time, and the list of records, as `record_values.py` packs it
    2 table   a time, and an Arrow IPC stream
    3 front   the times at or after which records may still come, each as a time; none: nothing comes any more

All numbers are little-endian; a time is as many u64 as the header says. The CRC of the 16 bytes begins with
the place of the frame in the file (its lower 32 bits), so a piece that is missing in the middle is noticed.

A process that is killed leaves a prefix of what it has written: its last frame may be torn, and all others
are whole. A machine that loses power may leave zeros in place of the end. Any other difference is damage.

Writers lock their files until they end, or die. So a reader knows whether more will come.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import msgpack

from progress.times.timestamp import Timestamp

from ...errors import CaptureError, MisuseError
from ...forking import leave_to_parent
from ...wire.batch import UNPACK_ERRORS, Frame, bytes_of

__all__ = [
    "FRONT",
    "HEADER",
    "RECORDS",
    "TABLE",
    "CaptureReader",
    "CaptureWriter",
    "CapturedFrame",
    "times_in",
]

HEADER: Final = 0
RECORDS: Final = 1
TABLE: Final = 2
FRONT: Final = 3

_MAGIC: Final = b"NaiadC1\n"
_FRONT: Final = struct.Struct("<QII")
_CRC: Final = struct.Struct("<I")
_HEAD_BYTES: Final = _FRONT.size + _CRC.size
_NUMBER_BYTES: Final = 8
_READ_BYTES: Final = 1 << 18
"""So many bytes are read at once."""

_written: Final = set[int]()
"""Descriptors of the files that this process writes."""


def _leave_files() -> None:
    """In a process that was just forked: leave the files to its parent, whose lock would last otherwise."""
    leave_to_parent(_written)
    _written.clear()


os.register_at_fork(after_in_child=_leave_files)


def _head(place: int, length: int, kind: int, crc: int) -> bytes:
    front = _FRONT.pack(length, kind, crc)
    return front + _CRC.pack(crc32(front, place & 0xFFFFFFFF))


class CaptureWriter:
    """A new file. What a call has written is in the hands of the operating system when it returns: it
    survives the process.
    """

    def __init__(self, path: Path, worker: int, workers: int, coordinates: int) -> None:
        """Raises `FileExistsError` if there is such a file."""
        self.path = path
        self._coordinates = coordinates
        self._descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        _written.add(self._descriptor)
        self._size = 0
        self.is_empty = True
        """True if nothing came behind the header."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        self._write(_MAGIC)
        self._frame(HEADER, [msgpack.packb([worker, workers, coordinates])])

    @property
    def is_open(self) -> bool:
        """False once it was closed."""
        return self._descriptor >= 0

    def records(self, kind: int, time: Timestamp, content: Frame) -> None:
        """Write records, or a table, of one time."""
        self.is_empty = False
        self._frame(kind, [self._packed([time]), content])

    def front(self, times: Sequence[Timestamp]) -> None:
        """Write at or after which times records may still come."""
        self.is_empty = False
        self._frame(FRONT, [self._packed(times)])

    def close(self) -> None:
        """Close the file, once the disk has it."""
        if not self.is_open:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            os.fsync(descriptor)
        finally:
            _written.discard(descriptor)
            # A process that was just forked may have it open for a moment, too.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _packed(self, times: Sequence[Timestamp]) -> bytes:
        numbers = [number for time in times for number in time]
        return struct.pack(f"<{len(numbers)}Q", *numbers)

    def _frame(self, kind: int, pieces: Sequence[Frame]) -> None:
        crc = length = 0
        for piece in pieces:
            crc = crc32(piece, crc)
            length += bytes_of(piece).nbytes
        head = _head(self._size, length, kind, crc)
        if length < _READ_BYTES:
            self._write(b"".join([head, *pieces]))
        else:
            for one in (head, *pieces):
                self._write(one)

    def _write(self, piece: Frame) -> None:
        rest = bytes_of(piece)
        while rest.nbytes:
            count = os.write(self._descriptor, rest)
            self._size += count
            rest = rest[count:]


class CapturedFrame(NamedTuple):
    """A frame: where it begins, what it is, and what it holds; without `content` if that was skipped."""

    start: int
    kind: int
    content: memoryview


class CaptureReader:
    """Reads the frames of a file in turn, as far as they are whole.

    Raises `MisuseError` if the file is still being written, and `CaptureError` where it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb", buffering=_READ_BYTES)
        try:
            _check_over(self._file.fileno(), path)
            self._size = os.fstat(self._file.fileno()).st_size
            self.place = 0
            """Where the next frame begins."""
            self.torn_at: int | None = None
            """Where a frame begins that is not whole, at the end of the file; None while there is none."""
            self.coordinates = 0
            """How many numbers a time has; 0: the header is torn."""
            self.worker = self.workers = 0
            self._read_header()
        except BaseException:
            self._file.close()
            raise

    def next(self, *, skips_records: bool = False) -> CapturedFrame | None:
        """Return the next frame; None if there is none, or it is torn (`torn_at`). With `skips_records`,
        records and tables are not read, nor checked.
        """
        start, rest = self.place, self._size - self.place
        if not rest or self.torn_at is not None:
            return None
        head = self._file.read(_HEAD_BYTES)
        if len(head) < _HEAD_BYTES:
            self.torn_at = start
            return None
        length, kind, crc = _FRONT.unpack_from(head)
        if head != _head(start, length, kind, crc):
            if not any(head) and self._ends_in_zeros():
                self.torn_at = start
                return None
            raise self.damage(start, "the head of the frame there is not as it was written")
        if length > rest - _HEAD_BYTES:
            self.torn_at = start
            return None
        self.place = start + _HEAD_BYTES + length
        if skips_records and kind in (RECORDS, TABLE):
            self._file.seek(length, os.SEEK_CUR)
            return CapturedFrame(start, kind, memoryview(b""))
        content = self._file.read(length)
        if crc32(content) != crc:
            if self.place == self._size:
                self.torn_at = start
                return None
            raise self.damage(start, "the frame there is not as it was written")
        return CapturedFrame(start, kind, memoryview(content))

    def restart(self) -> None:
        """Begin again, behind the header."""
        self._file.seek(len(_MAGIC))
        self.place, self.torn_at = len(_MAGIC), None
        self.next()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def damage(self, start: int, what: str) -> CaptureError:
        """Return the error for a frame that begins at byte `start`."""
        return CaptureError(
            f"{self.path} is damaged at byte {start:,}: {what}. Put a whole copy of this file in its place, "
            "or capture the stream anew"
        )

    def _read_header(self) -> None:
        magic = self._file.read(len(_MAGIC))
        if magic != _MAGIC:
            if not _MAGIC.startswith(magic):
                raise CaptureError(
                    f"{self.path} is no captured stream of this format: it begins with {magic!r}, and not "
                    f"with {_MAGIC!r}. Read it with the release that has written it, or capture the stream "
                    "anew"
                )
            self.torn_at = 0
            return
        self.place = len(_MAGIC)
        header = self.next()
        if header is None:
            self.torn_at = len(_MAGIC)
            return
        try:
            self.worker, self.workers, self.coordinates = msgpack.unpackb(header.content)
        except UNPACK_ERRORS as error:
            raise self.damage(header.start, f"its header cannot be read ({error})") from error
        if header.kind != HEADER or not 0 <= self.worker < self.workers or self.coordinates < 1:
            raise self.damage(header.start, "the file does not begin with a header")

    def _ends_in_zeros(self) -> bool:
        while piece := self._file.read(_READ_BYTES):
            if any(piece):
                return False
        return True


def times_in(content: memoryview, coordinates: int) -> tuple[list[Timestamp], bool]:
    """Return the times that stand in these bytes, and whether they are whole numbers of times."""
    size = _NUMBER_BYTES * coordinates
    count, rest = divmod(len(content), size)
    form = struct.Struct(f"<{coordinates}Q")
    return [form.unpack_from(content, at * size) for at in range(count)], not rest


def _check_over(descriptor: int, path: Path) -> None:
    """Raise `MisuseError` if somebody still writes the file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MisuseError(
            f"{path} is still being written: replay the stream when it is over, or when the cluster that "
            "captures it is closed"
        ) from None
    fcntl.flock(descriptor, fcntl.LOCK_UN)
