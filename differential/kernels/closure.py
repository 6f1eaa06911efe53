"""The interesting times of a key: where its answer may have to change.

Seeds are the times of new rows and of what was left pending. Interesting are the seeds, and the lub of an
interesting time with any time of the history of the key or of its answer. So for every t ≥ a seed there is a latest interesting time
≤ t, and the history up to it is the history up to t: an answer that is right there is right at t.

    times   int64[2, room]: the times found so far, ascending as words (which extends their order), and for
            each a number ≥ -1 for the caller, inherited from the latest earlier time when a lub is added

Times beyond the frontier are found but not extended: the minimal ones stay pending and become seeds in their
turn. That is enough: a seed's own closure finds what is later than it. With an empty frontier nothing is beyond.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.merge import copy_rows
from progress._compile import Int64s, kernel
from progress.time_words import word_glb, word_is_beyond, word_less_equal, word_lub

ADDED: Final = -2


@kernel
def room_for_times(times: Int64s, count: int) -> Int64s:
    """The array itself if it has room for `2·count + 1` times, which is what one more base time may need."""
    if times.shape[1] > 2 * count:
        return times
    larger = np.empty((2, 4 * count + 4), np.int64)
    copy_rows(times, 0, count, larger, 0)
    return larger


@kernel
def add_time(times: Int64s, count: int, time: int) -> int:
    """Put a time in its place unless it is there; returns how many there are. Requires: room for one more."""
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if times[0, middle] < time:
            low = middle + 1
        else:
            high = middle
    if low < count and times[0, low] == time:
        return count
    for at in range(count, low, -1):
        times[0, at] = times[0, at - 1]
        times[1, at] = times[1, at - 1]
    times[0, low] = time
    times[1, low] = ADDED
    return count + 1


@kernel
def close_with(times: Int64s, count: int, base: int, frontier: Int64s, guards: int) -> int:
    """Add the lubs of all times that are ready with `base`; returns how many times there are.

    Requires: `room_for_times`. What is added needs no second look: it has `base` before it already.
    """
    before = count
    at = 0
    while at < count:
        time = times[0, at]
        lub = word_lub(time, base, guards)
        if lub != time and not word_is_beyond(time, frontier, guards):
            count = add_time(times, count, lub)
        at += 1
    if count > before:
        # Those ready that were there before are closed under lub, so the last one before a time is the latest.
        for at in range(count - 1, -1, -1):
            if times[1, at] == ADDED:
                times[1, at] = -1
                for earlier in range(at - 1, -1, -1):
                    if times[1, earlier] != ADDED and word_less_equal(times[0, earlier], times[0, at], guards):
                        times[1, at] = times[1, earlier]
                        break
    return count


@kernel
def add_seeds(
    words: Int64s, start: int, kw: int, times: Int64s, seeds: int, floor: int, frontier: Int64s, guards: int
) -> tuple[int, Int64s, int, int]:
    """Add the times of the rows from `start` on that share its key: (row after them, times, seeds, floor).

    words   int64[columns, n] sorted by key; the time is the last column but `diff`, which is all that follows
            `kw` and the values; a table of (key, time) has `kw + 1` columns and no diff
    floor   the glb of all seeds; anything if there are none yet
    """
    column = words.shape[0] - (1 if words.shape[0] == kw + 1 else 2)
    row = start
    while row < words.shape[1]:
        for key_column in range(kw):
            if words[key_column, row] != words[key_column, start]:
                return row, times, seeds, floor
        time = words[column, row]
        row += 1
        if seeds > 0 and time == times[0, 0]:
            continue
        times = room_for_times(times, seeds + 1)
        if seeds == 0:
            floor = time
        else:
            floor = word_glb(floor, time, guards)
            seeds = close_with(times, seeds, time, frontier, guards)
        seeds = add_time(times, seeds, time)
    return row, times, seeds, floor


@kernel
def close_with_rows(
    rows: Int64s, count: int, times: Int64s, found: int, floor: int, frontier: Int64s, guards: int
) -> tuple[Int64s, int]:
    """Close the times with those of consolidated rows (the time is the last column but one): (times, found)."""
    column = rows.shape[0] - 2
    last = floor
    for row in range(count):
        time = rows[column, row]
        if time != floor and time != last:
            times = room_for_times(times, found)
            found = close_with(times, found, time, frontier, guards)
            last = time
    return times, found


@kernel
def is_minimal(times: Int64s, index: int, frontier: Int64s, guards: int) -> bool:
    """Whether no earlier time beyond the frontier comes before times[0, index], which is beyond it."""
    for earlier in range(index):
        if word_less_equal(times[0, earlier], times[0, index], guards) and word_is_beyond(
            times[0, earlier], frontier, guards
        ):
            return False
    return True
