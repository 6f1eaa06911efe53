"""Memory that two processes of one host share: messages from one to the other, in a ring.

    InboundRing    made by who reads; says where it is by an `offer`
    OutboundRing   opened from an offer by who writes

One writes, one reads. Each message is a record: its length, its number, how many frames, their sizes, the
frames. What has been written is counted in `tail`, what has been read in `head`; both only grow. A record is
there once tail says so, whole, also if its writer was killed since. Who reads says before it sleeps that it
does; who writes wakes it then by a byte in a pipe.

The memory and the pipe have no names: the other side opens them through /proc. So nothing is left behind by
whoever is killed when, and nobody else comes in than who may look into these processes anyhow.

Only on Linux on x86-64, where stores are seen in the order in which they were made. Where that is not enough,
for a store that has to be seen before a load of one's own, there is a fence.

A kernel may do the same with the same memory (`differential/kernels/compiled_loops/rings.py`): it is lent a
*line* for each pair of rings, which says where they are and how far it has been read and written, and no
object here is used until that is taken back.
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
"""Whether this host has what rings need: a Python that was built for old systems knows of no memory without
a name.
"""

TAIL: Final = 0
"""Where things are, in words of eight bytes: each in a cache line of its own."""
HEAD: Final = 8
ASLEEP: Final = 16
_COOKIE: Final = 24
DATA: Final = 32
_WORD: Final = 8
RECORD_PARTS: Final = 8
"""A record takes at most one of so many parts of a ring, so that none has to wait until all is read."""
_FRAMES_MAX: Final = 4096
_HEADER: Final = struct.Struct("<qqq")
"""Of a record: its bytes, its number, how many frames. A negative first word: so many bytes up to the end are
skipped.
"""
_OFFER: Final = struct.Struct("<qqqqq")

# a line
L_PEER: Final = 0
L_IN: Final = 1
"""Address of the words of the ring that is read; then its bytes, how many have been read, and the number of
the message that is next.
"""
L_IN_SIZE: Final = 2
L_READ: Final = 3
L_TAKEN: Final = 4
L_OUT: Final = 5
"""The same of the one that is written, and how many were known to be read there."""
L_OUT_SIZE: Final = 6
L_WRITTEN: Final = 7
L_KNOWN_READ: Final = 8
L_SENT: Final = 9
L_SLEEPS: Final = 10
"""Whether who reads was asleep when something was written, and has not been woken."""
LINE: Final = 11


_lock = threading.Lock()


def fence() -> None:
    """What this thread has stored is seen by others before it loads anything more: taking a lock is an atomic
    read-modify-write, which waits for that on x86-64.
    """
    with _lock:
        pass


class InboundRing:
    """Made by who reads.

    Args:
        size: bytes, a power of two. Memory is taken at once: what is missing later would kill the process.
        writer: who it is read from, for errors.
        wake: the descriptor of the end of a pipe to which is written if the reader sleeps; -1: who writes has
            another way to wake it.

    Raises `OSError` if the host gives no memory.
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
        """Where who writes finds it."""
        return _OFFER.pack(os.getpid(), self._descriptor, self._wake, self._size, self._cookie)

    def has_more(self) -> bool:
        """Whether a record is there."""
        return self._words[TAIL] != self._head

    def number(self) -> int:
        """That of the next record; -1 if there is none."""
        return self._header()[1] if self.has_more() else -1

    def take(self, number: int) -> list[memoryview] | None:
        """The frames of the next record, if it is there and has this number, and no lower one. They are
        copied: the ring's memory is free again when this returns.
        """
        if self._words[TAIL] == self._head:
            return None
        length, found, count = self._header()
        if found > number:
            return None
        if found < number:  # it would stand before all others for ever
            raise self._broken(f"message {found}, where {number} is next")
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
        """What a line says of it: where it is, and how far it has been read."""
        return self._address, self._size, self._head

    def take_back(self, read: int) -> None:
        """It has been read so far by now."""
        self._head = read

    def say_asleep(self, is_asleep: bool) -> None:
        """Ask for a byte in the pipe with the next record, or for none."""
        self._words[ASLEEP] = is_asleep

    def close(self) -> None:
        """Let go of the memory. Twice is once."""
        if self._descriptor >= 0:
            _release(self._map, self._bytes, self._words)
            os.close(self._descriptor)
            self._descriptor = -1

    def _header(self) -> tuple[int, int, int]:
        """Of the next record, behind what is to be skipped."""
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
    """Opened from an offer by who writes. Raises `OSError` if there is nothing of the kind where it points
    to, as where processes do not see each other, and `ValueError` if it is no offer.

    Args:
        wake: wakes who reads, in place of a byte in the pipe.
    """

    def __init__(self, offer: bytes | memoryview, wake: Callable[[], None] | None = None) -> None:
        try:
            process, descriptor, pipe, size, cookie = _OFFER.unpack(offer)
        except struct.error as error:
            raise ValueError(str(error)) from error
        self._size = size
        self._tail = 0
        self._head = 0
        with _opened(process, descriptor, os.O_RDWR) as found:
            if os.fstat(found).st_size != _WORD * DATA + size:
                raise OSError("another file is there")
            self._map = mmap.mmap(found, _WORD * DATA + size)
        self._bytes = memoryview(self._map)[_WORD * DATA :]
        self._words = memoryview(self._map).cast("q")
        self._is_closed = False
        self._pipe = -1
        self._wake = self._write_to_pipe if wake is None else wake
        try:
            if self._words[_COOKIE] != cookie:
                raise OSError("the memory of somebody else is there")
            if wake is None:
                with _opened(process, pipe, os.O_WRONLY | os.O_NONBLOCK) as found:
                    if not stat.S_ISFIFO(os.fstat(found).st_mode):
                        raise OSError("another file is there")
                    self._pipe = os.dup(found)
        except BaseException:
            _release(self._map, self._bytes, self._words)
            raise
        self._address = _address_of(self._map)

    def put(self, number: int, frames: Sequence[Frame]) -> bool:
        """Write a record, if there is room for it now, and wake who sleeps; whether there was."""
        # Asked for each message: no calls for what is bytes, as nearly all are, and no generators.
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
        """What a line says of it: where it is, how far it has been written, and was known to be read."""
        return self._address, self._size, self._tail, self._head

    def take_back(self, written: int, known_read: int, sleeps: int) -> None:
        """It has been written so far by now; `sleeps`: who reads it slept then."""
        self._tail, self._head = written, known_read
        if sleeps and self._words[ASLEEP]:
            self._wake_sleeper()

    def close(self) -> None:
        """Let go of the memory. Twice is once."""
        if not self._is_closed:
            self._is_closed = True
            _release(self._map, self._bytes, self._words)
            if self._pipe >= 0:
                os.close(self._pipe)

    def _wake_sleeper(self) -> None:
        self._words[ASLEEP] = 0  # before it is woken: who said it once more since then is woken by this
        self._wake()

    def _write_to_pipe(self) -> None:
        try:
            os.write(self._pipe, b"!")
        except BlockingIOError:
            pass  # full of such bytes: it will wake up
        except BrokenPipeError:
            pass  # it has ended, which its connection tells


@contextmanager
def _opened(process: int, descriptor: int, flags: int) -> Iterator[int]:
    """A file of another process, by its number there."""
    found = os.open(f"/proc/{process}/fd/{descriptor}", flags | os.O_CLOEXEC)
    try:
        yield found
    finally:
        os.close(found)


def _address_of(mapped: mmap.mmap) -> int:
    return np.frombuffer(mapped, np.uint8).ctypes.data


def _release(mapped: mmap.mmap, *views: memoryview) -> None:
    for view in views:
        view.release()
    mapped.close()
