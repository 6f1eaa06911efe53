"""To which units does each row of a batch go?

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from progress.kernel import Int64s, kernel


class TableColumns(NamedTuple):
    """What the docstring of this file says."""

    bucket_grid: Int64s
    keys: Int64s
    keys_from: Int64s
    key_grid: Int64s
    lines_from: Int64s
    line_ends: Int64s
    units_from: Int64s
    units: Int64s


@kernel
def first_not_below(words: Int64s, start: int, stop: int, word: int) -> int:
    """The first index in [start, stop) where the ascending `words` are ≥ `word`; else `stop`."""
    while start < stop:
        middle = (start + stop) // 2
        if words[middle] < word:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def grid_of(table: TableColumns, side: int, key_hash: int) -> int:
    """The grid of a key in the half of the table that is `side`'s."""
    start, stop = table.keys_from[side], table.keys_from[side + 1]
    at = first_not_below(table.keys, start, stop, key_hash)
    if at < stop and table.keys[at] == key_hash:
        return table.key_grid[at]
    buckets = table.bucket_grid.shape[0] // 2
    return table.bucket_grid[side * buckets + (key_hash & (buckets - 1))]


@kernel
def visits_of(
    key_hash: Int64s, row_hash: Int64s, side: Int64s, takes_copy: Int64s, table: TableColumns
) -> tuple[Int64s, Int64s]:
    """(row, unit): each row with all units of its line, rows in their order.

    `side` says in which half of the table to look for a row's key, `takes_copy` whether its line is a copy
    (1) or a share (0). Requires: hashes ≥ 0. Cost: two passes, and for each row two searches in few words.
    """
    rows = key_hash.shape[0]
    grids = (table.lines_from.shape[0] - 1) // 2
    line = np.empty(rows, np.int64)
    total = 0
    for row in range(rows):
        at = grid_of(table, side[row], key_hash[row]) + takes_copy[row] * grids
        line[row] = first_not_below(
            table.line_ends, table.lines_from[at], table.lines_from[at + 1], row_hash[row]
        )
        total += table.units_from[line[row] + 1] - table.units_from[line[row]]
    out_row = np.empty(total, np.int64)
    out_unit = np.empty(total, np.int64)
    place = 0
    for row in range(rows):
        for at in range(table.units_from[line[row]], table.units_from[line[row] + 1]):
            out_row[place] = row
            out_unit[place] = table.units[at]
            place += 1
    return out_row, out_unit
