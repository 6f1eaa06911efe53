"""Columns of words to and from the packed memory of a run, and the ranges that determine its widths."""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.rows.memory import HEADER, ROWS, load, store
from progress.compiled.kernel import CHECK_BOUNDS, Int64s, kernel
from progress.times.word_order import word_lub

COPIED_ROWS: Final = 2048
"""Number of values that are words at a time on their way between runs: they stay near the processor."""


@kernel
def encode_column(words: Int64s, column: int, rows: int, table: Int64s, run: int, at: int) -> None:
    """Write the first `rows` values of a column into a run, from row `at` on. Requires: they fit."""
    entry = HEADER + 3 * column
    address, width, base = table[run, entry], table[run, entry + 1], table[run, entry + 2]
    for row in range(rows):
        store(address, width, at + row, words[column, row] - base)


@kernel
def decode_column(
    table: Int64s, run: int, column: int, start: int, rows: int, words: Int64s, to: int
) -> None:
    """Read the rows [start, start + rows) of a run's column to the front of column `to` of `words`."""
    if CHECK_BOUNDS:
        if start < 0 or start + rows > table[run, ROWS]:
            raise IndexError("rows outside their run")
    entry = HEADER + 3 * column
    address, width, base = table[run, entry], table[run, entry + 1], table[run, entry + 2]
    for row in range(rows):
        words[to, row] = load(address, width, base, start + row)


@kernel
def column_bounds(table: Int64s, run: int, column: int, start: int, rows: int, bounds: Int64s) -> None:
    """Widen `bounds`, int64[2], to hold the values of a run's column in the rows [start, start + rows)."""
    if CHECK_BOUNDS:
        if start < 0 or start + rows > table[run, ROWS]:
            raise IndexError("rows outside their run")
    entry = HEADER + 3 * column
    address, width, base = table[run, entry], table[run, entry + 1], table[run, entry + 2]
    low, high = bounds[0], bounds[1]
    for row in range(rows):
        value = load(address, width, base, start + row)
        low = min(low, value)
        high = max(high, value)
    bounds[0] = low
    bounds[1] = high


@kernel
def copy_column(tables: Int64s, column: int, start: int, rows: int) -> None:
    """Write the rows [start, start + rows) of a column of run 0 to the same rows of run 1.

    Requires: they fit.
    """
    if CHECK_BOUNDS:
        if start < 0 or start + rows > min(tables[0, ROWS], tables[1, ROWS]):
            raise IndexError("rows outside their run")
    block = np.empty((column + 1, min(rows, COPIED_ROWS)), np.int64)
    done = np.int64(0)
    while done < rows:
        size = np.int64(min(rows - done, block.shape[1]))
        decode_column(tables, np.int64(0), column, start + done, size, block, column)
        encode_column(block, column, size, tables, np.int64(1), start + done)
        done += size


@kernel
def column_ranges(words: Int64s, ranges: Int64s, guards: int) -> int:
    """Write (smallest, largest) of each column into `ranges` int64[columns, 2]; return the times' lub."""
    columns, rows = words.shape
    for column in range(columns):
        low = words[column, 0]
        high = low
        for row in range(1, rows):
            low = min(low, words[column, row])
            high = max(high, words[column, row])
        ranges[column, 0] = low
        ranges[column, 1] = high
    lub = np.int64(0)
    last = np.int64(-1)
    for row in range(rows):
        time = words[columns - 2, row]
        if time != last:
            lub = word_lub(lub, time, guards)
            last = time
    return lub


@kernel
def encode_words(words: Int64s, table: Int64s, run: int) -> None:
    """Write a table of words into the memory that line `run` describes. Requires: every value fits."""
    for column in range(words.shape[0]):
        encode_column(words, column, words.shape[1], table, run, np.int64(0))


@kernel
def decode_words(table: Int64s, run: int, columns: int) -> Int64s:
    """Return all rows of a run as words."""
    out = np.empty((columns, table[run, ROWS]), np.int64)
    for column in range(columns):
        decode_column(table, run, column, np.int64(0), table[run, ROWS], out, column)
    return out
