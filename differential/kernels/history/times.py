"""Columns of times: their minimal elements, and moving them along a path.

Orders and lubs of single words are in `progress/times/word_order.py`; `ready.py` finds the complete rows.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.ready import minimal_times
from progress.compiled.kernel import Int64s, kernel, small_kernel

__all__ = [
    "earlier_time",
    "earlier_times",
    "latest_counter",
    "minimal_times",
    "shift_times",
    "steps_of",
    "take_turns",
]


@small_kernel
def steps_of(guards: int) -> int:
    """Return one step in each chain: a word with the lowest bit of each field between guards."""
    steps, rest = np.int64(1), guards
    while rest & (rest - 1) != 0:  # each guard but the highest has one more chain above it
        steps |= (rest & -rest) << 1
        rest &= rest - 1
    return steps


@small_kernel
def earlier_time(time: int, guards: int) -> int:
    """Return the time one step earlier in each chain that has begun.

    No corner of the time (`reduce_sums.py`) is earlier.
    """
    low, rest = np.int64(1), guards
    while rest != 0:
        guard = rest & -rest
        if time & (guard - low) != 0:
            time -= low
        low, rest = guard << 1, rest ^ guard
    return time


@kernel
def earlier_times(frontier: Int64s, guards: int) -> Int64s:
    """Return the minimal ones of the times that are one step earlier than those of an antichain."""
    earlier = np.empty(frontier.shape[0], np.int64)
    for index in range(frontier.shape[0]):
        earlier[index] = earlier_time(frontier[index], guards)
    return minimal_times(earlier, guards)


@kernel
def shift_times(words: Int64s, keep: int, add: int) -> Int64s:
    """Return the same rows at times (t & keep) + add, in a new array."""
    columns, rows = words.shape
    out = np.empty((columns, rows), np.int64)
    for column in range(columns):
        for row in range(rows):
            out[column, row] = words[column, row]
    for row in range(rows):
        out[columns - 2, row] = (words[columns - 2, row] & keep) + add
    return out


@kernel
def latest_counter(words: Int64s, shift: int, mask: int) -> int:
    """Return the largest counter at `shift` and `mask` among the times of the rows; 0 without rows."""
    latest = np.int64(0)
    column = words.shape[0] - 2
    for row in range(words.shape[1]):
        counter = (words[column, row] >> shift) & mask
        if counter > latest:
            latest = counter
    return latest


@kernel
def take_turns(words: Int64s, shift: int, spacing: int, latest: int) -> Int64s:
    """Return rows without their first word, a priority, at the iterations that the priority selects.

        words   int64[w + 3, n]   priority, w words, time, diff; a priority below 0 counts as 0

    `shift` is the position of the counter. No iteration is later than `latest`. Requires: the counter of each
    row is 0 before. Cost: one pass, O(n · w).
    """
    columns, rows = words.shape
    out = np.empty((columns - 1, rows), np.int64)
    for column in range(1, columns):
        for row in range(rows):
            out[column - 1, row] = words[column, row]
    for row in range(rows):
        left = max(words[0, row], 0)
        size = 0
        while left > 0:
            left >>= 1
            size += 1
        out[columns - 3, row] += min(size * spacing, latest) << shift
    return out
