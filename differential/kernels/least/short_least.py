"""Fast path of `least.py`: most keys have one ready time, and few rows decide their answer.

Such keys have no pending time, and all their answers so far are at earlier times. At the ready time, then,
and at all later ones that are not evaluated separately, the answer

    stays                     if it is smaller than all new values, or the smallest of them, which gets more
    is the smallest new one   if there are more of it, and all values of the key in the trace are larger

In both cases only the ready time is interesting: values larger than an answer do not matter, nor do their
times. All other keys, with rows at several times or taken away, go the long way.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.history import more_rows
from differential.kernels.overflow import wrapped_add, wrapped_multiply
from differential.kernels.rows.memory import read
from differential.kernels.rows.probing import KEYS_AT_ONCE, locate_keys, next_keys
from differential.kernels.rows.search import compare_keys
from differential.thresholds import RESTED_KEYS_MAX, SHORT_WAY_ROWS_MIN
from progress.compiled.kernel import Int64s, kernel, small_kernel
from progress.times.word_order import word_less_equal


@kernel
def room_for_keys(
    rows: int, tables: tuple[Int64s, Int64s], kw: int
) -> tuple[tuple[Int64s, Int64s, Int64s], Int64s]:
    """Return (key_spans, progress) as `go_the_short_way` takes them, for so many rows."""
    room, progress = min(KEYS_AT_ONCE, rows), np.zeros(6, np.int64)
    progress[3], progress[4] = KEYS_AT_ONCE, 0 if rows >= SHORT_WAY_ROWS_MIN else rows
    keys = np.empty((kw + 1, room), np.int64)
    spans = np.empty((2 * room, tables[0].shape[0]), np.int64)
    return (keys, spans, np.empty((2 * room, tables[1].shape[0]), np.int64)), progress


@small_kernel
def has_larger_only(table: Int64s, spans: Int64s, key: int, kw: int, value: int, flip: int) -> bool:
    """Return True if all values of a key in a trace are larger than a value (flipped)."""
    for run in range(table.shape[0]):
        first, last = spans[2 * key, run], spans[2 * key + 1, run]
        if first < last and read(table, run, kw, first if flip == 0 else last - 1) ^ flip <= value:
            return False
    return True


@small_kernel
def answer_so_far(table: Int64s, spans: Int64s, key: int, kw: int, time: int, guards: int) -> tuple[int, int]:
    """Return (1, the answer of a key at a time), or (0, 0) if it has none then.

    Return (-1, 0) if a row of its answers so far is not at a time ≤ `time`. The answers add up to one or
    none: so its value is the sum of all values, each times its diff.
    """
    total, value = np.int64(0), np.int64(0)
    for run in range(table.shape[0]):
        for row in range(spans[2 * key, run], spans[2 * key + 1, run]):
            if not word_less_equal(read(table, run, kw + 1, row), time, guards):
                return np.int64(-1), np.int64(0)
            diff = read(table, run, kw + 2, row)
            total += diff
            value = wrapped_add(value, wrapped_multiply(diff, read(table, run, kw, row)))
    return (total, value) if 0 <= total <= 1 else (np.int64(-1), np.int64(0))


@small_kernel
def put_row(out: Int64s, row: int, keys: Int64s, key: int, kw: int, rest: tuple[int, int, int]) -> None:
    """Write a row: a key, and value, time and difference."""
    for word in range(kw):
        out[word, row] = keys[word, key]
    out[kw, row], out[kw + 1, row], out[kw + 2, row] = rest


@small_kernel
def put_least(
    ready: Int64s,
    first: int,
    tables: tuple[Int64s, Int64s],
    key_spans: tuple[Int64s, Int64s, Int64s],
    key: int,
    shape: Int64s,
    out: Int64s,
    out_rows: int,
) -> int:
    """Write the corrections of a key behind the first `out_rows` rows of `out`; return the new number of
    rows.

    Return -1 if the key goes the long way. Requires: room for two.
    """
    kw, guards, flip = shape[0], shape[1], shape[2]
    keys, spans, answer_spans = key_spans
    time, last = ready[kw + 1, first], keys[kw, key] - 1
    for row in range(first + 1, last + 1):
        if ready[kw + 1, row] != time:
            return np.int64(-1)
    at = first if flip == 0 else last
    value = ready[kw, at]
    if ready[kw + 2, at] < 0:
        return np.int64(-1)
    answers, before = answer_so_far(tables[1], answer_spans, key, kw, time, guards)
    if answers < 0:
        return np.int64(-1)
    if answers == 1 and before ^ flip <= value ^ flip:
        return out_rows
    if not has_larger_only(tables[0], spans, key, kw, value ^ flip, flip):
        return np.int64(-1)
    is_first = answers == 0 or value < before
    put_row(out, out_rows if is_first else out_rows + 1, keys, key, kw, (value, time, np.int64(1)))
    if answers == 1:
        put_row(out, out_rows + 1 if is_first else out_rows, keys, key, kw, (before, time, np.int64(-1)))
    return out_rows + 1 + answers


@small_kernel
def step_back(cursors: Int64s, spans: Int64s, key: int) -> None:
    """Move the cursors to before the rows of a key."""
    for run in range(cursors.shape[1]):
        cursors[0, run] = cursors[1, run] = spans[2 * key, run]


@kernel
def go_the_short_way(
    ready: Int64s,
    pending: Int64s,
    tables: tuple[Int64s, Int64s],
    cursors: tuple[Int64s, Int64s],
    shape: Int64s,
    key_spans: tuple[Int64s, Int64s, Int64s],
    progress: Int64s,
    out: Int64s,
) -> Int64s:
    """Process the next keys of `ready` as long as they take the short way and are not pending.

    Return `out`, or a larger copy.
    tables, cursors   of the input, and of the answers
    key_spans         room for keys, as in `next_keys`, and for the spans of both tables, as in `locate_keys`
    progress          int64[6]: the next row of `ready` and of `pending`, number of rows of `out`, number
                      of keys to look up together, number of keys for which the short way rests then, and the
                      number for which it rested before this call
    """
    kw, i, p, begin = shape[0], progress[0], progress[1], progress[0]
    keys, spans, answer_spans = key_spans
    while i < ready.shape[1]:
        if p < pending.shape[1] and compare_keys(ready, i, pending, p, kw) >= 0:
            return out
        count = next_keys(ready, i, kw, keys, min(progress[3], keys.shape[1]))
        while p < pending.shape[1] and compare_keys(keys, count - 1, pending, p, kw) >= 0:
            count -= 1  # the cursors must not pass the next pending key
            progress[3] = count  # where many are pending there are few between them
        locate_keys(tables[1], cursors[1], keys, count, kw, answer_spans)
        locate_keys(tables[0], cursors[0], keys, count, kw, spans)
        for key in range(count):
            if progress[2] + 2 > out.shape[1]:
                out = more_rows(out, progress[2])
            out_rows = put_least(ready, i, tables, key_spans, key, shape, out, progress[2])
            if out_rows < 0:
                step_back(cursors[0], spans, key)
                step_back(cursors[1], answer_spans, key)
                progress[3] = 1
                progress[5] = (
                    min(2 * progress[5] + 1, RESTED_KEYS_MAX) if progress[0] == begin else np.int64(0)
                )
                progress[4] = progress[5]
                return out
            i = keys[kw, key]
            progress[0], progress[2] = i, out_rows
        progress[3] = min(2 * progress[3], KEYS_AT_ONCE)
    return out
