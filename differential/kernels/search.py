"""Finding a key's rows in the runs of a trace.

Keys are looked up in ascending order, so each search gallops on from where the last one ended: doubling steps,
then halving. Cost: O(log distance), and neighbours are in cache.
"""

from __future__ import annotations

from differential.kernels.memory import ROWS, read
from progress._compile import Int64s, kernel


@kernel
def key_order(table: Int64s, run: int, row: int, keys: Int64s, at: int, kw: int) -> int:
    """-1, 0 or 1: how the key of a run's row compares with column `at` of `keys`."""
    for column in range(kw):
        mine = read(table, run, column, row)
        wanted = keys[column, at]
        if mine != wanted:
            return -1 if mine < wanted else 1
    return 0


@kernel
def seek(table: Int64s, run: int, start: int, keys: Int64s, at: int, kw: int, past: int) -> int:
    """The first row from `start` on whose key is ≥ the wanted one (`past` 0), or > it (`past` 1).

    Requires: all rows before `start` are before that row.
    """
    rows = table[run, ROWS]
    if start >= rows or key_order(table, run, start, keys, at, kw) >= past:
        return start
    low = start  # known to be before the row
    step = 1
    while low + step < rows and key_order(table, run, low + step, keys, at, kw) < past:
        low += step
        step <<= 1
    high = min(low + step, rows)
    while high - low > 1:
        middle = (low + high) >> 1
        if key_order(table, run, middle, keys, at, kw) < past:
            low = middle
        else:
            high = middle
    return high


@kernel
def locate(table: Int64s, cursors: Int64s, keys: Int64s, at: int, kw: int) -> int:
    """Move the cursors on to the rows of a key; returns how many rows it has in all runs.

    cursors   int64[2, runs]: first row of the key and first row after it, of each run; begin with zeros
    Requires: keys come in ascending order; the same one may come again.
    """
    total = 0
    for run in range(table.shape[0]):
        first = cursors[0, run]
        if table[run, ROWS] > 0:
            if cursors[1, run] > first and key_order(table, run, first, keys, at, kw) == 0:
                total += cursors[1, run] - first  # the same key again
                continue
            first = seek(table, run, cursors[1, run], keys, at, kw, 0)
            cursors[0, run] = first
            cursors[1, run] = seek(table, run, first, keys, at, kw, 1)
            total += cursors[1, run] - first
    return total


@kernel
def same_key(words: Int64s, a: int, b: int, kw: int) -> bool:
    """Whether two rows of a table have the same key."""
    for column in range(kw):
        if words[column, a] != words[column, b]:
            return False
    return True


@kernel
def compare_keys(a: Int64s, i: int, b: Int64s, j: int, kw: int) -> int:
    """-1, 0 or 1: how the keys of two rows compare."""
    for column in range(kw):
        if a[column, i] != b[column, j]:
            return -1 if a[column, i] < b[column, j] else 1
    return 0
