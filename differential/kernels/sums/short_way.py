"""Fast path of `reduce_sums.py`: nearly all keys have one ready time.

The rows of a key are added up where they lie, run by run: nothing is copied or sorted. Of rows later than the
time, only their minimal times are noted, each with a sum that is 0 if its rows cancel.

All work for each key is in one kernel, made of small ones, without arrays that are created or passed on the
way: counting references to arrays took a third of its time.

    progress   int64[4, ≥ runs, ≥ 8]: two lines of cursors, as in `search.py`; the next row of `ready` and of
               `pending`, number of rows of `out` and of `pended`, number of keys to look up together; the
               shape of `reduce_sums`, one step in each chain, and the number of classes
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.closure import key_end
from differential.kernels.history.times import earlier_time
from differential.kernels.overflow import magnitude, wrapped_add
from differential.kernels.rows.memory import HEADER, load
from differential.kernels.rows.probing import KEYS_AT_ONCE, locate_keys
from differential.kernels.rows.search import whose_turn
from differential.kernels.sums.corners import class_of, put_corrections, sum_corners
from differential.thresholds import LATER_TIMES_MAX
from progress.compiled.kernel import Int64s, kernel, small_kernel
from progress.times.time_words import LEVELS_MAX
from progress.times.word_order import word_is_beyond, word_less_equal, word_lub

SUM_BITS: Final = 63 - LEVELS_MAX
"""Sums of a class of up to this many bits can be added up, over all classes, without leaving a word."""

SPREAD: Final = 0x1E3779B97F4A7C15
"""Factor for amounts at times, so that nearly always only amounts at one time cancel."""

IS_OVER: Final = 0
NEEDS_ROOM: Final = 1
IS_LONG: Final = 2


@small_kernel
def what_is_later(later: int, time: int, guards: int) -> int:
    """Return the fields in which `later` differs from `time`, the others 0.

    For every word: `later` ≤ lub(word, time) iff this is ≤ word. Requires: time ≤ later.
    """
    low, rest, fields = np.int64(1), guards, np.int64(0)
    while rest != 0:
        guard = rest & -rest
        if (later ^ time) & (guard - low) != 0:
            fields |= later & (guard - low)
        low, rest = guard << 1, rest ^ guard
    return fields


@small_kernel
def note_later(later: Int64s, time: int, amount: int, frontier: Int64s, guards: int) -> bool:
    """Note a later time, and an amount there; return False if the key must take the long way.

    later   int64[2, LATER_TIMES_MAX + 1]: an antichain of times, and the amounts at each; at the end, their
            number
    """
    count = later[0, LATER_TIMES_MAX]
    for index in range(count):
        if later[0, index] == time:
            later[1, index] += amount
            return True
        if word_less_equal(later[0, index], time, guards):
            return True
    if not word_is_beyond(time, frontier, guards):
        return False  # a second time at which the answer may change
    at = np.int64(0)
    for index in range(count):
        if not word_less_equal(time, later[0, index], guards):
            later[0, at], later[1, at] = later[0, index], later[1, index]
            at += 1
    if at == LATER_TIMES_MAX:
        return False
    later[0, LATER_TIMES_MAX] = at + 1
    while at > 0 and later[0, at - 1] > time:
        later[0, at], later[1, at] = later[0, at - 1], later[1, at - 1]
        at -= 1
    later[0, at], later[1, at] = time, amount
    return True


@small_kernel
def note_row(
    later: Int64s, word: int, amount: int, time: int, nearest: int, frontier: Int64s, guards: int
) -> bool:
    """Note a row that is later than `time`, the only ready one; return False if that takes the long way.

    nearest   the only later time that has been noted; -1: none or several
    """
    if nearest >= 0 and word_less_equal(what_is_later(nearest, time, guards), word, guards):
        if not word_less_equal(word, nearest, guards):
            return True  # Fast path: later than the noted time
    spread = word_lub(word, earlier_time(time, guards), guards) * SPREAD | 1
    return note_later(later, word_lub(word, time, guards), amount * spread, frontier, guards)


@small_kernel
def sum_run(
    table: Int64s,
    run: int,
    span: tuple[int, int],
    time: int,
    progress: Int64s,
    frontier: Int64s,
    sums: Int64s,
    later: Int64s,
) -> int:
    """Add the rows of the span of a run to the sums of their classes; return < 0 if it takes the long way.

    If the table is apart its rows are earlier than the new ones, wherever they were advanced to: at time 0.
    Rows that are known to be incomplete do not count.
    """
    guards, exact, has_components = progress[3, 2], progress[3, 4], progress[3, 5] != 0
    is_apart, is_filtered = exact < 0 and guards & (guards - 1) == 0, 0 <= exact <= run
    at = HEADER + 3 * (progress[3, 0] + progress[3, 1])
    wrapped, component, word, nearest = np.int64(0), np.int64(0), np.int64(0), np.int64(-1)
    if later[0, LATER_TIMES_MAX] == 1:
        nearest = later[0, 0]
    for row in range(span[0], span[1]):
        if not is_apart:
            word = load(table[run, at], table[run, at + 1], table[run, at + 2], row)
            if is_filtered and word_is_beyond(word, frontier, guards):
                continue
        if has_components:
            component = load(table[run, at - 3], table[run, at - 2], table[run, at - 1], row)
        diff = load(table[run, at + 3], table[run, at + 4], table[run, at + 5], row)
        if word_less_equal(word, time, guards):
            number = class_of(word, time, guards, progress[3, 6])
            before = sums[number, component]
            after = wrapped_add(before, diff)
            sums[number, component] = after
            wrapped |= (before ^ after) & (diff ^ after)  # below 0 if it has left its word
            continue
        if not note_row(later, word, diff * (2 * component + 1), time, nearest, frontier, guards):
            return np.int64(-1)
        nearest = later[0, 0] if later[0, LATER_TIMES_MAX] == 1 else np.int64(-1)
    return wrapped


@small_kernel
def sum_new(ready: Int64s, first: int, stop: int, progress: Int64s, sums: Int64s) -> int:
    """Add new rows, which are at the time itself; return < 0 if it takes the long way."""
    column, component, wrapped = progress[3, 0] + progress[3, 1], np.int64(0), np.int64(0)
    for row in range(first, stop):
        if progress[3, 5] != 0:
            component = ready[column - 1, row]
        diff, before = ready[column + 1, row], sums[0, component]
        after = wrapped_add(before, diff)
        sums[0, component] = after
        wrapped |= (before ^ after) & (diff ^ after)
    return wrapped


@small_kernel
def is_short(sums: Int64s, later: Int64s) -> bool:
    """Return True if all sums of corners fit, and no noted amounts cancel."""
    for index in range(later[0, LATER_TIMES_MAX]):
        if later[1, index] == 0:
            return False
    largest = np.int64(0)
    for number in range(sums.shape[0]):
        for component in range(sums.shape[1]):
            largest |= magnitude(sums[number, component])
    return largest >> SUM_BITS == 0


@small_kernel
def put_later(later: Int64s, pended: Int64s, keys: Int64s, key: int, kw: int, start: int) -> int:
    """Write (key, time) for the noted later times behind the first `start` rows of `pended`.

    The key is in column `key` of `keys`. Return the row behind them. Requires: room for LATER_TIMES_MAX.
    """
    count = later[0, LATER_TIMES_MAX]
    for index in range(count):
        for column in range(kw):
            pended[column, start + index] = keys[column, key]
        pended[kw, start + index] = later[0, index]
    return start + count


@small_kernel
def one_time(
    ready: Int64s, pending: Int64s, first: int, ends: tuple[int, int], first_pending: int, progress: Int64s
) -> int:
    """Return the time of all new rows and pending times of a key; -1 if there are several. ends: of both."""
    column, last = progress[3, 0] + progress[3, 1], np.int64(-1)
    for row in range(first, ends[0]):
        if last >= 0 and ready[column, row] != last:
            return np.int64(-1)
        last = ready[column, row]
    for row in range(first_pending, ends[1]):
        if last >= 0 and pending[progress[3, 0], row] != last:
            return np.int64(-1)
        last = pending[progress[3, 0], row]
    return last


@small_kernel
def next_keys(ready: Int64s, pending: Int64s, progress: Int64s, keys: Int64s, ends: Int64s, most: int) -> int:
    """Copy the next keys of `ready` and `pending`, up to `most`; return their number.

    `ends` gets, for each, the row after its last in both.
    """
    kw, i, p, count = progress[3, 0], progress[2, 0], progress[2, 1], np.int64(0)
    while count < most and (i < ready.shape[1] or p < pending.shape[1]):
        order = whose_turn(ready, i, pending, p, kw)
        for word in range(kw):
            keys[word, count] = ready[word, i] if order <= 0 else pending[word, p]
        if order <= 0:
            i, _ = key_end(ready, i, kw, kw)
        if order >= 0:
            p, _ = key_end(pending, p, kw, kw)
        ends[0, count], ends[1, count] = i, p
        count += 1
    return count


@small_kernel
def sum_key(
    table: Int64s,
    spans: Int64s,
    key: int,
    time: int,
    progress: Int64s,
    frontier: Int64s,
    sums: Int64s,
    later: Int64s,
) -> int:
    """Compute the sums by class of a key, and note its later times; return < 0 if it takes the long way.

    `time` below 0 takes the long way, too.
    """
    for number in range(sums.shape[0]):
        for component in range(sums.shape[1]):
            sums[number, component] = 0
    later[0, LATER_TIMES_MAX] = 0
    wrapped = time
    for run in range(table.shape[0]):
        if wrapped >= 0 and spans[2 * key, run] < spans[2 * key + 1, run]:
            span = (spans[2 * key, run], spans[2 * key + 1, run])
            wrapped = sum_run(table, run, span, time, progress, frontier, sums, later)
    return wrapped


@kernel
def go_the_short_way(
    ready: Int64s,
    pending: Int64s,
    table: Int64s,
    frontier: Int64s,
    aggregates: Int64s,
    progress: Int64s,
    out: Int64s,
    pended: Int64s,
) -> int:
    """Process the next keys as long as they take the short way, and there is room; `progress` is updated.

    Return IS_OVER, NEEDS_ROOM or IS_LONG; at IS_LONG the cursors are at the rows of the next key.

    Keys are looked up together. Behind a key that stops it, it goes on with one key, and then with twice as
    many each time, so that few lookups are in vain. Cost: for each key the rows of its history.
    """
    kw, i, p = progress[3, 0], progress[2, 0], progress[2, 1]
    emitted, waiting, classes, runs = progress[2, 2], progress[2, 3], progress[3, 7], table.shape[0]
    sums = np.zeros((classes, aggregates[5, 0] if aggregates.shape[0] > 2 else np.int64(2)), np.int64)
    most = min(KEYS_AT_ONCE, ready.shape[1] - i + pending.shape[1] - p)
    later, ends = np.zeros((2, LATER_TIMES_MAX + 1), np.int64), np.empty((2, most), np.int64)
    keys, spans = np.empty((kw, most), np.int64), np.empty((2 * most, runs), np.int64)
    while i < ready.shape[1] or p < pending.shape[1]:
        count = next_keys(ready, pending, progress, keys, ends, min(most, max(progress[2, 4], 1)))
        locate_keys(table, progress, keys, count, kw, spans)
        for key in range(count):
            end, end_pending = ends[0, key], ends[1, key]
            stopped = np.int64(IS_OVER)
            if emitted + classes + 2 > out.shape[1] or waiting + LATER_TIMES_MAX > pended.shape[1]:
                stopped = np.int64(NEEDS_ROOM)
            else:
                time = one_time(ready, pending, i, (end, end_pending), p, progress)
                wrapped = sum_key(table, spans, key, time, progress, frontier, sums, later)
                if wrapped >= 0 and progress[3, 4] < 0:
                    wrapped = sum_new(ready, i, end, progress, sums)
                if wrapped < 0 or not is_short(sums, later):
                    stopped = np.int64(IS_LONG)
            if stopped != IS_OVER:
                # NEEDS_ROOM: the cursors have to be before this key, or at it, which is the same to a search.
                for run in range(runs):
                    progress[0, run], progress[1, run] = spans[2 * key, run], spans[2 * key + 1, run]
                    if stopped == NEEDS_ROOM:
                        progress[1, run] = progress[0, run]
                progress[2, 4] = 1
                return stopped
            waiting = put_later(later, pended, keys, key, kw, waiting)
            sum_corners(sums)
            begin = emitted
            emitted = put_corrections(sums, aggregates, time, out, kw, emitted)
            for word in range(kw):
                for row in range(begin, emitted):
                    out[word, row] = keys[word, key]
            i, p = end, end_pending
            progress[2, 0], progress[2, 1], progress[2, 2], progress[2, 3] = i, p, emitted, waiting
        progress[2, 4] = min(2 * max(progress[2, 4], 1), KEYS_AT_ONCE)
    return np.int64(IS_OVER)
