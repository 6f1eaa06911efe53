"""Reduce by the smallest or largest value, reading no more of a key's history than its answer needs.

For each key with new rows or ready pending times:

    skip   If at every later time the answer so far is smaller than all new values (or equal, where none of them
           takes rows away), it stays. Only the short history of the answer is read: lubs of the seeds with its
           times are all the times at which it may be another. Here also those beyond the frontier are extended,
           since nothing will remind of them.
    walk   Otherwise go through the values from the smallest on. Once every ready time has a value that is
           present there, larger values cannot matter at any later time either, nor can their times.

A value is walked with its times, which join the interesting ones, so "every ready time" grows while walking.
Why stopping is right: let t be ≥ a seed, and no pending time ≤ t. The latest interesting time w ≤ t is ready
and has everything up to t that was walked; the value that is present at w is present at t. If a pending time
is ≤ t, the key is looked at again when that time is ready. `flip` -1 turns the order round, for the largest.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.closure import add_seeds, close_with, close_with_rows, is_minimal, room_for_times
from differential.kernels.history import (
    append_rows,
    append_time,
    consolidate_rows,
    correct,
    gather,
    multiplicity,
    put_rows,
    room_for_rows,
)
from differential.kernels.memory import LUB, read
from differential.kernels.merge import copy_rows, first_rows
from differential.kernels.search import compare_keys, locate
from progress._compile import Int64s, kernel
from progress.time_words import word_is_beyond, word_less_equal, word_lub


@kernel
def answer_stays(
    ready: Int64s, group: tuple[int, int, int], times: Int64s, count: int, answers: Int64s, held: int, guards: int, flip: int
) -> bool:
    """Whether at each of the times one value is the answer, and the new rows leave it the smallest.

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
        row = 0
        found = False
        while row < held:
            total, after = multiplicity(answers, held, row, times[0, index], guards)
            if total != 0:
                value = answers[0, row] ^ flip
                if found or total != 1 or value > nearest or (value == nearest and takes):
                    return False
                found = True
            row = after
        if not found:
            return False
    return True


@kernel
def next_value(table: Int64s, cursors: Int64s, kw: int, ready: Int64s, flip: int, wanted: Int64s) -> bool:
    """Find the smallest value among all cursors into wanted[0] (flipped); False if there is none left.

    cursors   int64[2, runs + 1]: rows left of each run; the last column is that of `ready`
    """
    runs = table.shape[0]
    found = False
    for run in range(runs + 1):
        if cursors[0, run] == cursors[1, run]:
            continue
        row = cursors[0, run] if flip == 0 else cursors[1, run] - 1
        value = (ready[kw, row] if run == runs else read(table, run, kw, row)) ^ flip
        if not found or value < wanted[0]:
            wanted[0] = value
            found = True
    return found


@kernel
def take_value(
    table: Int64s, cursors: Int64s, kw: int, ready: Int64s, flip: int, value: int, floor_guards: tuple[int, int], rows: Int64s
) -> tuple[Int64s, int]:
    """Move the cursors past the rows of `value`, which go into `rows` int64[2, room]: (rows, how many)."""
    runs = table.shape[0]
    floor, guards = floor_guards
    count = 0
    for run in range(runs + 1):
        early = run < runs and word_less_equal(table[run, LUB], floor, guards)
        while cursors[0, run] < cursors[1, run]:
            row = cursors[0, run] if flip == 0 else cursors[1, run] - 1
            mine = ready[kw, row] if run == runs else read(table, run, kw, row)
            if mine ^ flip != value:
                break
            rows = room_for_rows(rows, count)
            time = floor
            if run == runs:
                time = word_lub(ready[kw + 1, row], floor, guards)
            elif not early:
                time = word_lub(read(table, run, kw + 1, row), floor, guards)
            rows[0, count] = time
            rows[1, count] = ready[kw + 2, row] if run == runs else read(table, run, kw + 2, row)
            count += 1
            if flip == 0:
                cursors[0, run] += 1
            else:
                cursors[1, run] -= 1
    return rows, count


@kernel
def cover(times: Int64s, count: int, rows: Int64s, held: int, number: int, frontier: Int64s, guards: int) -> int:
    """Give `number` to the times without one at which the rows sum to more than 0; returns ready ones without."""
    missing = 0
    for index in range(count):
        if times[1, index] >= 0:
            continue
        total = np.int64(0)
        for row in range(held):
            if word_less_equal(rows[0, row], times[0, index], guards):
                total += rows[1, row]
        if total > 0:
            times[1, index] = number
        elif not word_is_beyond(times[0, index], frontier, guards):
            missing += 1
    return missing


@kernel
def reduce_least(
    ready: Int64s, pending: Int64s, table: Int64s, answers_table: Int64s, frontier: Int64s, kw: int, guards: int, flip: int
) -> tuple[Int64s, Int64s]:
    """Corrections of the output, and what stays pending: (int64[kw + 3, m] sorted, int64[kw + 1, p] sorted).

    ready         int64[kw + 3, n] sorted consolidated rows, none beyond the frontier
    pending       int64[kw + 1, q] sorted (key, time), none beyond the frontier
    table         history of the input without `ready`; `answers_table` that of the output
    Cost: for each key a search in every run of the output, and in every run of the input unless skipped.
    """
    cursors = np.zeros((2, table.shape[0]), np.int64)
    answer_cursors = np.zeros((2, answers_table.shape[0]), np.int64)
    left = np.zeros((2, table.shape[0] + 1), np.int64)
    times = np.empty((2, 32), np.int64)
    reach = np.empty((2, 32), np.int64)
    nothing = np.empty(0, np.int64)
    reached = 0
    answers = np.empty((3, 64), np.int64)
    rows = np.empty((2, 64), np.int64)
    values = np.empty((1, 64), np.int64)
    made = np.empty((3, 64), np.int64)
    wanted = np.zeros(3, np.int64)
    out = np.empty((kw + 3, ready.shape[1] // 4 + 16), np.int64)
    pended = np.empty((kw + 1, pending.shape[1] + 16), np.int64)
    emitted = 0
    kept = 0
    i = 0
    p = 0
    while i < ready.shape[1] or p < pending.shape[1]:
        order = -1 if p == pending.shape[1] else 1 if i == ready.shape[1] else compare_keys(ready, i, pending, p, kw)
        keys = ready if order <= 0 else pending
        key = i if order <= 0 else p
        first = i
        count = 0
        floor = np.int64(0)
        if order <= 0:
            i, times, count, floor = add_seeds(ready, i, kw, times, count, floor, frontier, guards)
        if order >= 0:
            p, times, count, floor = add_seeds(pending, p, kw, times, count, floor, frontier, guards)
        held = locate(answers_table, answer_cursors, keys, key, kw)
        answers = room_for_rows(answers, 2 * held + 2)
        held = consolidate_rows(answers, gather(answers_table, answer_cursors, kw, floor, guards, answers))
        if order < 0 and count == 1 and held <= 1 and (held == 0 or answers[1, 0] == floor):
            reach[0, 0] = floor  # nothing but this one time: as when a collection is loaded
            reached = 1
        elif order < 0:
            _, reach, reached, _ = add_seeds(ready, first, kw, reach, 0, floor, nothing, guards)
            reach, reached = close_with_rows(answers, held, reach, reached, floor, nothing, guards)
        times, count = close_with_rows(answers, held, times, count, floor, frontier, guards)
        if order < 0 and answer_stays(ready, (first, i - 1, kw), reach, reached, answers, held, guards, flip):
            continue
        # -- walk the values from the smallest on --
        locate(table, cursors, keys, key, kw)
        copy_rows(cursors, 0, table.shape[0], left, 0)
        left[0, table.shape[0]] = first
        left[1, table.shape[0]] = i
        for index in range(count):
            times[1, index] = -1
        number = 0
        missing = 1
        while missing > 0 and next_value(table, left, kw, ready, flip, wanted):
            rows, taken = take_value(table, left, kw, ready, flip, wanted[0], (floor, guards), rows)
            for row in range(taken):
                if rows[0, row] != floor:
                    times = room_for_times(times, count + 1)
                    count = close_with(times, count, rows[0, row], frontier, guards)
            values = room_for_rows(values, number)
            values[0, number] = wanted[0] ^ flip
            missing = cover(times, count, rows, taken, number, frontier, guards)
            number += 1
        # -- correct the answers, in order of times --
        corrections = 0
        for index in range(count):
            if word_is_beyond(times[0, index], frontier, guards):
                if is_minimal(times, index, frontier, guards):
                    pended = append_time(pended, kept, keys, key, kw, times[0, index])
                    kept += 1
                continue
            present = times[1, index] >= 0
            wanted[0] = values[0, times[1, index]] if present else 0
            wanted[1] = times[0, index]
            answers = room_for_rows(answers, 2 * held + 2)
            made = room_for_rows(made, corrections + held + 2)
            before, corrections = corrections, correct(answers, held, wanted, present, guards, made, corrections)
            if index + 1 < count:  # later times have to know
                held = put_rows(answers, held, made, before, corrections)
        if corrections > 0:
            corrections = consolidate_rows(made, corrections)
            out = append_rows(out, emitted, keys, key, kw, made, corrections)
            emitted += corrections
    return first_rows(out, emitted), first_rows(pended, kept)
