"""Room for many rows: mapped (`timely/mapped.py`), so that what is behind the rows can go back to the system.

mapped_bytes  for what stays
room_for      for rows on their way
shortened     with as many rows as it has come to hold
lengthened    for more of them
give_back     a part that nobody reads any more
"""

from __future__ import annotations

import numpy as np

from differential.thresholds import MAPPED_BYTES_MIN
from progress.compiled.arrays import Int64s
from timely.mapped import HUGE_PAGE_BYTES, give_back_pages, mapped, mapping_of

__all__ = ["give_back", "lengthened", "mapped_bytes", "room_for", "shortened"]


def mapped_bytes(size: int) -> Int64s:
    """Memory for `size` bytes that are there to stay, contents undefined."""
    if size < MAPPED_BYTES_MIN:
        return np.empty((size + 7) // 8, np.int64)
    return mapped(size, stays=True)


def room_for(columns: int, rows: int) -> Int64s:
    """int64[columns, rows], contents undefined.

    Not by a kernel, which would have small pages: to touch fresh ones costs as much as sorting. So what is
    half of two huge ones takes as much.
    """
    count = columns * rows
    size = 8 * count
    if size < MAPPED_BYTES_MIN:
        return np.empty((columns, rows), np.int64)
    if HUGE_PAGE_BYTES <= size < 2 * HUGE_PAGE_BYTES:
        size = 2 * HUGE_PAGE_BYTES
    return mapped(size, stays=False)[:count].reshape(columns, rows)


def shortened(room: Int64s, rows: int) -> Int64s:
    """The first `rows` rows of `room_for`, C-contiguous, as far as possible in the same memory, of which what
    is behind them goes back to the system. Nobody else may hold `room`.
    """
    columns, width = room.shape
    memory = mapping_of(room)
    if rows == width:
        return room
    if memory is None:
        return room[:, :rows].copy()
    flat = room.reshape(-1)
    for column in range(1, columns):
        flat[column * rows : (column + 1) * rows] = flat[column * width : column * width + rows]
        # Up to where the next column begins: what was moved lies before.
        start = max(8 * (column + 1) * rows, 8 * column * width)
        give_back_pages(memory, start, 8 * (column + 1) * width)
    give_back_pages(memory, 8 * columns * rows, len(memory))
    return flat[: columns * rows].reshape(columns, rows)


def lengthened(room: Int64s, held: int, rows: int) -> Int64s:
    """`room_for` so many rows with the first `held` rows of `room`, which goes back to the system column by
    column as they are copied. Nobody else may hold it.
    """
    columns, width = room.shape
    larger, memory = room_for(columns, rows), mapping_of(room)
    for column in range(columns):
        larger[column, :held] = room[column, :held]
        if memory is not None:
            give_back_pages(memory, 8 * column * width, 8 * (column + 1) * width)
    return larger


def give_back(part: Int64s) -> None:
    """Let the system have the memory of a part of what `mapped_bytes` gave, as far as it is whole pages: what
    stands there is undefined then.
    """
    if (memory := mapping_of(part)) is not None and part.flags.c_contiguous:
        start = part.ctypes.data - int(np.frombuffer(memory, np.uint8).ctypes.data)
        give_back_pages(memory, start, start + part.nbytes)
