"""Reduce by the smallest or largest value, reading no more of a key's history than its answer needs.

For each key with new rows or ready pending times:

    skip   If at every later time the answer so far is smaller than all new values (or equal, where none
           of them takes rows away), it stays. Only the short history of the answer is read: lubs of the
           seeds with its times are all the times at which it may change. Here lubs beyond the frontier
           are extended, too, since the key will not be visited again for them.
    walk   Otherwise go through the values from the smallest on. Once every ready time has a value that is
           present there, larger values cannot matter at any later time either, nor can their times.

    short  Before all that, for keys of one ready time with few relevant rows (`short_least.py`).

A value is walked with its times, which join the interesting ones, so "every ready time" grows while walking.
Why stopping is right: let t be ≥ a seed, and no pending time ≤ t. The latest interesting time w ≤ t is ready
and has all walked rows up to t; the value that is present at w is present at t. If a pending time is ≤ t, the
key is visited again when that time is ready. `flip` -1 reverses the order, for the largest.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.closure import closed_with, key_end, with_seeds
from differential.kernels.history.history import (
    appended,
    consolidate_rows,
    correct,
    gathered,
    more_rows,
    multiplicity,
    pended_times,
    put_rows,
)
from differential.kernels.least.short_least import go_the_short_way, room_for_keys
from differential.kernels.merging.merge import copy_rows, first_rows
from differential.kernels.overflow import is_positive, wide_add
from differential.kernels.rows.memory import LUB, read
from differential.kernels.rows.search import cursors_of, locate, whose_turn
from progress.compiled.kernel import Int64s, kernel, large_kernel
from progress.times.word_order import word_is_beyond, word_less_equal, word_lub


@kernel
def answer_stays(
    ready: Int64s,
    group: tuple[int, int, int],
    times: Int64s,
    count: int,
    answers: Int64s,
    held: int,
    guards: int,
    flip: int,
) -> bool:
    """Return True if at each of the times one value is the answer, and the new rows leave it the smallest.

    group     first and last row of the key in `ready`, and the column of the value
    answers   int64[3, ≥ held]: the history of the answer, consolidated
    """
    first, last, column = group
    at = first if flip == 0 else last
    step = 1 if flip == 0 else -1
    nearest = ready[column, at] ^ flip
    takes = False
    while first <= at <= last and ready[column, at] ^ flip == nearest:
        takes = takes or ready[column + 2, at] < 0
        at += step
    for index in range(count):
        row = np.int64(0)
        has_answer = False
        while row < held:
            total, after = multiplicity(answers, held, row, times[0, index], guards)
            if total != 0:
                value = answers[0, row] ^ flip
                if has_answer or total != 1 or value > nearest or (value == nearest and takes):
                    return False
                has_answer = True
            row = after
        if not has_answer:
            return False
    return True


@kernel
def next_value(table: Int64s, cursors: Int64s, kw: int, ready: Int64s, flip: int, least: Int64s) -> bool:
    """Write the smallest value among all cursors to least[0] (flipped); return False if none is left.

    cursors   int64[2, runs + 1]: rows left of each run; the last column is that of `ready`
    """
    runs = table.shape[0]
    has_value = False
    for run in range(runs + 1):
        if cursors[0, run] == cursors[1, run]:
            continue
        row = cursors[0, run] if flip == 0 else cursors[1, run] - 1
        value = (ready[kw, row] if run == runs else read(table, run, kw, row)) ^ flip
        if not has_value or value < least[0]:
            least[0] = value
            has_value = True
    return has_value


@kernel
def take_value(
    table: Int64s,
    cursors: Int64s,
    ready: Int64s,
    shape: Int64s,
    value_floor: tuple[int, int],
    frontier: Int64s,
    rows: Int64s,
) -> int:
    """Move the cursors past the rows of a value, which go into `rows` int64[2, room]; return their number.

    shape    as in `reduce_least`
    value_floor   the value (flipped), and the floor of times
    Rows beyond the frontier are left out in the lines from shape[3] on, if that is not negative; see
    `gathered_complete`.
    """
    kw, guards, flip = shape[0], shape[1], shape[2]
    value, floor = value_floor
    runs = table.shape[0]
    exact = shape[3] if shape[3] >= 0 else runs
    count = np.int64(0)
    for run in range(runs + 1):
        early = run < runs and word_less_equal(table[run, LUB], floor, guards)
        while cursors[0, run] < cursors[1, run]:
            row = cursors[0, run] if flip == 0 else cursors[1, run] - 1
            mine = ready[kw, row] if run == runs else read(table, run, kw, row)
            if mine ^ flip != value:
                break
            if flip == 0:
                cursors[0, run] += 1
            else:
                cursors[1, run] -= 1
            time = floor
            if run == runs:
                time = word_lub(ready[kw + 1, row], floor, guards)
            elif not early:
                time = read(table, run, kw + 1, row)
                if run >= exact and word_is_beyond(time, frontier, guards):
                    continue
                time = word_lub(time, floor, guards)
            rows[0, count] = time
            rows[1, count] = ready[kw + 2, row] if run == runs else read(table, run, kw + 2, row)
            count += 1
    return count


@kernel
def cover(
    times: Int64s, state: Int64s, rows: Int64s, held: int, value: int, frontier: Int64s, guards: int
) -> int:
    """Give `value` to the unmarked times at which the rows sum to more than 0.

    Return how many ready times are still without a value.
    """
    missing = np.int64(0)
    for index in range(state[0]):
        if times[1, index] >= 0:
            continue
        high, low = np.int64(0), np.int64(0)
        for row in range(held):
            if word_less_equal(rows[0, row], times[0, index], guards):
                high, low = wide_add(high, low, rows[1, row])
        if is_positive(high, low):
            times[1, index] = 1
            times[2, index] = value
        elif not word_is_beyond(times[0, index], frontier, guards):
            missing += 1
    return missing


@kernel
def walk(
    table: Int64s,
    cursors: Int64s,
    ready: Int64s,
    times: Int64s,
    state: Int64s,
    frontier: Int64s,
    shape: Int64s,
    rows: Int64s,
) -> Int64s:
    """Find the answer at every ready time, from the smallest value on; return `times`, or a larger copy.

    cursors   as in `next_value`; shape as in `reduce_least`; rows int64[2, room for all of the key]
    Ensures: times[1] is ≥ 0 where there is an answer, which is then times[2].
    """
    kw, guards, flip = shape[0], shape[1], shape[2]
    least = np.empty(1, np.int64)
    for index in range(state[0]):
        times[1, index] = -1
    missing = 1
    while missing > 0 and next_value(table, cursors, kw, ready, flip, least):
        taken = take_value(table, cursors, ready, shape, (least[0], state[1]), frontier, rows)
        times = closed_with(rows, taken, np.int64(0), times, state, frontier, guards)
        missing = cover(times, state, rows, taken, least[0] ^ flip, frontier, guards)
    return times


@kernel
def corrections_of(
    times: Int64s,
    state: Int64s,
    frontier: Int64s,
    guards: int,
    answers: Int64s,
    answer: Int64s,
    changes: Int64s,
) -> Int64s:
    """Correct the state[2] rows of `answers` at every ready time, in order; return `changes`, or a larger
    copy.

    Ensures: the corrections are the first state[2] rows of it, sorted and consolidated.
    """
    held = state[2]
    corrections = np.int64(0)
    for index in range(state[0]):
        if word_is_beyond(times[0, index], frontier, guards):
            continue
        answer[0], answer[1] = times[2, index], times[0, index]
        if corrections + held + 4 > changes.shape[1]:
            changes = more_rows(changes, corrections + held + 4)
        before, present = corrections, times[1, index] >= 0
        corrections = correct(answers, held, answer, present, guards, changes, before)
        if index + 1 < state[0]:  # later times depend on it
            if 2 * held + 4 > answers.shape[1]:
                answers = more_rows(answers, 2 * held + 4)
            held = put_rows(answers, held, changes, before, corrections)
    state[2] = consolidate_rows(changes, corrections)
    return changes


@large_kernel
def reduce_least(
    ready: Int64s, pending: Int64s, table: Int64s, answers_table: Int64s, frontier: Int64s, shape: Int64s
) -> tuple[Int64s, Int64s]:
    """Return corrections of the output, and pending times: (int64[kw + 3, m] sorted, int64[kw + 1, p]
    sorted).

    ready         int64[kw + 3, n] sorted consolidated rows, none beyond the frontier
    pending       int64[kw + 1, q] sorted (key, time), none beyond the frontier
    table         history of the input; `answers_table` that of the output
    shape         int64[4]: kw, guards, flip, and -1 if `table` is without `ready`; else it has `ready`,
                  perhaps also rows beyond the frontier: `exact` of `gathered_complete`
    Cost: for each key a search in every run of the output, and in every run of the input unless skipped.
    """
    kw, guards = shape[0], shape[1]
    cursors, answer_cursors = cursors_of(table), cursors_of(answers_table)
    left = np.zeros((2, table.shape[0] + 1), np.int64)
    times, reach = np.empty((3, 32), np.int64), np.empty((3, 32), np.int64)
    state, reached = np.zeros(5, np.int64), np.zeros(5, np.int64)
    answers, changes = np.empty((3, 64), np.int64), np.empty((3, 64), np.int64)
    rows = np.empty((2, 64), np.int64)
    answer, nothing = np.zeros(3, np.int64), np.empty(0, np.int64)
    out = np.empty((kw + 3, ready.shape[1] // 4 + 16), np.int64)
    pended = np.empty((kw + 1, pending.shape[1] + 16), np.int64)
    emitted, i, p = np.int64(0), np.int64(0), np.int64(0)
    both, both_cursors = (table, answers_table), (cursors, answer_cursors)
    key_spans, progress = room_for_keys(ready.shape[1], both, kw)
    while i < ready.shape[1] or p < pending.shape[1]:
        progress[4] -= 1
        if progress[4] < 0:
            progress[0], progress[1], progress[2] = i, p, emitted
            out = go_the_short_way(ready, pending, both, both_cursors, shape, key_spans, progress, out)
            i, emitted = progress[0], progress[2]
            if i == ready.shape[1] and p == pending.shape[1]:
                break
        order = whose_turn(ready, i, pending, p, kw)
        keys, key = (ready, i) if order <= 0 else (pending, p)
        first, first_pending, last_seed = i, p, i
        state[0] = 0
        if order <= 0:
            i, one_time = key_end(ready, i, kw, kw + 1)
            last_seed = first + 1 if one_time else i
            times = with_seeds(ready, first, last_seed, kw + 1, times, state, frontier, guards)
        if order >= 0:
            p, _ = key_end(pending, p, kw, kw)
            times = with_seeds(pending, first_pending, p, kw, times, state, frontier, guards)
        answers = gathered(answers_table, answer_cursors, keys, key, kw, state, guards, answers)
        held = consolidate_rows(answers, state[2])
        if order < 0:  # nothing is beyond here: the key would not be visited again for it
            reached[0] = 0
            reach = with_seeds(ready, first, last_seed, kw + 1, reach, reached, nothing, guards)
            reach = closed_with(answers, held, np.int64(1), reach, reached, nothing, guards)
            if answer_stays(ready, (first, i - 1, kw), reach, reached[0], answers, held, guards, shape[2]):
                continue
        times = closed_with(answers, held, np.int64(1), times, state, frontier, guards)
        size = locate(table, cursors, keys, key, kw) + i - first
        if size > rows.shape[1]:
            rows = more_rows(rows, size)
        copy_rows(cursors, table.shape[0], left)
        left[0, table.shape[0]], left[1, table.shape[0]] = first if shape[3] < 0 else i, i
        times = walk(table, left, ready, times, state, frontier, shape, rows)
        state[2] = held
        changes = corrections_of(times, state, frontier, guards, answers, answer, changes)
        corrections = state[2]
        if corrections > 0:
            out = appended(out, emitted, keys, key, kw, changes, corrections)
            emitted += corrections
        pended = pended_times(times, state, frontier, guards, pended, keys, key, kw)
    return first_rows(out, emitted), first_rows(pended, state[3])
