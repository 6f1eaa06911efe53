"""Memory for many rows: mapped (`timely/mapped.py`), so that parts of it can go back to the system.

mapped_bytes  memory for rows that stay
room_for      memory for rows on their way
shortened     the same memory, cut to the rows that it contains
lengthened    memory for more rows
is_in_file    return True if memory lies in a file
give_back     return a part that nobody reads any more
"""

from __future__ import annotations

import numpy as np

from differential.thresholds import MAPPED_BYTES_MIN
from progress.compiled.arrays import Int64s
from timely.mapped import HUGE_PAGE_BYTES, address_of, give_back_pages, mapped, mapping_of
from timely.spilling.file_memory import FileMemory

__all__ = ["give_back", "is_in_file", "lengthened", "mapped_bytes", "room_for", "shortened"]


def mapped_bytes(size: int) -> Int64s:
    """Return memory for `size` bytes that stay, contents undefined."""
    if size < MAPPED_BYTES_MIN:
        return np.empty((size + 7) // 8, np.int64)
    return mapped(size, stays=True)


def room_for(columns: int, rows: int) -> Int64s:
    """Return int64[columns, rows], contents undefined.

    A kernel should not allocate it: it would get small pages, and to touch fresh ones costs as much as
    sorting. So memory of one to two huge pages is enlarged to two.
    """
    count = columns * rows
    size = 8 * count
    if size < MAPPED_BYTES_MIN:
        return np.empty((columns, rows), np.int64)
    if HUGE_PAGE_BYTES <= size < 2 * HUGE_PAGE_BYTES:
        size = 2 * HUGE_PAGE_BYTES
    return mapped(size, stays=False)[:count].reshape(columns, rows)


def shortened(room: Int64s, rows: int) -> Int64s:
    """Return the first `rows` rows of `room_for`, C-contiguous, as far as possible in the same memory.

    The memory behind them goes back to the system. Nobody else may hold `room`.
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
        # Up to where the next column begins: the moved values lie before it.
        start = max(8 * (column + 1) * rows, 8 * column * width)
        give_back_pages(memory, start, 8 * (column + 1) * width)
    give_back_pages(memory, 8 * columns * rows, len(memory))
    return flat[: columns * rows].reshape(columns, rows)


def lengthened(room: Int64s, held: int, rows: int) -> Int64s:
    """Return `room_for` `rows` rows with the first `held` rows of `room`.

    The old memory goes back to the system column by column as it is copied. Nobody else may hold it.
    """
    columns, width = room.shape
    larger, memory = room_for(columns, rows), mapping_of(room)
    for column in range(columns):
        larger[column, :held] = room[column, :held]
        if memory is not None:
            give_back_pages(memory, 8 * column * width, 8 * (column + 1) * width)
    return larger


def is_in_file(array: Int64s) -> bool:
    """Return True if the memory of an array lies in a file (`timely/spilling/`)."""
    return isinstance(mapping_of(array), FileMemory)


def give_back(part: Int64s) -> None:
    """Return a part of memory of `mapped_bytes` to the system, as far as it is whole pages.

    Its contents are undefined afterwards.
    """
    if (memory := mapping_of(part)) is not None and part.flags.c_contiguous:
        start = part.ctypes.data - address_of(memory)
        give_back_pages(memory, start, start + part.nbytes)
