"""Records in memory that two processes share: how does a kernel read and write them?

As `timely/wire/transport/ring.py` does, which says what is where and why it is right. A line of a table says
how far a worker has read and written the rings of each other one. Nothing is believed of what is there: a
record is copied as a whole, then looked at, and taken only if it is what is expected; all else is left for
`ring.py`, which finds the same record, and says what is wrong with it.
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
"""Before the sizes of its frames: its bytes, its number, how many frames."""

NOTHING: Final = 0
ANOTHER: Final = -1
"""In place of the bytes of a record: none is there, or one that is left to others."""


@small_kernel
def padded(size: int) -> int:
    """Bytes that a frame takes in a record."""
    return (size + 7) & -8


@kernel
def next_record(lines: Int64s, line: int, records: Int64s) -> int:
    """Copy the record whose turn it is to records[line]: the bytes to be read with it, `NOTHING` or
    `ANOTHER`. It is not read by that: see `take_record`.
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
    """The record of so many bytes has been read: its memory is free."""
    lines[line, L_READ] += count
    lines[line, L_TAKEN] += 1
    store_release(lines[line, L_IN] + 8 * HEAD, lines[line, L_READ])


@small_kernel
def start_of(lines: Int64s, line: int, length: int) -> int:
    """Where a record of so many bytes would begin, as bytes that have been written; -1: there is no room."""
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
    """Write what a record begins with; returns the address of what comes behind: sizes, then frames."""
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
    """It is there, up to so many bytes."""
    lines[line, L_WRITTEN] = end
    lines[line, L_SENT] += 1
    store_release(lines[line, L_OUT] + 8 * TAIL, end)


@kernel
def any_sleeps(lines: Int64s) -> bool:
    """Whether any who reads what was written has to be woken for it."""
    fence()
    found = False
    for line in range(lines.shape[0]):
        if load_acquire(lines[line, L_OUT] + 8 * ASLEEP) != 0:
            lines[line, L_SLEEPS] = 1
            found = True
    return found
