"""Finding the rows of many keys at once, run by run, where the runs are larger than the caches.

The search for a single key (`search.py`) goes from run to run, and waits for memory several times in each:
for the directory, for the words of its bucket, for the columns beside them. Here some keys are searched
together: for each run the kernel prefetches all entries of the directory, then all buckets, then the other
columns, and reads each only after that. So keys wait together, and a line of the run table is read once. Runs
without a directory are small and near, and keys that lie close together, as in a load, wait for nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import wrapped_subtract
from differential.kernels.rows.memory import (
    BUCKETS,
    DIRECTORY,
    HEADER,
    LOW,
    ROWS,
    SHIFT,
    load_count,
    prefetch,
)
from differential.kernels.rows.search import bucket_of, find, find_within, same_key
from progress.compiled.kernel import CHECK_BOUNDS, Int64s, kernel, small_kernel

KEYS_AT_ONCE: Final = 128
"""Number of keys searched together: the data that they prefetch stays in the first-level cache until read."""


@small_kernel
def next_keys(delta: Int64s, start: int, kw: int, keys: Int64s, most: int) -> int:
    """Copy the next different keys among the sorted rows of `delta` from `start` on, up to `most`.

    Return their number.
    keys   int64[kw + 1, ≥ most]: gets the keys, and in its last line the row after the last of each
    """
    count, row, rows = np.int64(0), start, delta.shape[1]
    while row < rows and count < most:
        for word in range(kw):
            keys[word, count] = delta[word, row]
        row += 1
        while row < rows and same_key(delta, row, row - 1, kw):
            row += 1
        keys[kw, count] = row
        count += 1
    return count


@small_kernel
def is_apart(table: Int64s, run: int, keys: Int64s, count: int) -> bool:
    """Return True if the keys are far apart in a run: there are more buckets between them than keys.

    If they are close together, the caches prefetch the next line by themselves.
    """
    buckets = np.uint64(wrapped_subtract(keys[0, count - 1], keys[0, 0])) >> np.uint64(table[run, SHIFT])
    return buckets > np.uint64(count)


@kernel
def prefetch_buckets(table: Int64s, run: int, keys: Int64s, count: int) -> None:
    """Prefetch the entries of a run's directory for some keys."""
    directory, low = table[run, DIRECTORY], table[run, LOW]
    shift, buckets = table[run, SHIFT], table[run, BUCKETS]
    for key in range(count):
        bucket = bucket_of(keys[0, key], low, shift)
        if keys[0, key] >= low and 0 <= bucket < buckets:
            prefetch(directory + 4 * bucket)


@kernel
def read_buckets(table: Int64s, run: int, keys: Int64s, count: int, spans: Int64s) -> None:
    """Write where the buckets of some keys begin and end, and prefetch their first words."""
    directory, low = table[run, DIRECTORY], table[run, LOW]
    shift, buckets = table[run, SHIFT], table[run, BUCKETS]
    address, width = table[run, HEADER], table[run, HEADER + 1]
    for key in range(count):
        first, last = np.int64(0), np.int64(0)
        bucket = bucket_of(keys[0, key], low, shift)
        if keys[0, key] >= low and 0 <= bucket < buckets:
            first = load_count(directory, bucket)
            last = load_count(directory, bucket + 1)
            if CHECK_BOUNDS:
                if last > table[run, ROWS] or first > last:
                    raise IndexError("a directory that names rows outside its run")
            if first < last:
                prefetch(address + width * first)
        spans[2 * key, run] = first
        spans[2 * key + 1, run] = last


@kernel
def search_buckets(table: Int64s, run: int, keys: Int64s, count: int, kw: int, spans: Int64s) -> None:
    """Narrow the spans of `read_buckets` down to the rows of each key, and prefetch their other columns."""
    equal_words = np.int64(table[run, SHIFT] == 0)  # a bucket for each first word
    columns = (table.shape[1] - HEADER) // 3
    for key in range(count):
        first, last = spans[2 * key, run], spans[2 * key + 1, run]
        if first == last:
            continue
        first, last = find_within(table, run, (first, last), keys, key, equal_words, kw)
        spans[2 * key, run] = first
        spans[2 * key + 1, run] = last
        if first < last:
            for column in range(1, columns):
                at = HEADER + 3 * column
                if table[run, at + 1] > 0:
                    prefetch(table[run, at] + table[run, at + 1] * first)


@kernel
def locate_keys(table: Int64s, cursors: Int64s, keys: Int64s, count: int, kw: int, spans: Int64s) -> None:
    """Write the spans of the rows of the first `count` keys of `keys` in all runs to `spans`.

    keys      int64[≥ kw, ·], in ascending order, each once, and behind those at the cursors
    cursors   as in `search.py`; they move on to the last key
    spans     int64[≥ 2 · count, runs]: gets the first row of each key, and the row after its last; the same
              row twice where there is none
    """
    if count == 0:
        return
    for run in range(table.shape[0]):
        if (
            table[run, ROWS] > 0
            and table[run, DIRECTORY] != 0
            and kw > 0
            and is_apart(table, run, keys, count)
        ):
            prefetch_buckets(table, run, keys, count)
            read_buckets(table, run, keys, count, spans)
            search_buckets(table, run, keys, count, kw, spans)
            last = max(cursors[1, run], spans[2 * count - 1, run])
        else:
            last = cursors[1, run]
            for key in range(count):
                first = last
                if table[run, ROWS] > 0:
                    first, last = find(table, run, last, keys, key, kw)
                spans[2 * key, run] = first
                spans[2 * key + 1, run] = last
        cursors[0, run] = min(spans[2 * count - 2, run], last)
        cursors[1, run] = last
