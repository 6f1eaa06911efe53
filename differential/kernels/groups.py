"""Reduce by counts, sums, smallest and largest values, or by anything, reading a key's whole history.

The history of a key, new rows included, is gathered once, consolidated, and evaluated at each of the key's ready
interesting times, in order. A group is present at a time iff some row has a multiplicity that is not zero there:

    COUNT   the sum of the multiplicities              SUM   the sum of value · multiplicity (wraps at 64 bits)
    LEAST, GREATEST   of the values whose multiplicity is positive; without any, the group is absent
    no aggregate at all (distinct): the group is present iff the sum of the multiplicities is positive
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.closure import add_seeds, close_with_rows, is_minimal
from differential.kernels.history import (
    append_rows,
    append_time,
    consolidate_rows,
    correct,
    gather,
    gather_new,
    multiplicity,
    put_rows,
    room_for_rows,
)
from differential.kernels.merge import first_rows
from differential.kernels.search import compare_keys, locate
from progress._compile import Int64s, kernel
from progress.time_words import word_is_beyond

COUNT: Final = 0
SUM: Final = 1
LEAST: Final = 2
GREATEST: Final = 3


@kernel
def evaluate(rows: Int64s, count: int, time: int, guards: int, aggregates: Int64s, wanted: Int64s) -> bool:
    """Write the aggregates of the rows at a time into `wanted`; False if the group is absent there.

    aggregates   int64[2, m]: kind and value word of each
    """
    parts = aggregates.shape[1]
    present = False
    positive = False
    sum_of_all = np.int64(0)
    wanted[:parts] = 0
    row = 0
    while row < count:
        total, after = multiplicity(rows, count, row, time, guards)
        if total != 0:
            sum_of_all += total
            present = True
            for part in range(parts):
                kind = aggregates[0, part]
                value = rows[aggregates[1, part], row] if kind != COUNT else np.int64(1)
                if kind == COUNT or kind == SUM:
                    wanted[part] += total * value
                elif total > 0 and (
                    not positive
                    or (kind == LEAST and value < wanted[part])
                    or (kind == GREATEST and value > wanted[part])
                ):
                    wanted[part] = value
            positive = positive or total > 0
        row = after
    if parts == 0:
        return sum_of_all > 0
    for part in range(parts):
        if aggregates[0, part] >= LEAST:
            return positive
    return present


@kernel
def reduce_groups(
    ready: Int64s, pending: Int64s, table: Int64s, answers_table: Int64s, frontier: Int64s, shape: Int64s, aggregates: Int64s
) -> tuple[Int64s, Int64s]:
    """Corrections of the output, and what stays pending: (int64[kw + m + 2, ·] sorted, int64[kw + 1, ·] sorted).

    ready         int64[kw + vw + 2, n] sorted consolidated rows, none beyond the frontier
    pending       int64[kw + 1, q] sorted (key, time), none beyond the frontier
    table         history of the input without `ready`; `answers_table` that of the output
    shape         int64[3]: kw, vw, guards
    aggregates    int64[2, m]: kind and value word of each
    Cost: for each key O(history · ready times), where history earlier than all of these counts once per value.
    """
    kw, vw, guards = shape[0], shape[1], shape[2]
    cursors = np.zeros((2, table.shape[0]), np.int64)
    answer_cursors = np.zeros((2, answers_table.shape[0]), np.int64)
    times = np.empty((2, 32), np.int64)
    rows = np.empty((vw + 2, 64), np.int64)
    answers = np.empty((aggregates.shape[1] + 2, 64), np.int64)
    made = np.empty((aggregates.shape[1] + 2, 64), np.int64)
    wanted = np.zeros(aggregates.shape[1] + 2, np.int64)
    out = np.empty((kw + aggregates.shape[1] + 2, ready.shape[1] // 4 + 16), np.int64)
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
        size = locate(table, cursors, keys, key, kw) + i - first
        rows = room_for_rows(rows, size)
        size = gather(table, cursors, kw, floor, guards, rows)
        size = consolidate_rows(rows, gather_new(ready, first, i, kw, floor, guards, rows, size))
        times, count = close_with_rows(rows, size, times, count, floor, frontier, guards)
        held = locate(answers_table, answer_cursors, keys, key, kw)
        answers = room_for_rows(answers, 2 * held + 2)
        held = consolidate_rows(answers, gather(answers_table, answer_cursors, kw, floor, guards, answers))
        times, count = close_with_rows(answers, held, times, count, floor, frontier, guards)
        corrections = 0
        for index in range(count):
            time = times[0, index]
            if word_is_beyond(time, frontier, guards):
                if is_minimal(times, index, frontier, guards):
                    pended = append_time(pended, kept, keys, key, kw, time)
                    kept += 1
                continue
            present = evaluate(rows, size, time, guards, aggregates, wanted)
            wanted[aggregates.shape[1]] = time
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


@kernel
def collect_groups(
    ready: Int64s, pending: Int64s, table: Int64s, answers_table: Int64s, frontier: Int64s, shape: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """What a Python function has to look at: (groups, their rows, answers so far, what stays pending).

    Arguments as in `reduce_groups`, `shape` int64[4] with the answer's value words as the last.
    groups    int64[kw + 5, g]: key, time, bounds of its rows, bounds of its key's answers; times ascend in a key
    rows      int64[vw + 1, ·]: values and multiplicity, none zero, sorted
    answers   int64[ow + 2, ·]: the history of the key's answers, consolidated
    """
    kw, vw, guards, ow = shape[0], shape[1], shape[2], shape[3]
    cursors = np.zeros((2, table.shape[0]), np.int64)
    answer_cursors = np.zeros((2, answers_table.shape[0]), np.int64)
    times = np.empty((2, 32), np.int64)
    rows = np.empty((vw + 2, 64), np.int64)
    answers = np.empty((ow + 2, 64), np.int64)
    all_rows = np.empty((vw + 1, 64), np.int64)
    all_answers = np.empty((ow + 2, 64), np.int64)
    groups = np.empty((kw + 5, 64), np.int64)
    pended = np.empty((kw + 1, pending.shape[1] + 16), np.int64)
    found = 0
    used = 0
    answered = 0
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
        size = locate(table, cursors, keys, key, kw) + i - first
        rows = room_for_rows(rows, size)
        size = gather(table, cursors, kw, floor, guards, rows)
        size = consolidate_rows(rows, gather_new(ready, first, i, kw, floor, guards, rows, size))
        times, count = close_with_rows(rows, size, times, count, floor, frontier, guards)
        held = locate(answers_table, answer_cursors, keys, key, kw)
        answers = room_for_rows(answers, held)
        held = consolidate_rows(answers, gather(answers_table, answer_cursors, kw, floor, guards, answers))
        times, count = close_with_rows(answers, held, times, count, floor, frontier, guards)
        all_answers = append_rows(all_answers, answered, keys, key, 0, answers, held)
        for index in range(count):
            time = times[0, index]
            if word_is_beyond(time, frontier, guards):
                if is_minimal(times, index, frontier, guards):
                    pended = append_time(pended, kept, keys, key, kw, time)
                    kept += 1
                continue
            groups = append_time(groups, found, keys, key, kw, time)
            groups[kw + 1, found] = used
            row = 0
            while row < size:
                total, after = multiplicity(rows, size, row, time, guards)
                if total != 0:
                    all_rows = room_for_rows(all_rows, used)
                    for word in range(vw):
                        all_rows[word, used] = rows[word, row]
                    all_rows[vw, used] = total
                    used += 1
                row = after
            groups[kw + 2, found] = used
            groups[kw + 3, found] = answered
            groups[kw + 4, found] = answered + held
            found += 1
        answered += held
    return first_rows(groups, found), first_rows(all_rows, used), first_rows(all_answers, answered), first_rows(pended, kept)
