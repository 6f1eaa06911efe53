"""Merging sorted rows: into a trace's small head, of two tables, and of two large runs piece by piece.

A merge of runs is where a trace is compacted: times are advanced to the `since` of the trace, and rows that
have become equal are summed. What that keeps: for every t ≥ some time of since, the sum of diffs at times ≤ t.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.memory import HEADER, LUB, ROWS, SIDE, load, read, store
from progress._compile import Int64s, kernel
from progress.time_words import word_advance, word_lub


@kernel
def compare_rows(a: Int64s, i: int, b: Int64s, j: int, columns: int) -> int:
    """-1, 0 or 1: how row `i` of `a` and row `j` of `b` compare in their first `columns` columns."""
    for column in range(columns):
        left = a[column, i]
        right = b[column, j]
        if left != right:
            return -1 if left < right else 1
    return 0


@kernel
def merge(a: Int64s, b: Int64s) -> Int64s:
    """The rows of two sorted consolidated tables as one. Cost: one pass, one array."""
    columns, rows_a = a.shape
    rows_b = b.shape[1]
    out = np.empty((columns, rows_a + rows_b), np.int64)
    i = 0
    j = 0
    kept = 0
    while i < rows_a or j < rows_b:
        order = -1 if j == rows_b else 1 if i == rows_a else compare_rows(a, i, b, j, columns - 1)
        if order == 0 and a[columns - 1, i] + b[columns - 1, j] == 0:
            i += 1
            j += 1
            continue
        for column in range(columns):
            out[column, kept] = a[column, i] if order <= 0 else b[column, j]
        if order == 0:
            out[columns - 1, kept] += b[columns - 1, j]
        kept += 1
        i += order <= 0
        j += order >= 0
    return first_rows(out, kept)


@kernel
def first_rows(words: Int64s, rows: int) -> Int64s:
    """The first `rows` rows: the array itself if that is all of it, else a copy."""
    if rows == words.shape[1]:
        return words
    out = np.empty((words.shape[0], rows), np.int64)
    for column in range(words.shape[0]):
        for row in range(rows):
            out[column, row] = words[column, row]
    return out


@kernel
def copy_rows(source: Int64s, start: int, stop: int, target: Int64s, at: int) -> None:
    """Copy rows [start, stop) to row `at` on, column by column."""
    for column in range(source.shape[0]):
        for row in range(stop - start):
            target[column, at + row] = source[column, start + row]


@kernel
def insert_into_head(head: Int64s, table: Int64s, line: int, words: Int64s, guards: int) -> int:
    """Merge sorted rows into a head; returns its rows.

    head    int64[2·columns, capacity]: two halves, the one in use named by `side` of its line in `table`
    Requires: rows of the head and of `words` together fit the capacity. Cost: about 2 µs, copies the head.
    """
    columns = words.shape[0]
    side = table[line, SIDE]
    rows = table[line, ROWS]
    lub = table[line, LUB]
    source = columns * side
    target = columns * (1 - side)
    kept = 0
    done = 0
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
        for column in range(columns):
            for row in range(low - done):
                head[target + column, kept + row] = head[source + column, done + row]
        kept += low - done
        done = low
        diff = words[columns - 1, new]
        same = low < rows
        if same:
            for column in range(columns - 1):
                if head[source + column, low] != words[column, new]:
                    same = False
                    break
        if same:
            diff += head[source + columns - 1, low]
            done += 1
        if diff != 0:
            for column in range(columns - 1):
                head[target + column, kept] = words[column, new]
            head[target + columns - 1, kept] = diff
            lub = word_lub(lub, words[columns - 2, new], guards)
            kept += 1
    for column in range(columns):
        for row in range(rows - done):
            head[target + column, kept + row] = head[source + column, done + row]
    kept += rows - done
    table[line, ROWS] = kept
    table[line, LUB] = lub if kept > 0 else 0
    table[line, SIDE] = 1 - side
    start = head.ctypes.data
    for column in range(columns):
        at = HEADER + 3 * column
        table[line, at] = start + 8 * (target + column) * head.shape[1]
        table[line, at + 1] = 8
        table[line, at + 2] = 0
    return kept


@kernel
def sort_times(times: Int64s, diffs: Int64s, count: int) -> int:
    """Sort the first `count` (time, diff) pairs by time, sum equal times, drop zeros; returns pairs left.

    Cost: shell sort, so that a key with thousands of times does no harm.
    """
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for row in range(gap, count):
            time = times[row]
            diff = diffs[row]
            at = row
            while at >= gap and times[at - gap] > time:
                times[at] = times[at - gap]
                diffs[at] = diffs[at - gap]
                at -= gap
            times[at] = time
            diffs[at] = diff
        gap //= 3
    kept = 0
    row = 0
    while row < count:
        time = times[row]
        total = diffs[row]
        row += 1
        while row < count and times[row] == time:
            total += diffs[row]
            row += 1
        if total != 0:
            times[kept] = time
            diffs[kept] = total
            kept += 1
    return kept


@kernel
def load_row(table: Int64s, run: int, row: int, into: Int64s) -> None:
    """Decode one row of a run into line `run` of `into`; nothing if there is no such row."""
    if row < table[run, ROWS]:
        for column in range(into.shape[1]):
            into[run, column] = read(table, run, column, row)


@kernel
def grown(values: Int64s, count: int) -> Int64s:
    """The array itself if it has room for one more than `count`, else a copy of twice the length."""
    if count < values.shape[0]:
        return values
    larger = np.empty(2 * values.shape[0], np.int64)
    larger[: values.shape[0]] = values
    return larger


@kernel
def merge_runs(tables: Int64s, progress: Int64s, since: Int64s, guards: int, budget: int) -> int:
    """Go on merging the runs of lines 0 and 1 into the memory of line 2; returns the rows read.

    progress   int64[5]: next row of each run, rows written, lub of the written times, 1 after an overflow
    since      antichain of words to advance times to
    Stops after `budget` rows read, but never within a (key, value); both exhausted: finished. A diff that
    does not fit its column sets the overflow: start again with a wider one.
    """
    columns = (tables.shape[1] - HEADER) // 3
    same = columns - 2
    current = np.empty((2, columns), np.int64)
    group = np.empty(columns, np.int64)
    times = np.empty(16, np.int64)
    diffs = np.empty(16, np.int64)
    rows_a, rows_b = tables[0, ROWS], tables[1, ROWS]
    started = progress[0] + progress[1]
    load_row(tables, 0, progress[0], current)
    load_row(tables, 1, progress[1], current)
    while progress[0] + progress[1] - started < budget:
        order = 0
        if progress[0] == rows_a:
            if progress[1] == rows_b:
                break
            order = 1
        elif progress[1] == rows_b:
            order = -1
        else:
            for column in range(same):
                if current[0, column] != current[1, column]:
                    order = -1 if current[0, column] < current[1, column] else 1
                    break
        side = 1 if order > 0 else 0
        for column in range(same):
            group[column] = current[side, column]
        count = 0
        for run in range(2):
            if order * (2 * run - 1) < 0:  # the other run does not have this group
                continue
            more = True
            while more:
                times = grown(times, count)
                diffs = grown(diffs, count)
                times[count] = word_advance(current[run, columns - 2], since, guards)
                diffs[count] = current[run, columns - 1]
                count += 1
                progress[run] += 1
                load_row(tables, run, progress[run], current)
                more = progress[run] < tables[run, ROWS]
                column = 0
                while more and column < same:
                    more = current[run, column] == group[column]
                    column += 1
        if count > 1:
            count = sort_times(times, diffs, count)
        for index in range(count):
            if not write_row(tables, progress, group, times[index], diffs[index]):
                progress[4] = 1
                return progress[0] + progress[1] - started
            progress[3] = word_lub(progress[3], times[index], guards)
    return progress[0] + progress[1] - started


@kernel
def write_row(tables: Int64s, progress: Int64s, group: Int64s, time: int, diff: int) -> bool:
    """Append one row to the run of line 2; False if the diff does not fit its column."""
    columns = group.shape[0]
    row = progress[2]
    for column in range(columns):
        value = time if column == columns - 2 else diff if column == columns - 1 else group[column]
        at = HEADER + 3 * column
        width = tables[2, at + 1]
        offset = value - tables[2, at + 2]
        if column == columns - 1 and width < 8 and (offset < 0 or offset >> (8 * width) != 0):
            return False
        store(tables[2, at], width, row, offset)
    progress[2] = row + 1
    return True


@kernel
def column_ranges(words: Int64s, ranges: Int64s, guards: int) -> int:
    """Write (smallest, largest) of each column into `ranges` int64[columns, 2]; returns the lub of the times."""
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
        at = HEADER + 3 * column
        address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
        for row in range(words.shape[1]):
            store(address, width, row, words[column, row] - base)


@kernel
def decode_words(table: Int64s, run: int, columns: int) -> Int64s:
    """All rows of a run as words."""
    rows = table[run, ROWS]
    out = np.empty((columns, rows), np.int64)
    for column in range(columns):
        at = HEADER + 3 * column
        address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
        for row in range(rows):
            out[column, row] = load(address, width, base, row)
    return out
