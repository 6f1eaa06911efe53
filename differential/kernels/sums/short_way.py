"""The short way of `reduce_sums.py`: keys of one ready time, as nearly all are.

The rows of a key are added up where they are found, run by run: nothing is copied or sorted. Of what is later
than the time only the minimal times are noted, with a sum that is 0 if what is there cancels.

All that is done for each key is in one kernel, of small ones, without arrays that are made or change hands
on the way: what counts references to arrays took a third of its time.

    places   int64[4, ≥ runs, ≥ 8]: two lines of cursors, as in `search.py`; where it is: the next row of
             `ready` and of `pending`, how many rows of `out` and of `pended` there are, how many keys are
             to be looked up together; the shape of `reduce_sums`, one step in each chain, and how many
             classes there are
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
"""Sums of a class with so many bits can be added up, over all classes, without leaving a word."""

SPREAD: Final = 0x1E3779B97F4A7C15
"""What amounts at times are multiplied by, so that only those at one time cancel, or as good as."""

IS_OVER: Final = 0
NEEDS_ROOM: Final = 1
IS_LONG: Final = 2


@small_kernel
def what_is_later(later: int, time: int, guards: int) -> int:
    """The fields in which a later time is not `time`, the others 0: what is behind it is so in these."""
    low, rest, found = np.int64(1), guards, np.int64(0)
    while rest != 0:
        guard = rest & -rest
        if (later ^ time) & (guard - low) != 0:
            found |= later & (guard - low)
        low, rest = guard << 1, rest ^ guard
    return found


@small_kernel
def note_later(later: Int64s, time: int, amount: int, frontier: Int64s, guards: int) -> bool:
    """Note a later time, and what is there; False if that is nothing for the short way.

    later   int64[2, LATER_TIMES_MAX + 1]: an antichain of times, and the amounts at each; at the end, how
            many
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
    kept = np.int64(0)
    for index in range(count):
        if not word_less_equal(time, later[0, index], guards):
            later[0, kept], later[1, kept] = later[0, index], later[1, index]
            kept += 1
    if kept == LATER_TIMES_MAX:
        return False
    later[0, LATER_TIMES_MAX] = kept + 1
    while kept > 0 and later[0, kept - 1] > time:
        later[0, kept], later[1, kept] = later[0, kept - 1], later[1, kept - 1]
        kept -= 1
    later[0, kept], later[1, kept] = time, amount
    return True


@small_kernel
def note_row(
    later: Int64s, word: int, amount: int, time: int, nearest: int, frontier: Int64s, guards: int
) -> bool:
    """Note a row that is later than `time`, which is the only ready one; False if that takes the long way.

    nearest   the only later time that has been noted; -1: none or several
    """
    if nearest >= 0 and word_less_equal(what_is_later(nearest, time, guards), word, guards):
        if not word_less_equal(word, nearest, guards):
            return True  # later than what has been noted, as nearly all that is later
    spread = word_lub(word, earlier_time(time, guards), guards) * SPREAD | 1
    return note_later(later, word_lub(word, time, guards), amount * spread, frontier, guards)


@small_kernel
def sum_run(
    table: Int64s,
    run: int,
    span: tuple[int, int],
    time: int,
    places: Int64s,
    frontier: Int64s,
    sums: Int64s,
    later: Int64s,
) -> int:
    """Add the rows of the span of a run to the sums of their classes; below 0 if it takes the long way.

    If the table is apart its rows are earlier than the new ones, wherever they were advanced to: at time 0.
    Rows that are known not to be complete do not count.
    """
    guards, exact, has_components = places[3, 2], places[3, 4], places[3, 5] != 0
    is_apart, is_filtered = exact < 0 and guards & (guards - 1) == 0, 0 <= exact <= run
    at = HEADER + 3 * (places[3, 0] + places[3, 1])
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
            number = class_of(word, time, guards, places[3, 6])
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
def sum_new(ready: Int64s, first: int, stop: int, places: Int64s, sums: Int64s) -> int:
    """Add new rows, which are at the time itself; below 0 if it takes the long way."""
    column, component, wrapped = places[3, 0] + places[3, 1], np.int64(0), np.int64(0)
    for row in range(first, stop):
        if places[3, 5] != 0:
            component = ready[column - 1, row]
        diff, before = ready[column + 1, row], sums[0, component]
        after = wrapped_add(before, diff)
        sums[0, component] = after
        wrapped |= (before ^ after) & (diff ^ after)
    return wrapped


@small_kernel
def is_short(sums: Int64s, later: Int64s) -> bool:
    """Whether all sums of corners fit, and nothing that was noted cancels."""
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
    """Write (key, time) for the later times that were noted behind the `start` rows of `pended`, the key out
    of column `key` of `keys`; returns the row behind them. Requires: room for LATER_TIMES_MAX.
    """
    count = later[0, LATER_TIMES_MAX]
    for index in range(count):
        for column in range(kw):
            pended[column, start + index] = keys[column, key]
        pended[kw, start + index] = later[0, index]
    return start + count


@small_kernel
def one_time(
    ready: Int64s, pending: Int64s, first: int, ends: tuple[int, int], first_pending: int, places: Int64s
) -> int:
    """The time of all new rows and pending times of a key; -1 if there are several. ends: of both."""
    column, last = places[3, 0] + places[3, 1], np.int64(-1)
    for row in range(first, ends[0]):
        if last >= 0 and ready[column, row] != last:
            return np.int64(-1)
        last = ready[column, row]
    for row in range(first_pending, ends[1]):
        if last >= 0 and pending[places[3, 0], row] != last:
            return np.int64(-1)
        last = pending[places[3, 0], row]
    return last


@small_kernel
def next_keys(ready: Int64s, pending: Int64s, places: Int64s, keys: Int64s, ends: Int64s, most: int) -> int:
    """The next keys of `ready` and `pending`, up to `most`; returns how many. `ends` gets, for each, the row
    after its last in both.
    """
    kw, i, p, count = places[3, 0], places[2, 0], places[2, 1], np.int64(0)
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
    found: Int64s,
    key: int,
    time: int,
    places: Int64s,
    frontier: Int64s,
    sums: Int64s,
    later: Int64s,
) -> int:
    """The sums by class of a key, and what is later; below 0 if it takes the long way, or `time` is."""
    for number in range(sums.shape[0]):
        for component in range(sums.shape[1]):
            sums[number, component] = 0
    later[0, LATER_TIMES_MAX] = 0
    wrapped = time
    for run in range(table.shape[0]):
        if wrapped >= 0 and found[2 * key, run] < found[2 * key + 1, run]:
            span = (found[2 * key, run], found[2 * key + 1, run])
            wrapped = sum_run(table, run, span, time, places, frontier, sums, later)
    return wrapped


@kernel
def go_the_short_way(
    ready: Int64s,
    pending: Int64s,
    table: Int64s,
    frontier: Int64s,
    asked: Int64s,
    places: Int64s,
    out: Int64s,
    pended: Int64s,
) -> int:
    """Go on with the next keys as long as they take the short way, and there is room; `places` says where it
    has come to. IS_LONG: the cursors are at the rows of the next key.

    Keys are looked up together. Behind one that stops it, it goes on with one key, and then with twice as
    many each time, so that no more are looked up in vain than are of use.
    Cost: for each key the rows of its history.
    """
    kw, i, p = places[3, 0], places[2, 0], places[2, 1]
    emitted, waiting, classes, runs = places[2, 2], places[2, 3], places[3, 7], table.shape[0]
    sums = np.zeros((classes, asked[5, 0] if asked.shape[0] > 2 else np.int64(2)), np.int64)
    most = min(KEYS_AT_ONCE, ready.shape[1] - i + pending.shape[1] - p)
    later, ends = np.zeros((2, LATER_TIMES_MAX + 1), np.int64), np.empty((2, most), np.int64)
    keys, found = np.empty((kw, most), np.int64), np.empty((2 * most, runs), np.int64)
    while i < ready.shape[1] or p < pending.shape[1]:
        count = next_keys(ready, pending, places, keys, ends, min(most, max(places[2, 4], 1)))
        locate_keys(table, places, keys, count, kw, found)
        for key in range(count):
            end, end_pending = ends[0, key], ends[1, key]
            stopped = np.int64(IS_OVER)
            if emitted + classes + 2 > out.shape[1] or waiting + LATER_TIMES_MAX > pended.shape[1]:
                stopped = np.int64(NEEDS_ROOM)
            else:
                time = one_time(ready, pending, i, (end, end_pending), p, places)
                wrapped = sum_key(table, found, key, time, places, frontier, sums, later)
                if wrapped >= 0 and places[3, 4] < 0:
                    wrapped = sum_new(ready, i, end, places, sums)
                if wrapped < 0 or not is_short(sums, later):
                    stopped = np.int64(IS_LONG)
            if stopped != IS_OVER:
                # NEEDS_ROOM: the cursors are to be before this key, or at it, which is the same to a search.
                for run in range(runs):
                    places[0, run], places[1, run] = found[2 * key, run], found[2 * key + 1, run]
                    if stopped == NEEDS_ROOM:
                        places[1, run] = places[0, run]
                places[2, 4] = 1
                return stopped
            waiting = put_later(later, pended, keys, key, kw, waiting)
            sum_corners(sums)
            begin = emitted
            emitted = put_corrections(sums, asked, time, out, kw, emitted)
            for word in range(kw):
                for row in range(begin, emitted):
                    out[word, row] = keys[word, key]
            i, p = end, end_pending
            places[2, 0], places[2, 1], places[2, 2], places[2, 3] = i, p, emitted, waiting
        places[2, 4] = min(2 * max(places[2, 4], 1), KEYS_AT_ONCE)
    return np.int64(IS_OVER)
