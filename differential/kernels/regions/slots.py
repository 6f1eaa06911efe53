"""Rows that wait in a slot, and tables that are known by their address."""

from __future__ import annotations

import numpy as np

from differential.kernels.regions.layout import FAR, S_AT, S_COLUMNS, S_LEAST, S_ROOM, S_ROWS
from differential.kernels.rows.memory import table_at
from progress.kernel import Int64s, kernel


@kernel
def rows_of(slots: Int64s, slot: int) -> Int64s:
    """A copy of all rows of a slot."""
    columns, rows, room = slots[slot, S_COLUMNS], slots[slot, S_ROWS], slots[slot, S_ROOM]
    source = table_at(slots[slot, S_AT], columns, room)
    out = np.empty((columns, rows), np.int64)
    for column in range(columns):
        for row in range(rows):
            out[column, row] = source[column, row]
    return out


@kernel
def rows_at(slots: Int64s, slot: int, column: int, time: int) -> Int64s:
    """A copy of the rows of a slot whose word in `column` is `time`."""
    columns, rows, room = slots[slot, S_COLUMNS], slots[slot, S_ROWS], slots[slot, S_ROOM]
    source = table_at(slots[slot, S_AT], columns, room)
    count = np.int64(0)
    for row in range(rows):
        count += source[column, row] == time
    out = np.empty((columns, count), np.int64)
    at = np.int64(0)
    for row in range(rows):
        if source[column, row] == time:
            for each in range(columns):
                out[each, at] = source[each, row]
            at += 1
    return out


@kernel
def drop_rows_at(slots: Int64s, slot: int, column: int, time: int) -> None:
    """Take out the rows whose word in `column` is `time`; the others keep their order."""
    columns, rows, room = slots[slot, S_COLUMNS], slots[slot, S_ROWS], slots[slot, S_ROOM]
    table = table_at(slots[slot, S_AT], columns, room)
    kept = np.int64(0)
    least = np.int64(FAR)
    for row in range(rows):
        word = table[column, row]
        if word == time:
            continue
        least = min(least, word)
        if kept < row:
            for each in range(columns):
                table[each, kept] = table[each, row]
        kept += 1
    slots[slot, S_ROWS] = kept
    slots[slot, S_LEAST] = least
