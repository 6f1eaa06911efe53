"""Rows that wait in slots, whose tables are given by their addresses.

Rows are *due* if their epochs are closed and their counters are those in `state`.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compiled_loops.layout import (
    FAR,
    S_AT,
    S_COLUMNS,
    S_LEAST,
    S_NEXT,
    S_ROOM,
    S_ROWS,
    X_BOUND,
    X_COUNTERS,
    X_NOW,
)
from differential.kernels.rows.memory import table_at
from differential.kernels.rows.sort import sort_words
from progress.compiled.kernel import Int64s, kernel


@kernel
def rows_of(slots: Int64s, slot: int) -> Int64s:
    """Return a copy of all rows of a slot."""
    columns, rows, room = slots[slot, S_COLUMNS], slots[slot, S_ROWS], slots[slot, S_ROOM]
    source = table_at(slots[slot, S_AT], columns, room)
    out = np.empty((columns, rows), np.int64)
    for column in range(columns):
        for row in range(rows):
            out[column, row] = source[column, row]
    return out


@kernel
def next_of(slots: Int64s, slot: int, column: int, state: Int64s) -> int:
    """Return the least counters of the rows of closed epochs, whose times are in `column`; FAR if there is
    none.
    """
    source = table_at(slots[slot, S_AT], slots[slot, S_COLUMNS], slots[slot, S_ROOM])
    least = np.int64(FAR)
    for row in range(slots[slot, S_ROWS]):
        if source[column, row] < state[X_BOUND]:
            least = min(least, source[column, row] & state[X_COUNTERS])
    return least


@kernel
def least_in(times: Int64s, bound: int, counters: int) -> tuple[int, int]:
    """Return the least time, and the least `counters` of the times before the bound, FAR if there is none.

    It has no branch that depends on the times.
    """
    least, following = np.int64(FAR), np.int64(FAR)
    for row in range(times.shape[0]):
        time = times[row]
        least = min(least, time)
        following = min(following, time & counters if time < bound else np.int64(FAR))
    return least, following


@kernel
def rows_at(slots: Int64s, slot: int, column: int, state: Int64s) -> Int64s:
    """Return a copy of the due rows of a slot. Times are in `column`."""
    bound, mask, now = state[X_BOUND], state[X_COUNTERS], state[X_NOW]
    columns, rows, room = slots[slot, S_COLUMNS], slots[slot, S_ROWS], slots[slot, S_ROOM]
    source = table_at(slots[slot, S_AT], columns, room)
    count = np.int64(0)
    for row in range(rows):
        count += source[column, row] < bound and source[column, row] & mask == now
    out = np.empty((columns, count), np.int64)
    at = np.int64(0)
    for row in range(rows):
        if source[column, row] < bound and source[column, row] & mask == now:
            for each in range(columns):
                out[each, at] = source[each, row]
            at += 1
    return out


@kernel
def drop_rows_at(slots: Int64s, slot: int, column: int, state: Int64s) -> None:
    """Remove the due rows; the others keep their order."""
    bound, mask, now = state[X_BOUND], state[X_COUNTERS], state[X_NOW]
    columns, rows, room = slots[slot, S_COLUMNS], slots[slot, S_ROWS], slots[slot, S_ROOM]
    table = table_at(slots[slot, S_AT], columns, room)
    remaining = np.int64(0)
    least, following = np.int64(FAR), np.int64(FAR)
    for row in range(rows):
        word = table[column, row]
        if word < bound:
            if word & mask == now:
                continue
            following = min(following, word & mask)
        least = min(least, word)
        if remaining < row:
            for each in range(columns):
                table[each, remaining] = table[each, row]
        remaining += 1
    slots[slot, S_ROWS] = remaining
    slots[slot, S_LEAST] = least
    slots[slot, S_NEXT] = following


@kernel
def moved_in_order(array: Int64s, rows: int, keep: int, add: int) -> tuple[Int64s, int]:
    """Return the first rows of an array with every time `t` at `(t & keep) + add`, sorted and summed up.

    Also return the least of these times, FAR if no row is left. Raises OverflowError if a multiplicity leaves
    64 bits.
    """
    columns = array.shape[0]
    words = np.empty((columns, rows), np.int64)
    for column in range(columns):
        for row in range(rows):
            words[column, row] = array[column, row]
    for row in range(rows):
        words[columns - 2, row] = (words[columns - 2, row] & keep) + add
    sorted_rows = sort_words(words)
    least = np.int64(FAR)
    for row in range(sorted_rows.shape[1]):
        least = min(least, sorted_rows[columns - 2, row])
    return sorted_rows, least


@kernel
def put_rows(slots: Int64s, slot: int, words: Int64s, time: int, bound: int, counters: int) -> bool:
    """Append rows, whose times are in column `time`, to those of a slot if there is room; return True if
    there was.
    """
    columns, rows = words.shape
    held = slots[slot, S_ROWS]
    if held + rows > slots[slot, S_ROOM]:
        return False
    target = table_at(slots[slot, S_AT], columns, slots[slot, S_ROOM])
    for column in range(columns):
        for row in range(rows):
            target[column, held + row] = words[column, row]
    slots[slot, S_ROWS] = held + rows
    least, following = least_in(words[time], bound, counters)
    slots[slot, S_LEAST] = min(slots[slot, S_LEAST], least)
    slots[slot, S_NEXT] = min(slots[slot, S_NEXT], following)
    return True


@kernel
def least_of(slots: Int64s) -> int:
    """Return the least time of all rows in slots, FAR if there are none."""
    least = np.int64(FAR)
    for slot in range(slots.shape[0]):
        least = min(least, slots[slot, S_LEAST])
    return least
