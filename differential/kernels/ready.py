"""Which rows are complete, and which earlier times do the others hold open?

A time is *ready* when no time of the frontier is ≤ it. Rows wait in the order in which they came.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.merge import first_rows
from progress._compile import Int64s, kernel
from progress.time_words import word_is_beyond, word_less_equal


@kernel
def split_ready(words: Int64s, time_column: int, frontier: Int64s, guards: int) -> tuple[Int64s, Int64s]:
    """(ready rows, later rows), each in their order. If all are of one kind, that one is `words` itself."""
    columns, rows = words.shape
    ready = np.int64(0)
    last = np.int64(-1)
    beyond = False
    for row in range(rows):
        time = words[time_column, row]
        if time != last:
            beyond = word_is_beyond(time, frontier, guards)
            last = time
        ready += not beyond
    if ready == rows:
        return words, np.empty((columns, 0), np.int64)
    if ready == 0:
        return np.empty((columns, 0), np.int64), words
    now = np.empty((columns, ready), np.int64)
    later = np.empty((columns, rows - ready), np.int64)
    at_now = np.int64(0)
    at_later = np.int64(0)
    last = -1
    for row in range(rows):
        time = words[time_column, row]
        if time != last:
            beyond = word_is_beyond(time, frontier, guards)
            last = time
        if beyond:
            for column in range(columns):
                later[column, at_later] = words[column, row]
            at_later += 1
        else:
            for column in range(columns):
                now[column, at_now] = words[column, row]
            at_now += 1
    return now, later


@kernel
def add_bound(minimal: Int64s, count: int, time: int, guards: int) -> int:
    """Put a time into an ascending antichain; returns its size. Requires: room for one more."""
    for index in range(count):
        if word_less_equal(minimal[index], time, guards):
            return count
    kept = np.int64(0)
    for index in range(count):
        if not word_less_equal(time, minimal[index], guards):
            minimal[kept] = minimal[index]
            kept += 1
    at = kept
    while at > 0 and minimal[at - 1] > time:
        minimal[at] = minimal[at - 1]
        at -= 1
    minimal[at] = time
    return kept + 1


@kernel
def part_of(values: Int64s, count: int, length: int) -> Int64s:
    """An array of `length` whose first `count` values are those of `values`."""
    part = np.empty(length, np.int64)
    for index in range(count):
        part[index] = values[index]
    return part


@kernel
def lower_bounds(words: Int64s, time_column: int, bounds: Int64s, guards: int) -> Int64s:
    """The minimal antichain of `bounds` (an antichain itself) and the times of a table, ascending."""
    count = bounds.shape[0]
    minimal = part_of(bounds, count, count + 8)
    last = np.int64(-1)
    for row in range(words.shape[1]):
        time = words[time_column, row]
        if time != last:
            last = time
            if count == minimal.shape[0]:
                minimal = part_of(minimal, count, 2 * count)
            count = add_bound(minimal, count, time, guards)
    return part_of(minimal, count, count)


@kernel
def minimal_times(times: Int64s, guards: int) -> Int64s:
    """The minimal antichain of a column of times, ascending. Cost: O(changes in the column · antichain)."""
    count = np.int64(0)
    minimal = np.empty(8, np.int64)
    last = np.int64(-1)
    for row in range(times.shape[0]):
        time = times[row]
        if time != last:
            last = time
            if count == minimal.shape[0]:
                minimal = part_of(minimal, count, 2 * count)
            count = add_bound(minimal, count, time, guards)
    return part_of(minimal, count, count)


@kernel
def merge_pending(a: Int64s, b: Int64s) -> Int64s:
    """Two sorted sets of rows, (key words, time), as one, without doubles."""
    columns, rows_a = a.shape
    rows_b = b.shape[1]
    out = np.empty((columns, rows_a + rows_b), np.int64)
    i = np.int64(0)
    j = np.int64(0)
    kept = np.int64(0)
    while i < rows_a or j < rows_b:
        order = -1 if j == rows_b else 1 if i == rows_a else 0
        column = np.int64(0)
        while order == 0 and column < columns and i < rows_a and j < rows_b:
            if a[column, i] != b[column, j]:
                order = -1 if a[column, i] < b[column, j] else 1
            column += 1
        for column in range(columns):
            out[column, kept] = a[column, i] if order <= 0 else b[column, j]
        kept += 1
        i += order <= 0
        j += order >= 0
    return first_rows(out, kept)
