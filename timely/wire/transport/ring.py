"""A ring of messages from one process to another, in memory that the two processes of one host share.

    InboundRing    created by the reader, which describes it to the writer by an `offer`
    OutboundRing   opened by the writer from an offer

A ring has one writer and one reader. Each message is a record: its length, its number, its number of frames,
their sizes, the frames. `tail` counts the bytes written, `head` the bytes read; both only grow. The writer
moves `tail` once a record is complete, so the reader sees whole records only, also if the writer is killed.
The reader sets a flag before it sleeps; the writer then wakes it by a byte in a pipe.

The memory and the pipe have no names: the writer opens them through /proc. So a process that is killed leaves
nothing behind, and only users that may look into these processes anyhow can open them.

Rings exist only on Linux on x86-64, where other cores see stores in the order in which they were made. A
store that others must see before a later load of the same thread needs a fence.

A kernel may read and write the same memory (`differential/kernels/compiled_loops/rings.py`). It gets a *line*
for each pair of rings, with their addresses and how far they have been read and written, and no object here
is used until `take_back`.
"""

from __future__ import annotations

import mmap
import os
import platform
import secrets
import stat
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from ...errors import PeerError
from ..batch import Frame, bytes_of

__all__ = [
    "ASLEEP",
    "DATA",
    "HEAD",
    "IS_POSSIBLE",
    "LINE",
    "L_IN",
    "L_IN_SIZE",
    "L_KNOWN_READ",
    "L_OUT",
    "L_OUT_SIZE",
    "L_PEER",
    "L_READ",
    "L_SENT",
    "L_SLEEPS",
    "L_TAKEN",
    "L_WRITTEN",
    "RECORD_PARTS",
    "TAIL",
    "InboundRing",
    "OutboundRing",
    "fence",
]

IS_POSSIBLE: Final = (
    sys.platform == "linux" and platform.machine() == "x86_64" and hasattr(os, "memfd_create")
)
"""True if this host has what rings need. (A Python that was built for old systems lacks `memfd_create`.)"""

TAIL: Final = 0
"""Offsets of the counters and flags, in words of 8 bytes: each has a cache line of its own."""
HEAD: Final = 8
ASLEEP: Final = 16
_COOKIE: Final = 24
DATA: Final = 32
_WORD: Final = 8
RECORD_PARTS: Final = 8
"""A record takes at most 1 / `RECORD_PARTS` of a ring, so that none has to wait until the ring is empty."""
_FRAMES_MAX: Final = 4096
_HEADER: Final = struct.Struct("<qqq")
"""The header of a record: its bytes, its number, its number of frames. A negative first word -n: the n bytes
up to the end of the ring are skipped.
"""
_OFFER: Final = struct.Struct("<qqqqq")

# The fields of a line.
L_PEER: Final = 0
L_IN: Final = 1
"""Address of the inbound ring's words; then its size in bytes, the bytes read so far, and the number of the
next message.
"""
L_IN_SIZE: Final = 2
L_READ: Final = 3
L_TAKEN: Final = 4
L_OUT: Final = 5
"""Address of the outbound ring's words; then its size in bytes, the bytes written so far, the bytes that the
peer had read when the writer last looked, and the number of the next message.
"""
L_OUT_SIZE: Final = 6
L_WRITTEN: Final = 7
L_KNOWN_READ: Final = 8
L_SENT: Final = 9
L_SLEEPS: Final = 10
"""1 if the peer was asleep when the kernel wrote something, and has not been woken."""
LINE: Final = 11


_lock = threading.Lock()


def fence() -> None:
    """Let other threads see all stores of this thread before it loads anything more.

    Taking a lock is an atomic read-modify-write, which waits for that on x86-64.
    """
    with _lock:
        pass


class InboundRing:
    """The reader's end of a ring, which creates its memory.

    Args:
        size: bytes, a power of two. They are allocated at once: a page missing later would kill the process.
        writer: the name of the writer, for errors.
        wake: the descriptor of the end of a pipe to which the writer writes if the reader sleeps; -1: the
            writer has another way to wake it.

    Raises `OSError` if the host has no memory.
    """

    def __init__(self, size: int, writer: str, wake: int) -> None:
        assert size >= mmap.PAGESIZE and size & (size - 1) == 0
        self._size = size
        self._writer = writer
        self._wake = wake
        self._cookie = secrets.randbits(62)
        self._head = 0
        self._descriptor = os.memfd_create("naiad-ring", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(self._descriptor, 0, _WORD * DATA + size)
            self._map = mmap.mmap(self._descriptor, _WORD * DATA + size)
        except BaseException:
            os.close(self._descriptor)
            raise
        self._bytes = memoryview(self._map)[_WORD * DATA :]
        self._words = memoryview(self._map).cast("q")
        self._words[_COOKIE] = self._cookie
        self._address = _address_of(self._map)

    @property
    def offer(self) -> bytes:
        """The bytes from which the writer opens this ring."""
        return _OFFER.pack(os.getpid(), self._descriptor, self._wake, self._size, self._cookie)

    def has_more(self) -> bool:
        """Return True if a record is there."""
        return self._words[TAIL] != self._head

    def number(self) -> int:
        """Return the number of the next record; -1 if there is none."""
        return self._header()[1] if self.has_more() else -1

    def take(self, number: int) -> list[memoryview] | None:
        """Return the frames of the next record; None if there is no record, or it has a higher number.

        Raises `PeerError` if it has a lower number. The frames are copies: the record's memory is free when
        this returns.
        """
        if self._words[TAIL] == self._head:
            return None
        length, record_number, count = self._header()
        if record_number > number:
            return None
        if record_number < number:  # it would block all others for ever
            raise self._broken(f"message {record_number}, where {number} is next")
        at = self._head & (self._size - 1)
        record = memoryview(bytes(self._bytes[at : at + length]))
        sizes = struct.unpack_from(f"<{count}q", record, _HEADER.size)
        end = _HEADER.size + _WORD * count
        frames = []
        for size in sizes:
            if not 0 <= size <= length - end:
                raise self._broken(f"a frame of {size} bytes in a record of {length}")
            frames.append(record[end : end + size])
            end += (size + 7) & -8
        self._head += length
        self._words[HEAD] = self._head
        return frames

    def lent(self) -> tuple[int, int, int]:
        """Return its fields of a line: address, size, and bytes read."""
        return self._address, self._size, self._head

    def take_back(self, read: int) -> None:
        """Set how many bytes have been read."""
        self._head = read

    def set_asleep(self, is_asleep: bool) -> None:
        """Ask the writer to wake this reader with the next record, or not to."""
        self._words[ASLEEP] = is_asleep

    def close(self) -> None:
        """Release the memory. May be called twice."""
        if self._descriptor >= 0:
            _release(self._map, self._bytes, self._words)
            os.close(self._descriptor)
            self._descriptor = -1

    def _header(self) -> tuple[int, int, int]:
        """Return the header of the next record, after skipping unused bytes at the end of the ring."""
        written = self._words[TAIL] - self._head
        at = self._head & (self._size - 1)
        length = self._words[DATA + at // _WORD]
        if length < 0:
            if -length != self._size - at or written + length <= 0:
                raise self._broken(f"{-length} bytes to be skipped at {at}, {written} written")
            self._head -= length
            written += length
            at = 0
            length = self._words[DATA]
        _, number, count = _HEADER.unpack_from(self._bytes, at)
        if not (
            0 <= count <= _FRAMES_MAX
            and _HEADER.size + _WORD * count <= length <= min(written, self._size - at)
            and length % _WORD == 0
        ):
            raise self._broken(f"a record of {length} bytes with {count} frames at {at}, {written} written")
        return length, number, count

    def _broken(self, what: str) -> PeerError:
        return PeerError(f"{self._writer} has written what no worker writes into shared memory: {what}")


class OutboundRing:
    """The writer's end of a ring, opened from an offer.

    Raises `OSError` if the offer points to no such memory, as it does if the processes cannot see each other,
    and `ValueError` if `offer` is malformed.

    Args:
        wake: wakes the reader, in place of a byte in the pipe.
    """

    def __init__(self, offer: bytes | memoryview, wake: Callable[[], None] | None = None) -> None:
        try:
            process, descriptor, pipe, size, cookie = _OFFER.unpack(offer)
        except struct.error as error:
            raise ValueError(str(error)) from error
        self._size = size
        self._tail = 0
        self._head = 0
        with _opened(process, descriptor, os.O_RDWR) as opened:
            if os.fstat(opened).st_size != _WORD * DATA + size:
                raise OSError("another file is there")
            self._map = mmap.mmap(opened, _WORD * DATA + size)
        self._bytes = memoryview(self._map)[_WORD * DATA :]
        self._words = memoryview(self._map).cast("q")
        self._is_closed = False
        self._pipe = -1
        self._wake = self._write_to_pipe if wake is None else wake
        try:
            if self._words[_COOKIE] != cookie:
                raise OSError("the memory of somebody else is there")
            if wake is None:
                with _opened(process, pipe, os.O_WRONLY | os.O_NONBLOCK) as opened:
                    if not stat.S_ISFIFO(os.fstat(opened).st_mode):
                        raise OSError("another file is there")
                    self._pipe = os.dup(opened)
        except BaseException:
            _release(self._map, self._bytes, self._words)
            raise
        self._address = _address_of(self._map)

    @property
    def unread_bytes(self) -> int:
        """The bytes that were written and that the reader has not taken."""
        return self._words[TAIL] - self._words[HEAD]

    def put(self, number: int, frames: Sequence[Frame]) -> bool:
        """Write a record if there is room for it now, and wake a sleeping reader; return True if it was
        written.
        """
        # Fast path, run for each message: no call for frames that are bytes (nearly all), and no generators.
        views = [frame if type(frame) is bytes else bytes_of(frame) for frame in frames]
        sizes = [len(view) for view in views]
        length = _HEADER.size + _WORD * len(sizes)
        for size in sizes:
            length += (size + 7) & -8
        if length > self._size // RECORD_PARTS or len(sizes) > _FRAMES_MAX:
            return False
        at = self._tail & (self._size - 1)
        skipped = self._size - at if at + length > self._size else 0
        end = self._tail + skipped + length
        if end - self._head > self._size:
            self._head = self._words[HEAD]
            if end - self._head > self._size:
                return False
        if skipped:
            self._words[DATA + at // _WORD] = -skipped
            at = 0
        struct.pack_into(f"<{3 + len(sizes)}q", self._bytes, at, length, number, len(sizes), *sizes)
        at += _HEADER.size + _WORD * len(sizes)
        for view, size in zip(views, sizes, strict=True):
            self._bytes[at : at + size] = view
            at += (size + 7) & -8
        self._tail = self._words[TAIL] = end
        fence()
        if self._words[ASLEEP]:
            self._wake_sleeper()
        return True

    def lent(self) -> tuple[int, int, int, int]:
        """Return its fields of a line: address, size, bytes written, and bytes last seen as read."""
        return self._address, self._size, self._tail, self._head

    def take_back(self, written: int, known_read: int, sleeps: int) -> None:
        """Set how many bytes have been written, and seen as read; `sleeps`: the reader was asleep then."""
        self._tail, self._head = written, known_read
        if sleeps and self._words[ASLEEP]:
            self._wake_sleeper()

    def close(self) -> None:
        """Release the memory. May be called twice."""
        if not self._is_closed:
            self._is_closed = True
            _release(self._map, self._bytes, self._words)
            if self._pipe >= 0:
                os.close(self._pipe)

    def _wake_sleeper(self) -> None:
        # Clear the flag before the wake-up, which wakes also a reader that has set the flag anew in between.
        self._words[ASLEEP] = 0
        self._wake()

    def _write_to_pipe(self) -> None:
        try:
            os.write(self._pipe, b"!")
        except BlockingIOError:
            pass  # the pipe is full of such bytes: the reader will wake up
        except BrokenPipeError:
            pass  # the reader has ended, which its connection reports


@contextmanager
def _opened(process: int, descriptor: int, flags: int) -> Iterator[int]:
    """Open a file of another process by its descriptor there, and yield the descriptor here."""
    opened = os.open(f"/proc/{process}/fd/{descriptor}", flags | os.O_CLOEXEC)
    try:
        yield opened
    finally:
        os.close(opened)


def _address_of(mapped: mmap.mmap) -> int:
    return np.frombuffer(mapped, np.uint8).ctypes.data


def _release(mapped: mmap.mmap, *views: memoryview) -> None:
    for view in views:
        view.release()
    mapped.close()
