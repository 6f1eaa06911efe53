"""Columns of words to and from the packed memory of a run, and what is needed to choose its widths."""

from __future__ import annotations

import numpy as np

from differential.kernels.rows.memory import HEADER, ROWS, load, store
from progress.kernel import CHECK_BOUNDS, Int64s, kernel
from progress.times.word_order import word_lub


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
def column_ranges(words: Int64s, ranges: Int64s, guards: int) -> int:
    """Write (smallest, largest) of each column into `ranges` int64[columns, 2]; returns the times' lub."""
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
    """All rows of a run as words."""
    out = np.empty((columns, table[run, ROWS]), np.int64)
    for column in range(columns):
        decode_column(table, run, column, np.int64(0), table[run, ROWS], out, column)
    return out
