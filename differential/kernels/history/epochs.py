"""What an input makes of what its clients say, epoch by epoch: the last value of each key; removals of
what is there.

For times that are totally ordered, such as epochs. What is kept is what was put out before, one row for
each key (`latest_changes`) or row (`possible_changes`), so that a change costs a search for its key.
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
    """The row after the last that has the first `columns` columns of row `start`."""
    stop = start + 1
    while stop < words.shape[1] and same_key(words, start, stop, columns):
        stop += 1
    return stop


@kernel
def put_change(
    out: Int64s, made: int, said: Int64s, row: int, kw: int, rows: Int64s, place: tuple[int, int, int]
) -> Int64s:
    """Write (key, value, time, diff) into column `made` of `out`; returns it, or a larger copy.

    The key is that of row `row` of what was said, the value that of row 0 of `rows`.
    place   (time, diff, whether the value is rather that of `said`, from word kw + 4 on)
    """
    if made == out.shape[1]:
        out = more_rows(out, made)
    time, diff, new = place
    vw = rows.shape[0] - 2
    for column in range(kw):
        out[column, made] = said[column, row]
    for word in range(vw):
        out[kw + word, made] = said[kw + 4 + word, row] if new else rows[word, 0]
    out[kw + vw, made], out[kw + vw + 1, made] = time, diff
    return out


@kernel
def latest_changes(said: Int64s, table: Int64s, shape: Int64s) -> Int64s:
    """Changes of the current values, in order of keys and times: int64[kw + vw + 2, ·].

    said    int64[kw + 4 + vw + 2, n]: key, epoch, order (2 words), whether there is a value, value, time,
            diff; sorted. The last that was said of a key in an epoch counts.
    table   the lines of the trace of current values, at epochs before those of `said`
    shape   kw, vw, guards
    """
    kw, vw, guards = shape[0], shape[1], shape[2]
    cursors, state = cursors_of(table), np.zeros(5, np.int64)
    rows = np.empty((vw + 2, 16), np.int64)
    out = np.empty((kw + vw + 2, said.shape[1] + 16), np.int64)
    made, start = np.int64(0), np.int64(0)
    while start < said.shape[1]:
        stop = key_stop(said, start, kw)
        state[1] = said[kw, stop - 1]  # all of before falls together there
        rows = gathered(table, cursors, said, start, kw, state, guards, rows)
        present = consolidate_key(rows, state) > 0
        while start < stop:
            start = key_stop(said, start, kw + 1)
            last = start - 1
            epoch, wanted = said[kw, last], said[kw + 3, last] != 0
            same = present == wanted
            if present and wanted:
                for word in range(vw):
                    same = same and rows[word, 0] == said[kw + 4 + word, last]
            if same:
                continue
            if present:
                out = put_change(out, made, said, last, kw, rows, (epoch, np.int64(-1), np.int64(0)))
                made += 1
            if wanted:
                out = put_change(out, made, said, last, kw, rows, (epoch, np.int64(1), np.int64(1)))
                made += 1
                for word in range(vw):
                    rows[word, 0] = said[kw + 4 + word, last]
            present = wanted
    return first_rows(out, made)


@kernel
def possible_changes(said: Int64s, table: Int64s, guards: int) -> Int64s:
    """Changes that leave no row there less than 0 times, and what was asked for beyond, once each.

    said     int64[width + 2, n]: rows, time, diff; sorted, consolidated
    table    the lines of the trace of the rows that are there, at epochs before those of `said`
    result   int64[width + 3, ·]: row, 0 for a change that is made or 1 for removals that are refused
             (diff: how many), time, diff
    """
    width = said.shape[0] - 2
    cursors, state = cursors_of(table), np.zeros(5, np.int64)
    rows = np.empty((2, 16), np.int64)
    out = np.empty((width + 3, 2 * said.shape[1]), np.int64)
    made, start = np.int64(0), np.int64(0)
    while start < said.shape[1]:
        stop = key_stop(said, start, width)
        state[1] = said[width, stop - 1]
        rows = gathered(table, cursors, said, start, width, state, guards, rows)
        held = rows[1, 0] if consolidate_key(rows, state) > 0 else np.int64(0)
        for row in range(start, stop):
            after = checked_add(held, said[width + 1, row])
            kept = after if after > 0 else np.int64(0)
            for refused in range(2):
                diff = kept - after if refused else kept - held
                if diff != 0:
                    for column in range(width):
                        out[column, made] = said[column, row]
                    out[width, made], out[width + 1, made] = refused, said[width, row]
                    out[width + 2, made] = diff
                    made += 1
            held = kept
        start = stop
    return first_rows(out, made)
