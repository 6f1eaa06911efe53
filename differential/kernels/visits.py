"""The units to which each row of a batch goes.

A routing table (`timely/routing/table.py`) as columns: a *grid* per bucket or key, *lines* of grids. A line
is one share of a grid, with the units that keep it, or one copy, with the units that a row visits.

    bucket_grid   int64[2 · buckets]   the grid of each bucket, side 0 and then side 1
    keys          int64[k]             keys that are exceptions, ascending in each of the two sides
    keys_from     int64[3]             where each side begins in `keys`
    key_grid      int64[k]             the grid of each exception
    lines_from    int64[2 · g + 1]     where the shares of each grid begin, then where the copies of each do
    line_ends     int64[l]             the last row hash of a line
    units_from    int64[l + 1]         where the units of a line begin
    units         int64[u]             different ones in each line
    only_unit     int64[4 · buckets]   the unit of all rows of a bucket, or -1 if they have several:
                                       shares of side 0, its copies, shares of side 1, its copies
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.kernels.rows.hashing import hash_of_key, hashes_of
from progress.compiled.kernel import Int64s, kernel, small_kernel


class TableColumns(NamedTuple):
    """A routing table as columns; see the docstring of this file."""

    bucket_grid: Int64s
    keys: Int64s
    keys_from: Int64s
    key_grid: Int64s
    lines_from: Int64s
    line_ends: Int64s
    units_from: Int64s
    units: Int64s
    only_unit: Int64s


@small_kernel
def first_not_below(words: Int64s, start: int, stop: int, word: int) -> int:
    """Return the first index in [start, stop) where the ascending `words` are ≥ `word`; else `stop`."""
    while start < stop:
        middle = (start + stop) // 2
        if words[middle] < word:
            start = middle + 1
        else:
            stop = middle
    return start


@small_kernel
def grid_of(table: TableColumns, side: int, key_hash: int) -> int:
    """Return the grid of a key in the half of the table that is `side`'s."""
    start, stop = table.keys_from[side], table.keys_from[side + 1]
    at = first_not_below(table.keys, start, stop, key_hash)
    if at < stop and table.keys[at] == key_hash:
        return table.key_grid[at]
    buckets = table.bucket_grid.shape[0] // 2
    return table.bucket_grid[side * buckets + (key_hash & (buckets - 1))]


@small_kernel
def line_of(table: TableColumns, side: int, takes_copy: int, key_hash: int, row_hash: int) -> int:
    """Return the line that a row takes of its key's grid: a copy if `takes_copy` is 1, else a share."""
    grids = (table.lines_from.shape[0] - 1) // 2
    at = grid_of(table, side, key_hash) + takes_copy * grids
    return first_not_below(table.line_ends, table.lines_from[at], table.lines_from[at + 1], row_hash)


@kernel
def visits_of(
    key_hash: Int64s, row_hash: Int64s, side: Int64s, takes_copy: Int64s, table: TableColumns
) -> tuple[Int64s, Int64s]:
    """Return (row, unit): each row with all units of its line, rows in their order.

    `side` is the half of the table for a row's key, `takes_copy` is 1 if its line is a copy, 0 if it is a
    share. Requires: hashes ≥ 0. Cost: two passes, and for each row two searches in few words.
    """
    rows = key_hash.shape[0]
    line = np.empty(rows, np.int64)
    total = 0
    for row in range(rows):
        line[row] = line_of(table, side[row], takes_copy[row], key_hash[row], row_hash[row])
        total += table.units_from[line[row] + 1] - table.units_from[line[row]]
    out_row = np.empty(total, np.int64)
    out_unit = np.empty(total, np.int64)
    out_at = 0
    for row in range(rows):
        for at in range(table.units_from[line[row]], table.units_from[line[row] + 1]):
            out_row[out_at] = row
            out_unit[out_at] = table.units[at]
            out_at += 1
    return out_row, out_unit


@kernel
def placed_rows(
    words: Int64s, keys: Int64s, side: int, takes_copy: int, as_spots: int, table: TableColumns
) -> Int64s:
    """Return `words` with each row once for each unit of its line, and a word in front of it.

    The word is the unit, or, if `as_spots` is 1, its *spot*: bucket · buckets + unit.

    words   int64[w + 2, n], time and difference last; `keys` are the words of the key, all w are the row
    out     int64[w + 3, m], rows in their order, and a row's units in that of the line
    Cost: a hash of the key and a copy; another hash, of the row, only where its bucket has several units.
    """
    columns, rows = words.shape
    buckets = table.bucket_grid.shape[0] // 2
    first = (2 * side + takes_copy) * buckets
    key_hash = hashes_of(words, keys)
    unit_or_line = np.empty(rows, np.int64)  # the only unit, or -1 - the number of a line
    extra = np.int64(0)
    for row in range(rows):
        bucket = key_hash[row] & (buckets - 1)
        unit = table.only_unit[first + bucket]
        if unit < 0:
            line = line_of(table, side, takes_copy, key_hash[row], hash_of_key(words, row, columns - 2))
            extra += table.units_from[line + 1] - table.units_from[line] - 1
            unit = -1 - line
        unit_or_line[row] = unit
        key_hash[row] = bucket * buckets * as_spots  # no hash any more, but the base to which units are added
    out = np.empty((columns + 1, rows + extra), np.int64)
    if rows > 0 and unit_or_line.min() >= 0:
        out[0] = unit_or_line + key_hash
        out[1:] = words
        return out
    at_out = np.int64(0)
    for row in range(rows):
        line = -1 - unit_or_line[row]
        start, stop = np.int64(0), np.int64(1)
        if line >= 0:
            start, stop = table.units_from[line], table.units_from[line + 1]
        for at in range(start, stop):
            out[0, at_out] = key_hash[row] + (table.units[at] if line >= 0 else unit_or_line[row])
            for column in range(columns):
                out[column + 1, at_out] = words[column, row]
            at_out += 1
    return out
