"""Reading and writing records in memory that two processes share, in kernels.

It does the same as `timely/wire/transport/ring.py`, which describes the memory and proves it right. A line of
a table says how far a worker has read and written its rings with one other worker. The kernel trusts nothing
in the memory: it copies a record as a whole, then checks it, and takes it only if it is as expected;
everything else is left for `ring.py`, which reads the same record, and reports its fault.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.rows.memory import fence, load, load_acquire, store, store_release
from progress.compiled.kernel import Int64s, kernel, small_kernel
from timely.wire.transport.ring import (
    ASLEEP,
    DATA,
    HEAD,
    L_IN,
    L_IN_SIZE,
    L_KNOWN_READ,
    L_OUT,
    L_OUT_SIZE,
    L_READ,
    L_SENT,
    L_SLEEPS,
    L_TAKEN,
    L_WRITTEN,
    RECORD_PARTS,
    TAIL,
)

RECORD_WORDS: Final = 3
"""Words in front of the sizes of a record's frames: its bytes, its number, the number of frames."""

NOTHING: Final = 0
ANOTHER: Final = -1
"""Instead of the bytes of a record: there is none, or one that is left to `ring.py`."""


@small_kernel
def padded(size: int) -> int:
    """Return the bytes that a frame takes in a record."""
    return (size + 7) & -8


@kernel
def next_record(lines: Int64s, line: int, records: Int64s) -> int:
    """Copy the next record to records[line]; return the bytes to be read with it, `NOTHING` or `ANOTHER`.

    That does not mark it as read: see `take_record`.
    """
    words, size, read = lines[line, L_IN], lines[line, L_IN_SIZE], lines[line, L_READ]
    written = load_acquire(words + 8 * TAIL) - read
    if written == 0:
        return NOTHING
    if written < 0 or written > size:
        return ANOTHER
    at, skipped = read & (size - 1), np.int64(0)
    length = load(words, 8, 0, DATA + at // 8)
    if length < 0:
        if -length != size - at or written + length <= 0:
            return ANOTHER
        skipped = -length
        written -= skipped
        at = np.int64(0)
        length = load(words, 8, 0, DATA)
    if length < 8 * RECORD_WORDS or length > min(written, size - at) or length % 8 != 0:
        return ANOTHER
    if length > 8 * records.shape[1]:
        return ANOTHER
    for word in range(length // 8):
        records[line, word] = load(words, 8, 0, DATA + at // 8 + word)
    if records[line, 0] != length or records[line, 1] != lines[line, L_TAKEN]:
        return ANOTHER
    return skipped + length


@small_kernel
def take_record(lines: Int64s, line: int, count: int) -> None:
    """Mark a record of `count` bytes as read: its memory is free."""
    lines[line, L_READ] += count
    lines[line, L_TAKEN] += 1
    store_release(lines[line, L_IN] + 8 * HEAD, lines[line, L_READ])


@small_kernel
def start_of(lines: Int64s, line: int, length: int) -> int:
    """Return where a record of `length` bytes would begin, in bytes written so far; -1: there is no room."""
    size, written = lines[line, L_OUT_SIZE], lines[line, L_WRITTEN]
    if length > size // RECORD_PARTS:
        return -1
    at = written & (size - 1)
    start = written + size - at if at + length > size else written
    if start + length - lines[line, L_KNOWN_READ] > size:
        lines[line, L_KNOWN_READ] = load_acquire(lines[line, L_OUT] + 8 * HEAD)
        if start + length - lines[line, L_KNOWN_READ] > size:
            return -1
    return start


@small_kernel
def begin_record(lines: Int64s, line: int, start: int, length: int, frames: int) -> int:
    """Write the beginning of a record; return the address behind it, where sizes, then frames follow."""
    words, size, written = lines[line, L_OUT], lines[line, L_OUT_SIZE], lines[line, L_WRITTEN]
    if start != written:
        store(words, 8, DATA + (written & (size - 1)) // 8, written - start)
    address = words + 8 * DATA + (start & (size - 1))
    store(address, 8, 0, length)
    store(address, 8, 1, lines[line, L_SENT])
    store(address, 8, 2, frames)
    return address + 8 * RECORD_WORDS


@small_kernel
def end_record(lines: Int64s, line: int, end: int) -> None:
    """Publish a record that ends at `end`, in bytes written so far."""
    lines[line, L_WRITTEN] = end
    lines[line, L_SENT] += 1
    store_release(lines[line, L_OUT] + 8 * TAIL, end)


@kernel
def any_sleeps(lines: Int64s) -> bool:
    """Return True if a reader of the written records has to be woken, and mark its line."""
    fence()
    must_wake = False
    for line in range(lines.shape[0]):
        if load_acquire(lines[line, L_OUT] + 8 * ASLEEP) != 0:
            lines[line, L_SLEEPS] = 1
            must_wake = True
    return must_wake
