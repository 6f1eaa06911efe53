"""Opening a barrier: rows that wait there for one iteration are complete, in all closed epochs, and are
answered.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compiled_loops.edges import pass_on
from differential.kernels.compiled_loops.joining import has_room, lines_of, put_into
from differential.kernels.compiled_loops.layout import (
    FAR,
    HEAD_IS_FULL,
    K_BARRIER,
    K_LEAST,
    K_SUM,
    KEEPS_ANSWERS,
    KEEPS_ROWS,
    NO_ROOM,
    P_ANSWERS,
    P_EDGE,
    P_EDGES,
    P_KEEPS,
    P_KIND,
    P_LEVELS,
    P_NEXT,
    P_PARTS,
    P_PARTS_COLUMNS,
    P_PARTS_LINES,
    P_PENDING,
    P_PLACES,
    P_SHAPE,
    P_SHAPE_WORDS,
    P_SLOT,
    P_TRACE,
    S_AT,
    S_COLUMNS,
    S_LEAST,
    S_NEXT,
    S_ROOM,
    S_ROWS,
    TOO_MUCH,
    X_BOUND,
    X_FROM,
    X_NOW,
    X_ROWS,
    X_SLOT,
)
from differential.kernels.compiled_loops.slots import drop_rows_at, next_of, rows_at
from differential.kernels.history.ready import merge_pending
from differential.kernels.least.least import reduce_least
from differential.kernels.rows.memory import table_at
from differential.kernels.rows.sort import sort_words
from differential.kernels.sums.reduce_sums import reduce_few
from differential.thresholds import STEP_ROWS_MAX
from progress.compiled.kernel import Int64s, kernel, large_kernel, small_kernel


@small_kernel
def least_at(steps: Int64s, step: int, slots: Int64s) -> int:
    """Return the least counters that wait at a barrier; FAR if nothing waits."""
    least = min(slots[steps[step, P_SLOT], S_NEXT], steps[step, P_NEXT])
    pending = steps[step, P_PENDING]
    return least if pending < 0 else min(least, slots[pending, S_NEXT])


@small_kernel
def comes_first(steps: Int64s, step: int, time: int, other: int, other_time: int, fields: Int64s) -> bool:
    """Return True if a barrier opens before another.

    The order is by the outermost loop's counter, then by the position in that loop, and so on inwards.

    time, other_time   time words, whose epochs are left out
    fields             int64[2, levels]: lowest bit and mask of each counter in a word, the epoch's first
    """
    level = np.int64(1)
    while True:
        mine = (time >> fields[0, level]) & fields[1, level]
        others = (other_time >> fields[0, level]) & fields[1, level]
        if mine != others:
            return mine < others
        position, others_position = steps[step, P_PLACES + level - 1], steps[other, P_PLACES + level - 1]
        if position != others_position:
            return position < others_position
        # At one position both are in one inner loop, or are one barrier.
        level += 1
        if level > steps[step, P_LEVELS] or level > steps[other, P_LEVELS]:
            return False


@kernel
def next_barrier(steps: Int64s, slots: Int64s, fields: Int64s, state: Int64s) -> int:
    """Return the barrier that opens next, and write its counters to `state`; -1: closed epochs have no rows
    left.
    """
    chosen, now = np.int64(-1), np.int64(FAR)
    for step in range(steps.shape[0]):
        if steps[step, P_KIND] < K_BARRIER:
            continue
        time = least_at(steps, step, slots)
        if time == FAR:
            continue
        if chosen < 0 or comes_first(steps, step, time, chosen, now, fields):
            chosen, now = step, time
    state[X_NOW] = now
    return chosen


@kernel
def frontier_behind(levels: int, fields: Int64s, state: Int64s) -> Int64s:
    """Return the frontier at a barrier in `levels` loops once it has opened for the counters in `state`.

    Times that can still come are those of the first unfinished epoch that are one step on in some counter,
    with the outer counters as they are, and all times of epochs that are not closed.

    If words have no room for unclosed epochs, the bound is the last word, and stands for these: without it
    histories would be summed up as if all coming rows had counters as late as these.
    """
    now, start, bound = state[X_NOW], state[X_FROM], state[X_BOUND]
    frontier = np.empty(levels + 1, np.int64)
    count = np.int64(0)
    for level in range(levels, 0, -1):
        shift, mask = fields[0, level], fields[1, level]
        if (now >> shift) & mask < mask:
            frontier[count] = start + (((now >> shift) + 1) << shift)
            count += 1
    frontier[count] = bound
    return frontier[: count + 1].copy()


@kernel
def find_next(steps: Int64s, slots: Int64s, state: Int64s) -> None:
    """Find the counters that wait first at each barrier, after epochs have been closed up to the bound in
    `state`.
    """
    for step in range(steps.shape[0]):
        if steps[step, P_KIND] < K_BARRIER:
            continue
        slot, pending = steps[step, P_SLOT], steps[step, P_PENDING]
        slots[slot, S_NEXT] = next_of(slots, slot, slots[slot, S_COLUMNS] - 2, state)
        if pending >= 0:
            slots[pending, S_NEXT] = next_of(slots, pending, slots[pending, S_COLUMNS] - 1, state)


@kernel
def find_next_in(these: Int64s, slots: Int64s, state: Int64s) -> None:
    """Find the counters that wait first in these slots, whose rows are for barriers of other workers."""
    for number in range(these.shape[0]):
        slot = these[number]
        slots[slot, S_NEXT] = next_of(slots, slot, slots[slot, S_COLUMNS] - 2, state)


@kernel
def put_pending(slots: Int64s, slot: int, pended: Int64s, state: Int64s) -> None:
    """Remove the pending times that are due, and add others. Requires: there is room."""
    columns = slots[slot, S_COLUMNS]
    drop_rows_at(slots, slot, columns - 1, state)
    if pended.shape[1] == 0:
        return
    table = table_at(slots[slot, S_AT], columns, slots[slot, S_ROOM])
    left = np.empty((columns, slots[slot, S_ROWS]), np.int64)
    for column in range(columns):
        for row in range(left.shape[1]):
            left[column, row] = table[column, row]
    merged = merge_pending(left, pended)
    least = np.int64(FAR)
    for column in range(columns):
        for row in range(merged.shape[1]):
            table[column, row] = merged[column, row]
    for row in range(merged.shape[1]):
        least = min(least, merged[columns - 1, row])
    slots[slot, S_ROWS] = merged.shape[1]
    slots[slot, S_LEAST] = least
    slots[slot, S_NEXT] = next_of(slots, slot, columns - 1, state)


@kernel
def answers_of(
    step: int, steps: Int64s, ready: Int64s, pending: Int64s, traces: Int64s, frontier: Int64s
) -> tuple[Int64s, Int64s]:
    """Return a reduce's corrections for complete rows and pending times, and the times that stay pending."""
    shape = table_at(steps[step, P_SHAPE], 1, steps[step, P_SHAPE_WORDS])[0]
    lines = lines_of(traces, steps[step, P_TRACE], np.int64(0))
    if steps[step, P_KIND] == K_LEAST:
        answers = lines_of(traces, steps[step, P_ANSWERS], np.int64(0))
        return reduce_least(ready, pending, lines, answers, frontier, shape)
    parts = table_at(steps[step, P_PARTS], steps[step, P_PARTS_LINES], steps[step, P_PARTS_COLUMNS])
    return reduce_few(ready, pending, lines, frontier, shape, parts)


@kernel
def keep_all(
    step: int, steps: Int64s, ready: Int64s, corrections: Int64s, traces: Int64s, state: Int64s
) -> int:
    """Put rows into their trace, and answers into theirs, as far as a barrier stores them.

    Return 0, or a reason of `layout.py`.
    """
    keeps = steps[step, P_KEEPS]
    puts_rows = keeps & KEEPS_ROWS != 0 and ready.shape[1] > 0
    puts_answers = keeps & KEEPS_ANSWERS != 0 and corrections.shape[1] > 0
    if puts_rows and not has_room(traces, steps[step, P_TRACE], ready.shape[1], state):
        return HEAD_IS_FULL
    if puts_answers and not has_room(traces, steps[step, P_ANSWERS], corrections.shape[1], state):
        return HEAD_IS_FULL
    if puts_rows:
        put_into(traces, steps[step, P_TRACE], ready)
    if puts_answers:
        put_into(traces, steps[step, P_ANSWERS], corrections)
    return 0


@large_kernel
def open_barrier(
    step: int,
    steps: Int64s,
    edges: Int64s,
    traces: Int64s,
    slots: Int64s,
    fields: Int64s,
    state: Int64s,
    round_counts: Int64s,
) -> int:
    """Answer what waits at a barrier for the counters in `state`; return 0, or a reason of `layout.py`."""
    slot, pending = steps[step, P_SLOT], steps[step, P_PENDING]
    if steps[step, P_KIND] == K_BARRIER or steps[step, P_NEXT] <= state[X_NOW]:
        return TOO_MUCH
    if slots[slot, S_ROWS] > STEP_ROWS_MAX:
        return TOO_MUCH
    columns = slots[slot, S_COLUMNS]
    ready = sort_words(rows_at(slots, slot, columns - 2, state))
    corrections = ready
    if steps[step, P_KIND] != K_SUM:
        waiting = rows_at(slots, pending, slots[pending, S_COLUMNS] - 1, state)
        if waiting.shape[1] > STEP_ROWS_MAX:
            return TOO_MUCH
        frontier = frontier_behind(steps[step, P_LEVELS], fields, state)
        if ready.shape[1] + waiting.shape[1] == 0:
            drop_rows_at(slots, slot, columns - 2, state)
            return 0
        corrections, pended = answers_of(step, steps, ready, waiting, traces, frontier)
        if corrections.shape[1] > STEP_ROWS_MAX:
            return TOO_MUCH
    why = pass_on(corrections, steps[step, P_EDGE], steps[step, P_EDGES], edges, slots, state, round_counts)
    if why != 0:
        return why
    if steps[step, P_KIND] != K_SUM:
        # Changes that cannot be undone come last: first check that there is room, then make all of them.
        if slots[pending, S_ROWS] + pended.shape[1] > slots[pending, S_ROOM]:
            state[X_SLOT] = pending
            state[X_ROWS] = slots[pending, S_ROWS] + pended.shape[1]
            return NO_ROOM
        why = keep_all(step, steps, ready, corrections, traces, state)
        if why != 0:
            return why
        put_pending(slots, pending, pended, state)
    drop_rows_at(slots, slot, columns - 2, state)
    return 0
