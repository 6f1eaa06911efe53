"""Round messages as records, with the same content as in `differential/compiled_loops/round_messages.py`.

A record with a message for kernels has three frames: the header of a data message, which is the same for all
of a call except for its time word; the header of a round message; rows. A record with symbols has a fourth
frame, and is left to Python; so is one with packed rows, whose header has the number of their columns as a
negative number.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.compiled_loops.edges import note_rows
from differential.kernels.compiled_loops.layout import (
    FAR,
    K_BARRIER,
    NO_ROOM,
    P_KIND,
    S_AT,
    S_COLUMNS,
    S_COMPONENTS,
    S_LEAST,
    S_NEXT,
    S_ROOM,
    S_ROWS,
    X_ROWS,
    X_SLOT,
)
from differential.kernels.compiled_loops.rings import RECORD_WORDS, begin_record, end_record, padded, start_of
from differential.kernels.compiled_loops.round_layout import (
    HEARS_ELSEWHERE,
    O_LINE,
    O_SLOT,
    O_TARGET,
    R_ENDED,
    R_VOTE,
    R_WORD,
    V_BARRIER,
    V_BOUND,
    V_ENDED,
    V_IS_EMPTY,
    V_NUMBER,
    V_PARTS,
    V_PASSES,
    V_WORKER,
)
from differential.kernels.rows.memory import load, store, table_at
from differential.kernels.sums.components import are_components
from progress.compiled.kernel import Int64s, kernel, small_kernel

FRAMES: Final = 3
HEADER_BYTES: Final = 30
"""Of a data message: magic, version, kind and dataflow in the first 8, connector, time word, batch kind,
anchor.
"""
_CONNECTOR: Final = 8
_WORD: Final = 12
_KIND: Final = 20
_ANCHOR: Final = 22
_SIZES: Final = 8 * RECORD_WORDS
_HEADER: Final = _SIZES + 8 * FRAMES
_MESSAGE: Final = _HEADER + 32
"""Start of the header of a round message, in bytes of its record."""

VOTE_BYTES: Final = 58
"""Size of a vote in that header, before the parts: 7 words, two flags."""
_PASSES: Final = 56
_IS_EMPTY: Final = 57
PART_BYTES: Final = 24
"""Size of a part: slot, columns and rows."""
_SAFE_ROWS: Final = 1 << 20
"""A part with more rows is refused before its size is computed, which fits a word up to here. No ring holds
so many."""


@small_kernel
def is_message(record: int, header: Int64s) -> bool:
    """Return True if the data message at an address has a header like `header`, at whichever time."""
    start = np.int64(header.ctypes.data)
    return (
        load(record, 8, 0, 2) == FRAMES
        and load(record + _SIZES, 8, 0, 0) == HEADER_BYTES
        and load(record + _HEADER, 8, 0, 0) == load(start, 8, 0, 0)
        and load(record + _HEADER + _CONNECTOR, 4, 0, 0) == load(start + _CONNECTOR, 4, 0, 0)
        and load(record + _HEADER + _WORD, 8, 0, 0) >= 0
        and load(record + _HEADER + _KIND, 2, 0, 0) == load(start + _KIND, 2, 0, 0)
        and load(record + _HEADER + _ANCHOR, 8, 0, 0) == load(start + _ANCHOR, 8, 0, 0)
    )


@kernel
def read_vote(record: int, length: int, vote: Int64s) -> bool:
    """Read the vote in a record of `length` bytes, in the order of `R_VOTE`; return False if malformed."""
    size, rows = load(record + _SIZES, 8, 0, 1), load(record + _SIZES, 8, 0, 2)
    if size < VOTE_BYTES or rows < 0 or size > length or rows > length:
        return False
    if _MESSAGE + padded(size) + padded(rows) != length:
        return False
    for word in range(7):
        vote[word] = load(record + _MESSAGE, 8, 0, word)
    vote[V_PASSES] = load(record + _MESSAGE + _PASSES, 1, 0, 0) != 0
    vote[V_IS_EMPTY] = load(record + _MESSAGE + _IS_EMPTY, 1, 0, 0) != 0
    parts = vote[V_PARTS]
    if parts < 0 or parts > size or VOTE_BYTES + PART_BYTES * parts > size:
        return False
    vote[V_ENDED] = size - VOTE_BYTES - PART_BYTES * parts
    return True


@kernel
def is_next(vote: Int64s, round_state: Int64s, peer: int, steps: Int64s) -> bool:
    """Return True if a vote answers this worker's last one, with its bound, and names a barrier or none."""
    barrier = vote[V_BARRIER]
    return (
        vote[V_WORKER] == peer
        and vote[V_NUMBER] == round_state[R_VOTE + V_NUMBER]
        and vote[V_BOUND] == round_state[R_VOTE + V_BOUND]
        and (barrier < 0 or (barrier < steps.shape[0] and steps[barrier, P_KIND] >= K_BARRIER))
    )


@small_kernel
def part_word(record: int, part: int, word: int) -> int:
    """Return the slot, the columns or the rows of a part."""
    return load(record + _MESSAGE + VOTE_BYTES + PART_BYTES * part, 8, 0, word)


@kernel
def have_room(record: int, vote: Int64s, outs: Int64s, slots: Int64s, coming: Int64s, state: Int64s) -> int:
    """Return 0 if the rows of a message fit their slots, or a reason.

    `coming` has the rows, by slot, of messages that are to be taken together; the rows are added to it.
    """
    size = np.int64(0)
    for part in range(vote[V_PARTS]):
        slot, columns = part_word(record, part, np.int64(0)), part_word(record, part, np.int64(1))
        rows = part_word(record, part, np.int64(2))
        is_target = False
        for out in range(outs.shape[0]):
            is_target = is_target or outs[out, O_TARGET] == slot
        if not is_target or columns != slots[slot, S_COLUMNS] or rows < 1 or rows > _SAFE_ROWS:
            return HEARS_ELSEWHERE
        size += 8 * columns * rows
        coming[slot] += rows
        if slots[slot, S_ROWS] + coming[slot] > slots[slot, S_ROOM]:
            state[X_SLOT] = slot
            state[X_ROWS] = slots[slot, S_ROWS] + coming[slot]
            return NO_ROOM
    if size != load(record + _SIZES, 8, 0, 2) or not are_of_components(record, vote, slots):
        return HEARS_ELSEWHERE
    return 0


@kernel
def are_of_components(record: int, vote: Int64s, slots: Int64s) -> bool:
    """Return True if the rows' component indices are valid. Requires: all else that `have_room` checks."""
    rows_at = record + _MESSAGE + padded(load(record + _SIZES, 8, 0, 1))
    for part in range(vote[V_PARTS]):
        slot, rows = part_word(record, part, np.int64(0)), part_word(record, part, np.int64(2))
        columns, components = slots[slot, S_COLUMNS], slots[slot, S_COMPONENTS]
        if components != 0:
            if not are_components(table_at(rows_at, columns, rows), columns - 3, components):
                return False
        rows_at += 8 * columns * rows
    return True


@kernel
def hear(record: int, vote: Int64s, slots: Int64s, state: Int64s) -> None:
    """Put the rows of a message into their slots. Requires: `have_room`."""
    rows_at = record + _MESSAGE + padded(load(record + _SIZES, 8, 0, 1))
    for part in range(vote[V_PARTS]):
        slot, rows = part_word(record, part, np.int64(0)), part_word(record, part, np.int64(2))
        columns, start = slots[slot, S_COLUMNS], slots[slot, S_ROWS]
        target = table_at(slots[slot, S_AT], columns, slots[slot, S_ROOM])
        source = table_at(rows_at, columns, rows)
        for column in range(columns):
            for row in range(rows):
                target[column, start + row] = source[column, row]
        note_rows(slots, slot, target, start, start + rows, state)
        rows_at += 8 * columns * rows


@kernel
def ended_alike(record: int, vote: Int64s, round_state: Int64s, ended: Int64s) -> bool:
    """Return True if a vote, like this worker's last one, has no waiting rows and the same ended ports."""
    count = round_state[R_VOTE + V_ENDED]
    if vote[V_IS_EMPTY] == 0 or round_state[R_VOTE + V_IS_EMPTY] == 0 or vote[V_ENDED] != count:
        return False
    behind = record + _MESSAGE + VOTE_BYTES + PART_BYTES * vote[V_PARTS]
    for port in range(count):
        if load(behind, 1, 0, port) != ended[0, port]:
            return False
    return True


@kernel
def sizes_for(line: int, round_state: Int64s, outs: Int64s, slots: Int64s, sizes: Int64s) -> int:
    """Write the numbers of parts, of header bytes and of row bytes for another worker to `sizes`.

    Return the bytes of the record with all of it.
    """
    parts, rows = np.int64(0), np.int64(0)
    for out in range(outs.shape[0]):
        slot = outs[out, O_SLOT]
        if outs[out, O_LINE] == line and slots[slot, S_ROWS] > 0:
            parts += 1
            rows += 8 * slots[slot, S_COLUMNS] * slots[slot, S_ROWS]
    size = VOTE_BYTES + PART_BYTES * parts
    if round_state[R_VOTE + V_IS_EMPTY] != 0:
        size += round_state[R_ENDED]
    sizes[line, 0], sizes[line, 1], sizes[line, 2] = parts, size, rows
    return _MESSAGE + padded(size) + rows


@kernel
def write_message(
    line: int,
    lines: Int64s,
    round_state: Int64s,
    header: Int64s,
    ended: Int64s,
    outs: Int64s,
    slots: Int64s,
    sizes: Int64s,
) -> None:
    """Write the vote in `R_VOTE` to another worker, with all rows for it.

    Requires: `sizes_for`, and that there is room.
    """
    parts, size, rows = sizes[line, 0], sizes[line, 1], sizes[line, 2]
    length = _MESSAGE + padded(size) + rows
    start = start_of(lines, line, length)
    record = begin_record(lines, line, start, length, np.int64(FRAMES)) - _SIZES
    store(record + _SIZES, 8, 0, HEADER_BYTES)
    store(record + _SIZES, 8, 1, size)
    store(record + _SIZES, 8, 2, rows)
    for word in range(4):
        store(record + _HEADER, 8, word, header[0, word])
    store(record + _HEADER + _WORD, 8, 0, round_state[R_WORD] if rows > 0 else 0)
    at = record + _MESSAGE
    for word in range(7):
        store(at, 8, word, round_state[R_VOTE + word])
    store(at, 8, V_PARTS, parts)
    store(at + _PASSES, 1, 0, round_state[R_VOTE + V_PASSES])
    store(at + _IS_EMPTY, 1, 0, round_state[R_VOTE + V_IS_EMPTY])
    shapes, words = at + VOTE_BYTES, at + padded(size)
    for out in range(outs.shape[0]):
        slot = outs[out, O_SLOT]
        if outs[out, O_LINE] != line or slots[slot, S_ROWS] == 0:
            continue
        columns, count = slots[slot, S_COLUMNS], slots[slot, S_ROWS]
        store(shapes, 8, 0, outs[out, O_TARGET])
        store(shapes, 8, 1, columns)
        store(shapes, 8, 2, count)
        shapes += PART_BYTES
        source = table_at(slots[slot, S_AT], columns, slots[slot, S_ROOM])
        for column in range(columns):
            for row in range(count):
                store(words, 8, column * count + row, source[column, row])
        words += 8 * columns * count
        slots[slot, S_ROWS] = 0
        slots[slot, S_LEAST] = slots[slot, S_NEXT] = FAR
    for port in range(size - VOTE_BYTES - PART_BYTES * parts):
        store(shapes, 1, port, ended[0, port])
    end_record(lines, line, start + length)
