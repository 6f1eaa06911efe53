"""Changes of an input, epoch by epoch: the last value of each key, and removals of existing rows.

For times that are totally ordered, such as epochs. The trace has the rows that were put out before, one for
each key (`latest_changes`) or row (`possible_changes`), so a change costs one search for its key.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.history import consolidate_key, gathered, more_rows
from differential.kernels.merging.merge import first_rows
from differential.kernels.overflow import checked_add
from differential.kernels.rows.search import cursors_of, same_key
from progress.compiled.kernel import Int64s, kernel


@kernel
def key_stop(words: Int64s, start: int, columns: int) -> int:
    """Return the row after the last one whose first `columns` columns are those of row `start`."""
    stop = start + 1
    while stop < words.shape[1] and same_key(words, start, stop, columns):
        stop += 1
    return stop


@kernel
def put_change(
    out: Int64s, at: int, upserts: Int64s, row: int, kw: int, rows: Int64s, change: tuple[int, int, int]
) -> Int64s:
    """Write (key, value, time, diff) into column `at` of `out`; return it, or a larger copy.

    The key is that of row `row` of `upserts`. The value is that of the same row, from word kw + 4 on, if the
    last element of `change` is 1, else that of row 0 of `rows`.
    change   (time, diff, 1 for the value of `upserts`)
    """
    if at == out.shape[1]:
        out = more_rows(out, at)
    time, diff, new = change
    vw = rows.shape[0] - 2
    for column in range(kw):
        out[column, at] = upserts[column, row]
    for word in range(vw):
        out[kw + word, at] = upserts[kw + 4 + word, row] if new else rows[word, 0]
    out[kw + vw, at], out[kw + vw + 1, at] = time, diff
    return out


@kernel
def latest_changes(upserts: Int64s, table: Int64s, shape: Int64s) -> Int64s:
    """Return the changes of the current values, in order of keys and times: int64[kw + vw + 2, ·].

    upserts   int64[kw + 4 + vw + 2, n]: key, epoch, order (2 words), whether there is a value, value, time,
              diff; sorted. The last one of a key in an epoch counts.
    table     the lines of the trace of current values, at epochs before those of `upserts`
    shape     kw, vw, guards
    """
    kw, vw, guards = shape[0], shape[1], shape[2]
    cursors, state = cursors_of(table), np.zeros(5, np.int64)
    rows = np.empty((vw + 2, 16), np.int64)
    out = np.empty((kw + vw + 2, upserts.shape[1] + 16), np.int64)
    out_rows, start = np.int64(0), np.int64(0)
    while start < upserts.shape[1]:
        stop = key_stop(upserts, start, kw)
        state[1] = upserts[kw, stop - 1]  # the floor: all earlier epochs count at it
        rows = gathered(table, cursors, upserts, start, kw, state, guards, rows)
        present = consolidate_key(rows, state) > 0
        while start < stop:
            start = key_stop(upserts, start, kw + 1)
            last = start - 1
            epoch, has_value = upserts[kw, last], upserts[kw + 3, last] != 0
            same = present == has_value
            if present and has_value:
                for word in range(vw):
                    same = same and rows[word, 0] == upserts[kw + 4 + word, last]
            if same:
                continue
            if present:
                out = put_change(out, out_rows, upserts, last, kw, rows, (epoch, np.int64(-1), np.int64(0)))
                out_rows += 1
            if has_value:
                out = put_change(out, out_rows, upserts, last, kw, rows, (epoch, np.int64(1), np.int64(1)))
                out_rows += 1
                for word in range(vw):
                    rows[word, 0] = upserts[kw + 4 + word, last]
            present = has_value
    return first_rows(out, out_rows)


@kernel
def possible_changes(changes: Int64s, table: Int64s, guards: int) -> Int64s:
    """Return the changes that leave no row with a negative multiplicity, and the removals that are refused
    for that.

    changes   int64[width + 2, n]: rows, time, diff; sorted, consolidated
    table     the lines of the trace of existing rows, at epochs before those of `changes`
    result    int64[width + 3, ·]: row, 0 for a change that is made or 1 for removals that are refused
              (diff: how many), time, diff
    """
    width = changes.shape[0] - 2
    cursors, state = cursors_of(table), np.zeros(5, np.int64)
    rows = np.empty((2, 16), np.int64)
    out = np.empty((width + 3, 2 * changes.shape[1]), np.int64)
    out_rows, start = np.int64(0), np.int64(0)
    while start < changes.shape[1]:
        stop = key_stop(changes, start, width)
        state[1] = changes[width, stop - 1]
        rows = gathered(table, cursors, changes, start, width, state, guards, rows)
        held = rows[1, 0] if consolidate_key(rows, state) > 0 else np.int64(0)
        for row in range(start, stop):
            after = checked_add(held, changes[width + 1, row])
            possible = after if after > 0 else np.int64(0)
            for refused in range(2):
                diff = possible - after if refused else possible - held
                if diff != 0:
                    for column in range(width):
                        out[column, out_rows] = changes[column, row]
                    out[width, out_rows], out[width + 1, out_rows] = refused, changes[width, row]
                    out[width + 2, out_rows] = diff
                    out_rows += 1
            held = possible
        start = stop
    return first_rows(out, out_rows)
