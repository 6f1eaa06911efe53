"""The interesting times of a key: where its answer may have to change.

Seeds are the times of new rows and the ready pending times. Interesting are the seeds, and the lub of an
interesting time with any time of the history of the key or of its answer. So for every t ≥ a seed there is a
latest interesting time ≤ t, and the history up to it is the history up to t: an answer that is right there is
right at t.

    times   int64[3, room]: the times so far, ascending as words (which extends their order), and for
            each a mark ≥ -1 and a value for the caller, inherited from the latest earlier time when a lub is
            added
    state   int64[≥ 4]: number of times; their floor, the glb of all seeds; more for the caller

Times beyond the frontier are added but not extended: the minimal ones stay pending and become seeds when they
are ready. That suffices: a seed's own closure contains the later times. With an empty frontier nothing is
beyond.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.merging.merge import copy_rows
from differential.kernels.rows.search import same_key
from progress.compiled.kernel import Int64s, kernel, small_kernel
from progress.times.word_order import word_glb, word_is_beyond, word_less_equal, word_lub

ADDED: Final = -2


@kernel
def more_room(times: Int64s, count: int) -> Int64s:
    """Return a copy with room for more than twice as many times, which one more base time may need."""
    larger = np.empty((3, 4 * count + 4), np.int64)
    copy_rows(times, count, larger)
    return larger


@kernel
def add_time(times: Int64s, count: int, time: int) -> int:
    """Insert a time in order unless it is there; return the number of times. Requires: room for one more."""
    low = np.int64(0)
    high = count
    while low < high:
        middle = (low + high) >> 1
        if times[0, middle] < time:
            low = middle + 1
        else:
            high = middle
    if low < count and times[0, low] == time:
        return count
    for row in range(3):
        for at in range(count, low, -1):
            times[row, at] = times[row, at - 1]
    times[0, low] = time
    times[1, low] = ADDED
    return count + 1


@kernel
def close_with(times: Int64s, count: int, base: int, frontier: Int64s, guards: int) -> int:
    """Add the lubs of all times that are ready with `base`; return the number of times.

    Requires: room for 2·count + 1 times. An added time need not be extended itself: `base` is before it
    already.
    """
    before = count
    at = np.int64(0)
    while at < count:
        time = times[0, at]
        lub = word_lub(time, base, guards)
        if lub != time and not word_is_beyond(time, frontier, guards):
            count = add_time(times, count, lub)
        at += 1
    if count > before:
        # The earlier ready times are closed under lub, so the last one before a time is the latest.
        for at in range(count - 1, -1, -1):
            if times[1, at] == ADDED:
                times[1, at] = -1
                for earlier in range(at - 1, -1, -1):
                    if times[1, earlier] != ADDED and word_less_equal(
                        times[0, earlier], times[0, at], guards
                    ):
                        times[1, at] = times[1, earlier]
                        times[2, at] = times[2, earlier]
                        break
    return count


@small_kernel
def key_end(words: Int64s, start: int, kw: int, column: int) -> tuple[int, bool]:
    """Return (row after the last one with the key of row `start`, True if the times in `column` are all the
    same).
    """
    row = start + 1
    one_time = True
    while row < words.shape[1] and same_key(words, row, start, kw):
        one_time = one_time and words[column, row] == words[column, start]
        row += 1
    return row, one_time


@kernel
def with_seeds(
    words: Int64s,
    start: int,
    stop: int,
    column: int,
    times: Int64s,
    state: Int64s,
    frontier: Int64s,
    guards: int,
) -> Int64s:
    """Add the times of the rows [start, stop), in `column`, as seeds; return `times`, or a larger copy."""
    for row in range(start, stop):
        time = words[column, row]
        count = state[0]
        if count == 0:
            times[0, 0] = time
            state[0] = 1
            state[1] = time
        elif time != times[0, 0]:
            if times.shape[1] <= 2 * count + 2:
                times = more_room(times, count)
            state[1] = word_glb(state[1], time, guards)
            count = close_with(times, count, time, frontier, guards)
            state[0] = add_time(times, count, time)
    return times


@kernel
def closed_with(
    rows: Int64s, count: int, column: int, times: Int64s, state: Int64s, frontier: Int64s, guards: int
) -> Int64s:
    """Close the times with those of the first `count` rows, in `column`; return `times`, or a larger copy.

    Requires: these are ≥ the floor.
    """
    last = state[1]
    for row in range(count):
        time = rows[column, row]
        if time != state[1] and time != last:
            if times.shape[1] <= 2 * state[0] + 2:
                times = more_room(times, state[0])
            state[0] = close_with(times, state[0], time, frontier, guards)
            last = time
    return times


@kernel
def is_minimal(times: Int64s, index: int, frontier: Int64s, guards: int) -> bool:
    """Return True if no earlier time beyond the frontier comes before times[0, index], which is beyond it."""
    for earlier in range(index):
        if word_less_equal(times[0, earlier], times[0, index], guards) and word_is_beyond(
            times[0, earlier], frontier, guards
        ):
            return False
    return True
