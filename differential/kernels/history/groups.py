"""Reduce by counts, smallest and largest values, or by anything, reading a key's whole history.

The history of a key, new rows included, is gathered once, consolidated, and evaluated at each of the key's
ready interesting times, in order. A group is present at a time iff some row has a multiplicity that is not
zero there:

    COUNT   the sum of the multiplicities
    LEAST, GREATEST   of the values whose multiplicity is positive; without any, the group is absent
    no aggregate at all (distinct): the group is present iff the sum of the multiplicities is positive

Where only sums matter there is a shorter way: `sums/reduce_sums.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.closure import closed_with, key_end, with_seeds
from differential.kernels.history.history import (
    appended,
    check_key,
    consolidate_key,
    consolidate_rows,
    correct,
    gathered,
    gathered_complete,
    more_rows,
    multiplicity,
    pended_times,
    put_rows,
    with_new,
)
from differential.kernels.merging.merge import first_rows
from differential.kernels.overflow import excess, is_positive, refuse, wide_add
from differential.kernels.rows.search import cursors_of, whose_turn
from progress.compiled.kernel import Int64s, kernel
from progress.times.word_order import word_is_beyond

COUNT: Final = 0
LEAST: Final = 1
GREATEST: Final = 2


@kernel
def evaluate(rows: Int64s, count: int, time: int, guards: int, aggregates: Int64s, answer: Int64s) -> bool:
    """Write the aggregates of the rows at a time into `answer`; return False if the group is absent there.

    aggregates   int64[2, m]: kind and value word of each
    answer       int64[m + 2]: gets the aggregates
    Raises OverflowError if a count leaves 64 bits.
    """
    parts = aggregates.shape[1]
    present = False
    positive = False
    high, low = np.int64(0), np.int64(0)
    row = np.int64(0)
    while row < count:
        total, after = multiplicity(rows, count, row, time, guards)
        if total != 0:
            high, low = wide_add(high, low, total)
            present = True
            for part in range(parts):
                kind = aggregates[0, part]
                if kind == COUNT:
                    continue
                value = rows[aggregates[1, part], row]
                if total > 0 and (
                    not positive
                    or (kind == LEAST and value < answer[part])
                    or (kind == GREATEST and value > answer[part])
                ):
                    answer[part] = value
            positive = positive or total > 0
        row = after
    if parts == 0:
        return is_positive(high, low)
    for part in range(parts):
        if aggregates[0, part] == COUNT:
            refuse(excess(high, low))
            answer[part] = low
    for part in range(parts):
        if aggregates[0, part] >= LEAST:
            return positive
    return present


@kernel
def reduce_groups(
    ready: Int64s,
    pending: Int64s,
    table: Int64s,
    answers_table: Int64s,
    frontier: Int64s,
    shape: Int64s,
    aggregates: Int64s,
) -> tuple[Int64s, Int64s]:
    """Return corrections of the output, and pending times: int64[kw + m + 2, ·] and int64[kw + 1, ·], sorted.

    ready, pending   int64[kw + vw + 2, n] consolidated rows, int64[kw + 1, q] (key, time): sorted, complete
    tables           history of the input, without `ready` if shape[4] is -1, and of the output
    shape            int64[5]: kw, vw, guards, the answer's value words, and `exact` of `gathered_complete`
    aggregates       int64[2, m]: kind and value word of each
    Cost: for each key O(history · ready times), where times before all of these count once per value.
    """
    kw, vw, guards, parts = shape[0], shape[1], shape[2], aggregates.shape[1]
    cursors, answer_cursors, state = cursors_of(table), cursors_of(answers_table), np.zeros(5, np.int64)
    times, rows = np.empty((3, 32), np.int64), np.empty((vw + 2, 64), np.int64)
    answers = np.empty((parts + 2, 64), np.int64)
    changes, answer = np.empty((parts + 2, 64), np.int64), np.zeros(parts + 2, np.int64)
    out, pended = np.empty((kw + parts + 2, 64), np.int64), np.empty((kw + 1, 64), np.int64)
    emitted, i, p = np.int64(0), np.int64(0), np.int64(0)
    while i < ready.shape[1] or p < pending.shape[1]:
        order = whose_turn(ready, i, pending, p, kw)
        keys, key = (ready, i) if order <= 0 else (pending, p)
        first, first_pending, state[0] = i, p, 0
        if order <= 0:
            i, one_time = key_end(ready, i, kw, kw + vw)
            last_seed = first + 1 if one_time else i
            times = with_seeds(ready, first, last_seed, kw + vw, times, state, frontier, guards)
        if order >= 0:
            p, _ = key_end(pending, p, kw, kw)
            times = with_seeds(pending, first_pending, p, kw, times, state, frontier, guards)
        answers = gathered(answers_table, answer_cursors, keys, key, kw, state, guards, answers)
        held = consolidate_rows(answers, state[2])
        if shape[4] < 0:
            rows = gathered(table, cursors, keys, key, kw, state, guards, rows)
            rows = with_new(ready, first, i, kw, state, guards, rows)
        else:
            rows = gathered_complete(table, cursors, keys, (key, kw, guards), state, frontier, shape[4], rows)
        size = consolidate_key(rows, state)
        times = closed_with(rows, size, vw, times, state, frontier, guards)
        times = closed_with(answers, held, answers.shape[0] - 2, times, state, frontier, guards)
        check_key(rows, size, times, state, guards)
        pended = pended_times(times, state, frontier, guards, pended, keys, key, kw)
        corrections = np.int64(0)
        for index in range(state[0]):
            if word_is_beyond(times[0, index], frontier, guards):
                continue
            answer[parts] = times[0, index]
            present = evaluate(rows, size, times[0, index], guards, aggregates, answer)
            if corrections + held + 4 > changes.shape[1]:
                changes = more_rows(changes, corrections + held + 4)
            before, corrections = (
                corrections,
                correct(answers, held, answer, present, guards, changes, corrections),
            )
            if 2 * held + 4 > answers.shape[1]:
                answers = more_rows(answers, 2 * held + 4)
            if index + 1 < state[0]:  # later times depend on it
                held = put_rows(answers, held, changes, before, corrections)
        corrections = consolidate_rows(changes, corrections)
        out = appended(out, emitted, keys, key, kw, changes, corrections)
        emitted += corrections
    return first_rows(out, emitted), first_rows(pended, state[3])


@kernel
def with_group(rows: Int64s, size: int, time: int, guards: int, all_rows: Int64s, used: Int64s) -> Int64s:
    """Append (values, multiplicity) at a time, none zero, to the used[0] rows of `all_rows`.

    Return `all_rows`, or a larger copy.
    """
    vw = rows.shape[0] - 2
    row = np.int64(0)
    while row < size:
        total, after = multiplicity(rows, size, row, time, guards)
        if total != 0:
            if used[0] == all_rows.shape[1]:
                all_rows = more_rows(all_rows, used[0])
            for word in range(vw):
                all_rows[word, used[0]] = rows[word, row]
            all_rows[vw, used[0]] = total
            used[0] += 1
        row = after
    return all_rows


@kernel
def collect_groups(
    ready: Int64s, pending: Int64s, table: Int64s, answers_table: Int64s, frontier: Int64s, shape: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Return the input of a Python function: (groups, their rows, earlier answers, pending times).

    Arguments as in `reduce_groups`.
    groups    int64[kw + 5, g]: key, time, bounds of its rows, bounds of its key's answers; times ascend
    rows      int64[vw + 1, ·]: values and multiplicity, none zero, sorted
    answers   int64[ow + 2, ·]: the history of the key's answers, consolidated
    """
    kw, vw, guards, ow = shape[0], shape[1], shape[2], shape[3]
    cursors, answer_cursors = cursors_of(table), cursors_of(answers_table)
    times, state = np.empty((3, 32), np.int64), np.zeros(5, np.int64)
    rows, answers = np.empty((vw + 2, 64), np.int64), np.empty((ow + 2, 64), np.int64)
    all_rows, all_answers = np.empty((vw + 1, 64), np.int64), np.empty((ow + 2, 64), np.int64)
    used = np.zeros(1, np.int64)
    groups = np.empty((kw + 5, 64), np.int64)
    pended = np.empty((kw + 1, pending.shape[1] + 16), np.int64)
    group_count, answered, i, p = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while i < ready.shape[1] or p < pending.shape[1]:
        order = whose_turn(ready, i, pending, p, kw)
        keys, key = (ready, i) if order <= 0 else (pending, p)
        first, first_pending, state[0] = i, p, 0
        if order <= 0:
            i, one_time = key_end(ready, i, kw, kw + vw)
            last_seed = first + 1 if one_time else i
            times = with_seeds(ready, first, last_seed, kw + vw, times, state, frontier, guards)
        if order >= 0:
            p, _ = key_end(pending, p, kw, kw)
            times = with_seeds(pending, first_pending, p, kw, times, state, frontier, guards)
        answers = gathered(answers_table, answer_cursors, keys, key, kw, state, guards, answers)
        held = consolidate_rows(answers, state[2])
        if shape[4] < 0:
            rows = gathered(table, cursors, keys, key, kw, state, guards, rows)
            rows = with_new(ready, first, i, kw, state, guards, rows)
        else:
            rows = gathered_complete(table, cursors, keys, (key, kw, guards), state, frontier, shape[4], rows)
        size = consolidate_key(rows, state)
        times = closed_with(rows, size, vw, times, state, frontier, guards)
        times = closed_with(answers, held, answers.shape[0] - 2, times, state, frontier, guards)
        check_key(rows, size, times, state, guards)
        pended = pended_times(times, state, frontier, guards, pended, keys, key, kw)
        all_answers = appended(all_answers, answered, keys, key, np.int64(0), answers, held)
        for index in range(state[0]):
            if word_is_beyond(times[0, index], frontier, guards):
                continue
            if group_count == groups.shape[1]:
                groups = more_rows(groups, group_count)
            for column in range(kw):
                groups[column, group_count] = keys[column, key]
            groups[kw, group_count], groups[kw + 1, group_count] = times[0, index], used[0]
            all_rows = with_group(rows, size, times[0, index], guards, all_rows, used)
            groups[kw + 2, group_count] = used[0]
            groups[kw + 3, group_count], groups[kw + 4, group_count] = answered, answered + held
            group_count += 1
        answered += held
    members, history = first_rows(all_rows, used[0]), first_rows(all_answers, answered)
    return first_rows(groups, group_count), members, history, first_rows(pended, state[3])
