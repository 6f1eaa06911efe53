"""Finding a key's rows in the runs of a trace.

Searches are in ascending order of keys, so each gallops on from where the last one ended: doubling steps,
then halving. Large runs have a *directory*, which says where to begin:

    bucket of a key = (its first word - low) >> shift         directory uint32[buckets + 1]
    the rows of bucket b are directory[b] … directory[b + 1] - 1

With few rows a bucket, a search for one key in a run of millions touches three cache lines and not twenty.
Keys that crowd into few buckets are found by galloping, as without a directory.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.overflow import wrapped_subtract
from differential.kernels.rows.memory import (
    BUCKETS,
    DIRECTORY,
    HEADER,
    LOW,
    ROWS,
    SHIFT,
    load,
    load_count,
    store_count,
)
from differential.thresholds import FEW_ROWS_MAX
from progress.compiled.kernel import CHECK_BOUNDS, Int64s, kernel, small_kernel


@small_kernel
def bucket_of(word: int, low: int, shift: int) -> int:
    """Return the bucket of a key whose first word is `word`. Requires: word ≥ low, shift < 64.

    It is below 0 if there is a bucket for each first word and the word is 2⁶³ or more above `low`, and so
    behind all buckets.
    """
    return np.int64(np.uint64(wrapped_subtract(word, low)) >> np.uint64(shift))


@kernel
def fill_directory(table: Int64s, run: int) -> None:
    """Write the directory of a run whose line is complete.

    Cost: a pass over the first column, and one over the buckets, without a branch that depends on them.
    """
    address, width, base = table[run, HEADER], table[run, HEADER + 1], table[run, HEADER + 2]
    low, shift = table[run, LOW], table[run, SHIFT]
    directory, buckets = table[run, DIRECTORY], table[run, BUCKETS]
    for bucket in range(buckets + 1):
        store_count(directory, bucket, np.int64(0))
    for row in range(table[run, ROWS]):
        bucket = bucket_of(load(address, width, base, row), low, shift)
        if CHECK_BOUNDS:
            if bucket < 0 or bucket >= buckets:
                raise IndexError("a bucket outside the directory of its run")
        store_count(directory, bucket + 1, row + 1)  # the last row of the bucket prevails
    end = np.int64(0)
    for bucket in range(1, buckets + 1):
        end = max(end, load_count(directory, bucket))
        store_count(directory, bucket, end)


@small_kernel
def first_from(table: Int64s, run: int, column: int, start: int, stop: int, bound: int, past: int) -> int:
    """Return the first row of [start, stop) whose word is ≥ `bound` (> if `past` is 1); `stop` if there is
    none.

    Requires: the words of these rows ascend.
    """
    if CHECK_BOUNDS:
        if start < 0 or stop > table[run, ROWS]:
            raise IndexError("rows outside their run")
    at = HEADER + 3 * column
    address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
    step = 1
    low = start - 1  # always before the row
    high = start
    while high < stop:
        word = load(address, width, base, high)
        if word > bound or (word == bound and past == 0):
            break
        low = high
        high += step
        step <<= 1
    high = min(high, stop)
    while high - low > 1:
        middle = (low + high) >> 1
        word = load(address, width, base, middle)
        if word > bound or (word == bound and past == 0):
            high = middle
        else:
            low = middle
    return high


@small_kernel
def find_within(
    table: Int64s, run: int, span: tuple[int, int], keys: Int64s, at: int, equal_words: int, kw: int
) -> tuple[int, int]:
    """Return the rows of the span with the key in column `at` of `keys`: (first, row after the last).

    Requires: all rows of the span have the key's first `equal_words` words. If the rows are few, all are
    compared, and counted without a branch on them, which could not be predicted.
    """
    first, last = span
    for column in range(equal_words, kw):
        value = keys[column, at]
        if last - first > FEW_ROWS_MAX:
            first = first_from(table, run, column, first, last, value, np.int64(0))
            last = first_from(table, run, column, first, last, value, np.int64(1))
            continue
        entry = HEADER + 3 * column
        address, width, base = table[run, entry], table[run, entry + 1], table[run, entry + 2]
        less, equal = np.int64(0), np.int64(0)
        for row in range(first, last):
            word = load(address, width, base, row)
            less += word < value
            equal += word == value
        first += less
        last = first + equal
    return first, last


@small_kernel
def find(table: Int64s, run: int, start: int, keys: Int64s, at: int, kw: int) -> tuple[int, int]:
    """Return (first row, row after the last) of the key in column `at` of `keys`.

    Requires: rows before `start` are before it.
    """
    first = start
    last = table[run, ROWS]
    equal_words = 0
    if kw > 0 and table[run, DIRECTORY] != 0:
        word, low = keys[0, at], table[run, LOW]
        if word < low:
            return start, start
        bucket = bucket_of(word, low, table[run, SHIFT])
        if bucket < 0 or bucket >= table[run, BUCKETS]:
            return last, last
        first = max(start, load_count(table[run, DIRECTORY], bucket))
        last = max(first, load_count(table[run, DIRECTORY], bucket + 1))
        if CHECK_BOUNDS:
            if last > table[run, ROWS]:
                raise IndexError("a directory that names rows outside its run")
        if table[run, SHIFT] == 0:  # a bucket for each first word
            equal_words = 1
    return find_within(table, run, (first, last), keys, at, equal_words, kw)


@kernel
def cursors_of(table: Int64s) -> Int64s:
    """Return cursors at the start of all runs: int64[2, runs], bounds of the rows of a key."""
    return np.zeros((2, table.shape[0]), np.int64)


@small_kernel
def locate(table: Int64s, cursors: Int64s, keys: Int64s, at: int, kw: int) -> int:
    """Move the cursors on to the rows of a key; return how many rows it has in all runs.

    Requires: keys come in ascending order, each once.
    """
    total = np.int64(0)
    for run in range(table.shape[0]):
        if table[run, ROWS] > 0:
            first, last = find(table, run, cursors[1, run], keys, at, kw)
            cursors[0, run] = first
            cursors[1, run] = last
            total += last - first
    return total


@small_kernel
def same_key(words: Int64s, a: int, b: int, kw: int) -> bool:
    """Return True if two rows of a table have the same key."""
    for column in range(kw):
        if words[column, a] != words[column, b]:
            return False
    return True


@small_kernel
def compare_keys(a: Int64s, i: int, b: Int64s, j: int, kw: int) -> int:
    """Return -1, 0 or 1: how the keys of two rows compare."""
    for column in range(kw):
        if a[column, i] != b[column, j]:
            return -1 if a[column, i] < b[column, j] else 1
    return 0


@small_kernel
def whose_turn(a: Int64s, i: int, b: Int64s, j: int, kw: int) -> int:
    """Return -1, 0 or 1: how row i of `a` and row j of `b` compare by key; an array at its end comes last.

    Requires: not both are at their ends.
    """
    if j == b.shape[1]:
        return -1
    if i == a.shape[1]:
        return 1
    return compare_keys(a, i, b, j, kw)
