"""Frames of ordered windows: for each row a range of rows of its group, and what these add up to.

    values, there   int64[n]: the word of a value, and whether it is one (not null)
    frames          int64[2, n]: the first row of the frame, and the one behind its last; both ascend within a
                    group, so that a frame never goes back
    result          int64[2, n]: whether the frame has a value, and the word of the answer

Cost: O(1) for each row on average; sums of floats O(1) where frames only grow, and O(rows of the frame) where
they also move on, because what was added to a float cannot be taken away again.
"""

from __future__ import annotations

import numpy as np

from progress.compiled.kernel import Int64s, kernel

INT_MAX = (1 << 63) - 1


@kernel
def frame_extremes(values: Int64s, there: Int64s, frames: Int64s, sign: int) -> Int64s:
    """Return the least values (`sign` 1), or the greatest (-1), of the frames."""
    rows = values.shape[0]
    out = np.zeros((2, rows), np.int64)
    line = np.empty(rows, np.int64)  # rows whose values could still be the extreme, best first
    head = tail = done = np.int64(0)
    for row in range(rows):
        start, stop = frames[0, row], frames[1, row]
        if start >= done:
            head = tail = np.int64(0)
            done = start
        while done < stop:
            if there[done] != 0:
                while tail > head and (
                    values[line[tail - 1]] >= values[done]
                    if sign > 0
                    else values[line[tail - 1]] <= values[done]
                ):
                    tail -= 1
                line[tail] = done
                tail += 1
            done += 1
        while head < tail and line[head] < start:
            head += 1
        if head < tail and line[head] < stop:
            out[0, row] = 1
            out[1, row] = values[line[head]]
    return out


@kernel
def frame_float_sums(values: Int64s, there: Int64s, frames: Int64s) -> Int64s:
    """Return the sums of floats, given and returned as bits, added from the first row of each frame on."""
    rows = values.shape[0]
    out = np.zeros((2, rows), np.int64)
    numbers, sums = values.view(np.float64), out[1].view(np.float64)
    first = done = np.int64(-1)
    total, count = 0.0, np.int64(0)
    for row in range(rows):
        start, stop = frames[0, row], frames[1, row]
        if start != first or stop < done:
            total, count, first, done = 0.0, np.int64(0), start, start
        while done < stop:
            if there[done] != 0:
                total += numbers[done]
                count += 1
            done += 1
        if count > 0:
            out[0, row] = count
            sums[row] = total
    return out


@kernel
def range_frames(words: Int64s, groups: Int64s, before: int, behind: int, sides: int) -> Int64s:
    """Return the frames of the rows whose word is within [word + before, word + behind].

    words     of the column of the order, ascending within each group
    groups    int64[2, n]: where the group of each row starts and ends
    sides     1: `before` is a bound, or else frames begin with their group; + 2: so is `behind`
    """
    rows = words.shape[0]
    out = np.empty((2, rows), np.int64)
    first = last = np.int64(0)
    for row in range(rows):
        start, stop = groups[0, row], groups[1, row]
        if row == start:
            first = last = start
        if sides & 1 != 0:
            while first < stop and is_below(words[first], words[row], before):
                first += 1
            out[0, row] = first
        else:
            out[0, row] = start
        if sides & 2 != 0:
            while last < stop and not is_above(words[last], words[row], behind):
                last += 1
            out[1, row] = last
        else:
            out[1, row] = stop
        if out[1, row] < out[0, row]:
            out[1, row] = out[0, row]
    return out


@kernel
def is_below(word: int, of: int, by: int) -> bool:
    """Return True if `word` < `of` + `by`, whatever fits 64 bits."""
    if by >= 0:
        return word < of or (word >= of and of <= INT_MAX - by and word < of + by) or of > INT_MAX - by
    return of >= -INT_MAX - 1 - by and word < of + by


@kernel
def is_above(word: int, of: int, by: int) -> bool:
    """Return True if `word` > `of` + `by`, whatever fits 64 bits."""
    if by >= 0:
        return of <= INT_MAX - by and word > of + by
    return of < -INT_MAX - 1 - by or word > of + by
