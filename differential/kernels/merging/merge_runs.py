"""Merging two sorted runs, a block at a time.

This is where a trace is compacted: times are advanced to its `since`, and rows that have become equal are
summed up. That preserves, for every t ≥ some time of since, the sum of diffs at times ≤ t, for each (key,
value).

Advancing times can change their order as words, but only among rows of the same (key, value). So rows are
first merged by (key, value) alone, and then sorted and summed within each such *group*.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import excess, refuse, wide_add
from differential.kernels.rows.columns import decode_column, encode_column
from differential.kernels.rows.memory import HEADER, ROWS
from progress.compiled.kernel import Int64s, kernel, small_kernel
from progress.times.word_order import word_advance, word_lub

BLOCK_ROWS: Final = 512
"""Rows decoded at a time: two blocks in and one out stay in the first-level cache."""


@small_kernel
def sort_times(times: Int64s, diffs: Int64s, first: int, count: int) -> int:
    """Sort `count` (time, diff) pairs from `first` on by time, sum equal times, drop zeros; return pairs
    left.

    Requires: no diff is 0. Cost: one pass if times ascend already, as those of iterations do; else shell
    sort, so that a key with thousands of times does no harm.
    """
    ascending = first + 1
    while ascending < first + count and times[ascending - 1] < times[ascending]:
        ascending += 1
    if ascending == first + count:
        return count
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for row in range(first + gap, first + count):
            time = times[row]
            diff = diffs[row]
            at = row
            while at >= first + gap and times[at - gap] > time:
                times[at] = times[at - gap]
                diffs[at] = diffs[at - gap]
                at -= gap
            times[at] = time
            diffs[at] = diff
        gap //= 3
    end = first
    row = first
    excesses = np.int64(0)
    while row < first + count:
        time = times[row]
        total = diffs[row]
        high = total >> 63
        row += 1
        while row < first + count and times[row] == time:
            high, total = wide_add(high, total, diffs[row])
            row += 1
        excesses |= excess(high, total)
        if total != 0:
            times[end] = time
            diffs[end] = total
            end += 1
    refuse(excesses)
    return end - first


@small_kernel
def merge_block(blocks: Int64s, ends: Int64s, out: Int64s, out_rows: int, room: int) -> int:
    """Move up to `room` rows, in order of their groups, from two blocks behind the first `out_rows` rows of
    `out`.

    blocks   int64[2 · columns, block], one block above the other
    ends     int64[4]: next row and end of the first block, the same of the second; a block at its end is over
    Stops early when a block that had rows comes to its end. Return the rows moved.
    """
    columns = out.shape[0]
    at_a, end_a, at_b, end_b = ends[0], ends[1], ends[2], ends[3]
    moved = np.int64(0)
    if at_a == end_a or at_b == end_b:
        side = 1 if at_a == end_a else 0
        start = ends[2 * side]
        moved = min(room, ends[2 * side + 1] - start)
        for column in range(columns):
            for row in range(moved):
                out[column, out_rows + row] = blocks[side * columns + column, start + row]
        ends[2 * side] += moved
        return moved
    while moved < room and at_a < end_a and at_b < end_b:
        later = np.int64(0)  # computed without a branch on the rows, which could not be predicted
        for column in range(columns - 3, -1, -1):
            left = blocks[column, at_a]
            right = blocks[columns + column, at_b]
            later = (right < left) | ((right == left) & later)
        at = at_b if later == 1 else at_a
        for column in range(columns):
            out[column, out_rows + moved] = blocks[later * columns + column, at]
        at_a += 1 - later
        at_b += later
        moved += 1
    ends[0] = at_a
    ends[2] = at_b
    return moved


@kernel
def decode_block(table: Int64s, run: int, start: int, rows: int, blocks: Int64s) -> None:
    """Decode some rows of run 0 or 1 into its half of `blocks`."""
    columns = blocks.shape[0] // 2
    for column in range(columns):
        decode_column(table, run, column, start, rows, blocks, run * columns + column)


@kernel
def continues_group(blocks: Int64s, ends: Int64s, out: Int64s, out_rows: int) -> bool:
    """Return True if a next row of either block belongs to the group of the last row of `out`."""
    columns = out.shape[0]
    for run in range(2):
        if ends[2 * run] == ends[2 * run + 1] or out_rows == 0:
            continue
        same = True
        for column in range(columns - 2):
            same = same and blocks[run * columns + column, ends[2 * run]] == out[column, out_rows - 1]
        if same:
            return True
    return False


@kernel
def keep_rows(words: Int64s, start: int, count: int) -> Int64s:
    """Move `count` rows from `start` on to the front; return the array, or a larger one if they fill half."""
    columns = words.shape[0]
    target = words
    if 2 * count > words.shape[1]:
        target = np.empty((columns, 4 * count), np.int64)
    for column in range(columns):
        for row in range(count):
            target[column, row] = words[column, start + row]
    return target


@small_kernel
def same_group(words: Int64s, a: int, b: int) -> bool:
    """Return True if two rows have the same key and value."""
    for column in range(
        words.shape[0] - 3, -1, -1
    ):  # the last word differs most often: a branch easily predicted
        if words[column, a] != words[column, b]:
            return False
    return True


@small_kernel
def settle_groups(words: Int64s, rows: int, since: Int64s, guards: int, last_is_open: int) -> tuple[int, int]:
    """Advance the times of rows sorted by group, sort and sum each group, in place.

    Return (number of rows settled, number of rows left open). If `last_is_open` is 1, the last group is not
    settled: its rows follow the settled ones.
    """
    columns = words.shape[0]
    seen = np.int64(-1)
    advanced = np.int64(-1)
    for row in range(rows):
        time = words[columns - 2, row]
        if time != seen:
            seen = time
            advanced = word_advance(time, since, guards)
        words[columns - 2, row] = advanced
    settled = np.int64(0)
    row = np.int64(0)
    while row < rows:
        first = row
        row += 1
        while row < rows and same_group(words, first, row):
            row += 1
        count = row - first
        if row == rows and last_is_open == 1:
            for column in range(columns):
                for offset in range(count):
                    words[column, settled + offset] = words[column, first + offset]
            return settled, count
        if count > 1:
            count = sort_times(words[columns - 2], words[columns - 1], first, count)
        if settled == first:  # Fast path: nothing has cancelled so far
            settled += count
            continue
        for offset in range(count):
            for column in range(columns):
                words[column, settled + offset] = words[column, first + offset]
        settled += count
    return settled, np.int64(0)


@kernel
def write_rows(words: Int64s, rows: int, tables: Int64s, progress: Int64s, guards: int) -> bool:
    """Append rows to the run of line 2; return False if a diff does not fit its column."""
    columns = words.shape[0]
    entry = HEADER + 3 * (columns - 1)
    width, base = tables[2, entry + 1], tables[2, entry + 2]
    if width < 8:
        for row in range(rows):
            if (words[columns - 1, row] - base) >> (8 * width) != 0:
                return False
    seen = np.int64(-1)
    lub = progress[3]
    for row in range(rows):
        if words[columns - 2, row] != seen:
            seen = words[columns - 2, row]
            lub = word_lub(seen, lub, guards)
    progress[3] = lub
    for column in range(columns):
        encode_column(words, column, rows, tables, np.int64(2), progress[2])
    progress[2] += rows
    return True


@kernel
def merge_runs(tables: Int64s, progress: Int64s, since: Int64s, guards: int, budget: int) -> int:
    """Go on merging the runs of lines 0 and 1 into the memory of line 2; return the rows read.

    progress   int64[5]: next row of each run, rows written, lub of the written times, 1 after an overflow
    since      antichain of words to advance times to
    Stops after `budget` rows read, but never within a group; it is finished when both runs are at their ends.
    A diff that does not fit its column sets the overflow: start again with a wider one. Cost: about 20 ns a
    row.
    """
    columns = (tables.shape[1] - HEADER) // 3
    block = max(64, min(BLOCK_ROWS, budget))
    blocks = np.empty((2 * columns, block), np.int64)
    out = np.empty((columns, 2 * block), np.int64)
    ends = np.zeros(4, np.int64)
    started = progress[0] + progress[1]
    out_rows = np.int64(0)
    while progress[0] < tables[0, ROWS] or progress[1] < tables[1, ROWS]:
        for run in range(2):
            if ends[2 * run] == ends[2 * run + 1]:
                ends[2 * run] = 0
                ends[2 * run + 1] = min(block, tables[run, ROWS] - progress[run])
                decode_block(tables, run, progress[run], ends[2 * run + 1], blocks)
        left = budget - (progress[0] + progress[1] - started)
        room = min(out.shape[1] - out_rows, left)
        if left <= 0:
            if not continues_group(blocks, ends, out, out_rows):
                break
            room = 1
        if out_rows + 1 >= out.shape[1]:
            settled, open_rows = settle_groups(out, out_rows, since, guards, np.int64(1))
            if not write_rows(out, settled, tables, progress, guards):
                progress[4] = 1
                return progress[0] + progress[1] - started
            out = keep_rows(out, settled, open_rows)
            out_rows = open_rows
            continue
        before_a, before_b = ends[0], ends[2]
        out_rows += merge_block(blocks, ends, out, out_rows, room)
        progress[0] += ends[0] - before_a
        progress[1] += ends[2] - before_b
    out_rows, _ = settle_groups(out, out_rows, since, guards, np.int64(0))
    if not write_rows(out, out_rows, tables, progress, guards):
        progress[4] = 1
    return progress[0] + progress[1] - started
