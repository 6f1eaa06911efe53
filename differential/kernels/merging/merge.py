"""Merging sorted rows: two tables, or some new rows into a trace's small head.

Merging two large runs piece by piece is in `merge_runs.py`.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.overflow import checked_add
from differential.kernels.rows.memory import LUB, ROWS, SIDE, copy_words, describe_column
from progress.compiled.kernel import CHECK_BOUNDS, Int64s, kernel, small_kernel
from progress.times.word_order import word_lub


@kernel
def compare_rows(a: Int64s, i: int, b: Int64s, j: int, columns: int) -> int:
    """Return -1, 0 or 1: how row `i` of `a` and row `j` of `b` compare in their first `columns` columns."""
    for column in range(columns):
        left = a[column, i]
        right = b[column, j]
        if left != right:
            return -1 if left < right else 1
    return 0


@kernel
def merge(a: Int64s, b: Int64s) -> Int64s:
    """Return the rows of two sorted consolidated tables as one. Cost: one pass, one array.

    Raises OverflowError if a multiplicity leaves 64 bits.
    """
    columns, rows_a = a.shape
    rows_b = b.shape[1]
    out = np.empty((columns, rows_a + rows_b), np.int64)
    i = np.int64(0)
    j = np.int64(0)
    size = np.int64(0)
    while i < rows_a or j < rows_b:
        order = -1 if j == rows_b else 1 if i == rows_a else compare_rows(a, i, b, j, columns - 1)
        total = checked_add(a[columns - 1, i], b[columns - 1, j]) if order == 0 else np.int64(0)
        if order == 0 and total == 0:
            i += 1
            j += 1
            continue
        for column in range(columns):
            out[column, size] = a[column, i] if order <= 0 else b[column, j]
        if order == 0:
            out[columns - 1, size] = total
        size += 1
        i += order <= 0
        j += order >= 0
    return first_rows(out, size)


@kernel
def first_rows(words: Int64s, rows: int) -> Int64s:
    """Return the first `rows` rows: the array itself if that is all of it, else a copy."""
    if rows == words.shape[1]:
        return words
    out = np.empty((words.shape[0], rows), np.int64)
    for column in range(words.shape[0]):
        for row in range(rows):
            out[column, row] = words[column, row]
    return out


@kernel
def copy_rows(source: Int64s, count: int, target: Int64s) -> None:
    """Copy the first `count` rows to the front of `target`, column by column."""
    for column in range(source.shape[0]):
        for row in range(count):
            target[column, row] = source[column, row]


@small_kernel
def copy_columns(
    head: Int64s, source: int, start: int, target: int, to: int, columns: int, count: int
) -> None:
    """Copy `count` rows from row `start` of the columns from `source` on, to row `to` of those from `target`
    on.

    The two sets of columns are different. The compiler does not know that, and would copy word by word.
    """
    if count > 0:
        first, width = head.ctypes.data, head.shape[1]
        for column in range(columns):
            copy_words(
                first + 8 * ((target + column) * width + to),
                first + 8 * ((source + column) * width + start),
                count,
            )


@kernel
def insert_into_head(head: Int64s, table: Int64s, line: int, words: Int64s, guards: int) -> int:
    """Merge sorted rows into a head; return its new number of rows.

    head    int64[2·columns, capacity]: two halves; `side` of its line in `table` names the one in use
    Requires: rows of the head and of `words` together fit the capacity. Cost: about 2 µs, copies the head.
    """
    columns = words.shape[0]
    side = table[line, SIDE]
    rows = table[line, ROWS]
    lub = table[line, LUB]
    source = columns * side
    target = columns * (1 - side)
    if CHECK_BOUNDS:
        if rows + words.shape[1] > head.shape[1] or 2 * columns > head.shape[0]:
            raise IndexError("more rows than there is room for in a head")
    size = np.int64(0)
    done = np.int64(0)
    for new in range(words.shape[1]):
        low = done
        high = rows
        while low < high:  # the first row of the head that is not less than the new one
            middle = (low + high) >> 1
            less = False
            for column in range(columns - 1):
                if head[source + column, middle] != words[column, new]:
                    less = head[source + column, middle] < words[column, new]
                    break
            if less:
                low = middle + 1
            else:
                high = middle
        copy_columns(head, source, done, target, size, columns, low - done)
        size += low - done
        done = low
        diff = words[columns - 1, new]
        same = low < rows
        if same:
            for column in range(columns - 1):
                if head[source + column, low] != words[column, new]:
                    same = False
                    break
        if same:
            diff = checked_add(diff, head[source + columns - 1, low])
            done += 1
        if diff != 0:
            for column in range(columns - 1):
                head[target + column, size] = words[column, new]
            head[target + columns - 1, size] = diff
            lub = word_lub(lub, words[columns - 2, new], guards)
            size += 1
    copy_columns(head, source, done, target, size, columns, rows - done)
    size += rows - done
    table[line, ROWS] = size
    table[line, LUB] = lub if size > 0 else 0
    table[line, SIDE] = 1 - side
    start = head.ctypes.data
    for column in range(columns):
        describe_column(table, line, column, start + 8 * (target + column) * head.shape[1])
    return size
