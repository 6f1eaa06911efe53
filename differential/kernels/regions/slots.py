"""Rows that wait in a slot, and tables that are known by their address."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from differential.kernels.regions.layout import FAR, S_AT, S_COLUMNS, S_LEAST, S_ROOM, S_ROWS
from progress.kernel import Int64s, intrinsic, kernel


def _table_at(typing_context, address, lines, columns):  # type: ignore[no-untyped-def]
    """The words at `address` as int64[lines, columns]. Requires: who made them holds them during the call."""
    from numba import types
    from numba.np.arrayobj import make_array, populate_array

    kind = types.Array(types.int64, 2, "C")

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        start, lines, columns = arguments
        array = make_array(kind)(context, builder)
        eight = context.get_constant(types.intp, 8)
        populate_array(
            array,
            data=builder.inttoptr(start, array.data.type),
            shape=[lines, columns],
            strides=[builder.mul(columns, eight), eight],
            itemsize=eight,
            meminfo=None,
        )
        return array._getvalue()

    return kind(types.int64, types.int64, types.int64), generate


table_at = cast("Callable[[int, int, int], Int64s]", intrinsic(_table_at))


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
