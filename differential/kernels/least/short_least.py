"""The short way of `least.py`: keys of one ready time whose answer is seen at a glance, as most are.

They have no pending time, and all their answers so far are at earlier times. At the ready time, then, and at
all later ones that are not looked at by themselves, the answer

    stays                     if it is smaller than all new values, or the smallest of them, which gets more
    is the smallest new one   if there are more of it, and all that the trace has of the key is larger

In both cases only the ready time is interesting: what is larger than an answer does not matter, nor do its
times. Everything else, with rows at several times or taken away, goes the long way.
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
    """(keys_found, places) as `go_the_short_way` takes them, for so many rows."""
    room, places = min(KEYS_AT_ONCE, rows), np.zeros(6, np.int64)
    places[3], places[4] = KEYS_AT_ONCE, 0 if rows >= SHORT_WAY_ROWS_MIN else rows
    keys = np.empty((kw + 1, room), np.int64)
    found = np.empty((2 * room, tables[0].shape[0]), np.int64)
    return (keys, found, np.empty((2 * room, tables[1].shape[0]), np.int64)), places


@small_kernel
def has_larger_only(table: Int64s, found: Int64s, key: int, kw: int, value: int, flip: int) -> bool:
    """Whether all values that a trace has of a key are larger than a value (flipped)."""
    for run in range(table.shape[0]):
        first, last = found[2 * key, run], found[2 * key + 1, run]
        if first < last and read(table, run, kw, first if flip == 0 else last - 1) ^ flip <= value:
            return False
    return True


@small_kernel
def answer_so_far(table: Int64s, found: Int64s, key: int, kw: int, time: int, guards: int) -> tuple[int, int]:
    """(1 or 0: whether a key has an answer at a time, and which), if all its answers so far are at times ≤
    that; else (-1, 0).

    What was said adds up to one answer or none: so its value is the sum of all values that were said.
    """
    total, value = np.int64(0), np.int64(0)
    for run in range(table.shape[0]):
        for row in range(found[2 * key, run], found[2 * key + 1, run]):
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
    keys_found: tuple[Int64s, Int64s, Int64s],
    key: int,
    shape: Int64s,
    out: Int64s,
    made: int,
) -> int:
    """Write the corrections of a key behind the `made` rows of `out`; returns how many rows there are then,
    -1 if the key goes the long way. Requires: room for two.
    """
    kw, guards, flip = shape[0], shape[1], shape[2]
    keys, found, found_answers = keys_found
    time, last = ready[kw + 1, first], keys[kw, key] - 1
    for row in range(first + 1, last + 1):
        if ready[kw + 1, row] != time:
            return np.int64(-1)
    at = first if flip == 0 else last
    value = ready[kw, at]
    if ready[kw + 2, at] < 0:
        return np.int64(-1)
    answers, before = answer_so_far(tables[1], found_answers, key, kw, time, guards)
    if answers < 0:
        return np.int64(-1)
    if answers == 1 and before ^ flip <= value ^ flip:
        return made
    if not has_larger_only(tables[0], found, key, kw, value ^ flip, flip):
        return np.int64(-1)
    is_first = answers == 0 or value < before
    put_row(out, made if is_first else made + 1, keys, key, kw, (value, time, np.int64(1)))
    if answers == 1:
        put_row(out, made + 1 if is_first else made, keys, key, kw, (before, time, np.int64(-1)))
    return made + 1 + answers


@small_kernel
def step_back(cursors: Int64s, found: Int64s, key: int) -> None:
    """Move the cursors to before the rows of a key."""
    for run in range(cursors.shape[1]):
        cursors[0, run] = cursors[1, run] = found[2 * key, run]


@kernel
def go_the_short_way(
    ready: Int64s,
    pending: Int64s,
    tables: tuple[Int64s, Int64s],
    cursors: tuple[Int64s, Int64s],
    shape: Int64s,
    keys_found: tuple[Int64s, Int64s, Int64s],
    places: Int64s,
    out: Int64s,
) -> Int64s:
    """Go on with the next keys of `ready` as long as they take the short way and are not pending; returns
    `out`, or a larger copy.

    tables, cursors   of the input, and of the answers
    keys_found        room for keys, as in `next_keys`, and for where both have them, as in `locate_keys`
    places            int64[6]: the next row of `ready` and of `pending`, how many rows of `out` there are,
                      how many keys are to be looked up together, for how many keys the short way is not to
                      be tried then, and for how many it was not before this call
    """
    kw, i, p, begin = shape[0], places[0], places[1], places[0]
    keys, found, found_answers = keys_found
    while i < ready.shape[1]:
        if p < pending.shape[1] and compare_keys(ready, i, pending, p, kw) >= 0:
            return out
        count = next_keys(ready, i, kw, keys, min(places[3], keys.shape[1]))
        while p < pending.shape[1] and compare_keys(keys, count - 1, pending, p, kw) >= 0:
            count -= 1  # the cursors must not pass the next pending key
            places[3] = count  # where many are pending there are few between them
        locate_keys(tables[1], cursors[1], keys, count, kw, found_answers)
        locate_keys(tables[0], cursors[0], keys, count, kw, found)
        for key in range(count):
            if places[2] + 2 > out.shape[1]:
                out = more_rows(out, places[2])
            made = put_least(ready, i, tables, keys_found, key, shape, out, places[2])
            if made < 0:
                step_back(cursors[0], found, key)
                step_back(cursors[1], found_answers, key)
                places[3] = 1
                places[5] = min(2 * places[5] + 1, RESTED_KEYS_MAX) if places[0] == begin else np.int64(0)
                places[4] = places[5]
                return out
            i = keys[kw, key]
            places[0], places[2] = i, made
        places[3] = min(2 * places[3], KEYS_AT_ONCE)
    return out
