"""Room for many rows, which the system has back as soon as it is dropped.

What a load sorts, packs and sends on is large and short-lived. Python's and numpy's own memory comes from an
allocator that keeps what was large once for what may be large later; of that there is more than of all that
is kept for good.
"""

from __future__ import annotations

import mmap
from typing import Final

import numpy as np

from progress.arrays import Int64s

__all__ = ["MAPPED_BYTES_MIN", "give_back", "lengthened", "mapped_bytes", "room_for", "shortened"]

MAPPED_BYTES_MIN: Final = 1 << 18
"""Memory from this size on is mapped, so that dropping it gives it back to the system at once."""

_HUGE_PAGE_BYTES: Final = 1 << 21
"""Memory of two such pages and more asks for them: touching small pages first costs more than filling them.
"""

_PRIVATE: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_HUGE: Final[int | None] = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux only
_DONTNEED: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)


def mapped_bytes(size: int) -> Int64s:
    """Memory for `size` bytes, contents undefined. What is never touched of it is not there."""
    if size < MAPPED_BYTES_MIN:
        return np.empty((size + 7) // 8, np.int64)
    memory = mmap.mmap(-1, (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE * mmap.PAGESIZE, flags=_PRIVATE)
    if size >= 2 * _HUGE_PAGE_BYTES and _HUGE is not None:
        memory.madvise(_HUGE)
    return np.frombuffer(memory, np.int64)


def room_for(columns: int, rows: int) -> Int64s:
    """int64[columns, rows], contents undefined.

    Not by a kernel, which would have small pages: to touch fresh ones costs as much as sorting. So what is
    half of two huge ones takes as much.
    """
    count = columns * rows
    size = 8 * count
    if _HUGE_PAGE_BYTES <= size < 2 * _HUGE_PAGE_BYTES:
        size = 2 * _HUGE_PAGE_BYTES
    return mapped_bytes(size)[:count].reshape(columns, rows)


def shortened(room: Int64s, rows: int) -> Int64s:
    """The first `rows` rows of `room_for`, C-contiguous, as far as possible in the same memory, of which what
    is behind them goes back to the system. Nobody else may hold `room`.
    """
    columns, width = room.shape
    memory = _memory_of(room)
    if rows == width:
        return room
    if memory is None or _DONTNEED is None:
        return room[:, :rows].copy()
    flat = room.reshape(-1)
    for column in range(1, columns):
        flat[column * rows : (column + 1) * rows] = flat[column * width : column * width + rows]
        # Up to where the next column begins: what was moved lies before.
        start = max(8 * (column + 1) * rows, 8 * column * width)
        _give_back(memory, start, 8 * (column + 1) * width)
    _give_back(memory, 8 * columns * rows, len(memory))
    return flat[: columns * rows].reshape(columns, rows)


def lengthened(room: Int64s, held: int, rows: int) -> Int64s:
    """`room_for` so many rows with the first `held` rows of `room`, which goes back to the system column by
    column as they are copied. Nobody else may hold it.
    """
    columns, width = room.shape
    larger, memory = room_for(columns, rows), _memory_of(room)
    for column in range(columns):
        larger[column, :held] = room[column, :held]
        if memory is not None:
            _give_back(memory, 8 * column * width, 8 * (column + 1) * width)
    return larger


def _memory_of(array: Int64s) -> mmap.mmap | None:
    """The mapped memory in which an array lies, if there is one."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) else None


def give_back(part: Int64s) -> None:
    """Let the system have the memory of a part of what `mapped_bytes` gave, as far as it is whole pages: what
    stands there is undefined then.
    """
    if (memory := _memory_of(part)) is not None and part.flags.c_contiguous:
        start = part.ctypes.data - int(np.frombuffer(memory, np.uint8).ctypes.data)
        _give_back(memory, start, start + part.nbytes)


def _give_back(memory: mmap.mmap, start: int, stop: int) -> None:
    """Whole pages from byte `start` to `stop`."""
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    length = min(stop, len(memory)) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0 and _DONTNEED is not None:
        memory.madvise(_DONTNEED, first, length)
