"""Reduce by sums without storing answers: earlier answers follow from the earlier sums.

An answer is a function f of sums of a key's multiplicities: their number (count), whether that is positive
(distinct), or a word made from components (`accumulated.py`). With S(t) the sums at a time t, and one chain
of counters, the correction at t is +1 for f(S(t)), and −1 for f(S(t - 1)). With more chains, t has a *corner*
for each set C of them, the latest time that is earlier than t in these and is t in the others:

    correction at t  =  Σ over C of  (-1)^|C| · f(S(corner C of t))

since at every earlier time all corrections up to it add up to f(S). So no trace of answers is written, read
or merged; and the input takes one pass per key, over its rows in any order. Each row is added to the sums of
its *class*, which is the set of chains in which it is earlier than t (`corners.py`).

Requires: times in the table were not advanced beyond any corner of a time that may still come: since is held
one step back in each chain (`earlier_times`). With one chain, and a table without the new rows, it suffices
that the new rows are apart.

Fast path (`short_way.py`): nearly all keys have one ready time. The long way is for all others: several ready
times, large numbers, rows that may cancel.

The interesting times follow from rows advanced to one step before the floor (`closure.py`), since corners are
there: two rows that cancel from there on are in no corner. From the floor on more would cancel, and in three
chains some of them count: rows at (1, 5, 0) and (2, 5, 0) are one to a seed at (2, 3, 1), but not to its
corners.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.closure import closed_with, key_end, with_seeds
from differential.kernels.history.history import (
    LARGEST,
    appended,
    check_key,
    consolidate_key,
    consolidate_rows,
    more_rows,
    pended_times,
)
from differential.kernels.history.times import earlier_time, steps_of
from differential.kernels.loading import prepare
from differential.kernels.merging.merge import first_rows
from differential.kernels.overflow import magnitude
from differential.kernels.rows.memory import HEADER, load
from differential.kernels.rows.probing import KEYS_AT_ONCE
from differential.kernels.rows.room import room_for, shortened
from differential.kernels.rows.search import whose_turn
from differential.kernels.sums.accumulated import REFUSED
from differential.kernels.sums.corners import HALF, class_of, classes_of, put_corrections, sum_corners
from differential.kernels.sums.short_way import IS_LONG, IS_OVER, go_the_short_way
from differential.thresholds import LATER_TIMES_MAX, MANY_ROWS
from progress.compiled.kernel import Int64s, kernel, large_kernel
from progress.times.word_order import word_is_beyond, word_less_equal, word_lub


@kernel
def read_rows(
    table: Int64s, run: int, span: tuple[int, int], column: int, line: int, rows: Int64s, count: int
) -> None:
    """Read a column of some rows of a run into a line of `rows`, from row `count` on."""
    at = HEADER + 3 * column
    address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
    for row in range(span[1] - span[0]):
        rows[line, count + row] = load(address, width, base, span[0] + row)


@kernel
def read_key(table: Int64s, progress: Int64s, frontier: Int64s, rows: Int64s) -> int:
    """Read all rows of the key at the cursors, in any order, without those known to be incomplete.

    Return their number. Requires: room for them. If the table is apart its rows are earlier than the new
    ones, wherever they were advanced to: they are read at time 0.
    """
    kw, vw, guards, exact, count = progress[3, 0], progress[3, 1], progress[3, 2], progress[3, 4], np.int64(0)
    is_apart = exact < 0 and guards & (guards - 1) == 0
    for run in range(table.shape[0]):
        span = (progress[0, run], progress[1, run])
        if span[0] == span[1]:
            continue
        end = count + span[1] - span[0]
        for word in range(vw):
            read_rows(table, run, span, kw + word, word, rows, count)
        read_rows(table, run, span, kw + vw + 1, vw + 1, rows, count)
        if is_apart:
            for row in range(count, end):
                rows[vw, row] = 0
        else:
            read_rows(table, run, span, kw + vw, vw, rows, count)
        if 0 <= exact <= run:
            size = count
            for row in range(count, end):
                if not word_is_beyond(rows[vw, row], frontier, guards):
                    if size != row:
                        for line in range(vw + 2):
                            rows[line, size] = rows[line, row]
                    size += 1
            end = size
        count = end
    return count


@kernel
def with_ready(ready: Int64s, first: int, stop: int, kw: int, rows: Int64s, count: int) -> int:
    """Append new rows of a key; return the new number of rows. Requires: room for them."""
    for line in range(rows.shape[0]):
        for row in range(first, stop):
            rows[line, count + row - first] = ready[kw + line, row]
    return count + stop - first


@kernel
def closed_over(
    rows: Int64s, size: int, times: Int64s, state: Int64s, frontier: Int64s, guards: int
) -> Int64s:
    """Close the times with those of the rows, from the floor on; return `times`, or a larger copy.

    Rows that cancel from the floor on, but not one step before, count: corners distinguish them.
    """
    lubs = np.empty((1, size), np.int64)
    for row in range(size):
        lubs[0, row] = word_lub(rows[rows.shape[0] - 2, row], state[1], guards)
    return closed_with(lubs, size, np.int64(0), times, state, frontier, guards)


@kernel
def sum_at(rows: Int64s, size: int, time: int, shape: Int64s, aggregates: Int64s, sums: Int64s) -> None:
    """Write the sums by class of gathered rows to `sums`."""
    guards, vw = shape[2], shape[1]
    steps, component = steps_of(guards), np.int64(0)
    for number in range(sums.shape[0]):
        for component in range(sums.shape[1]):
            sums[number, component] = 0
    for row in range(size):
        if not word_less_equal(rows[vw, row], time, guards):
            continue
        number, diff = class_of(rows[vw, row], time, guards, steps), rows[vw + 1, row]
        if aggregates.shape[1] == 0:  # several values, whose sum may leave a word: in two halves
            sums[number, 0] += diff & HALF
            sums[number, 1] += diff >> 32
        else:
            component = rows[vw - 1, row] if shape[5] != 0 else np.int64(0)
            sums[number, component] += diff  # it fits: `check_key` has checked that


@kernel
def the_long_way(
    rows: Int64s,
    times: Int64s,
    state: Int64s,
    frontier: Int64s,
    shape: Int64s,
    aggregates: Int64s,
) -> tuple[Int64s, Int64s]:
    """Return the corrections at all ready times of a key with the state[2] rows `rows`, and its times.

    `rows` is int64[words + 2, ≥ state[2]], and its first state[2] columns count; the times are int64[3, ≥
    state[0]]. Rows are advanced to one step before the floor, and consolidated. Requires: room for as many
    and four.
    """
    guards, words, count = shape[2], aggregates.shape[1], np.int64(0)
    sums = np.zeros(
        (classes_of(guards), aggregates[5, 0] if aggregates.shape[0] > 2 else np.int64(2)), np.int64
    )
    floor, column = earlier_time(state[1], guards), shape[1]
    state[LARGEST] = 0
    for row in range(state[2]):
        rows[column, row] = word_lub(rows[column, row], floor, guards)
        state[LARGEST] |= magnitude(rows[column + 1, row])
    size = consolidate_key(rows, state)
    times = closed_over(rows, size, times, state, frontier, guards)
    check_key(rows, size, times, state, guards)
    corrections = np.empty((words + 2, 64), np.int64)
    for index in range(state[0]):
        if not word_is_beyond(times[0, index], frontier, guards):
            if count + sums.shape[0] + 2 > corrections.shape[1]:
                corrections = more_rows(corrections, count + sums.shape[0])
            sum_at(rows, size, times[0, index], shape, aggregates, sums)
            sum_corners(sums)
            count = put_corrections(sums, aggregates, times[0, index], corrections, np.int64(0), count)
    state[2] = consolidate_rows(corrections, count)
    return corrections, times


@kernel
def go_the_long_way(
    ready: Int64s,
    pending: Int64s,
    table: Int64s,
    frontier: Int64s,
    aggregates: Int64s,
    progress: Int64s,
    out: Int64s,
    pended: Int64s,
) -> tuple[Int64s, Int64s]:
    """Do `reduce_sums` for one key, at whose rows the cursors are; return (out, pended), or larger copies."""
    shape, i, p = progress[3], progress[2, 0], progress[2, 1]
    kw, column, guards, end, end_pending = shape[0], shape[0] + shape[1], shape[2], i, p
    order = whose_turn(ready, i, pending, p, kw)
    if order <= 0:
        end, _ = key_end(ready, i, kw, column)
    if order >= 0:
        end_pending, _ = key_end(pending, p, kw, kw)
    size = end - i
    for run in range(table.shape[0]):
        size += progress[1, run] - progress[0, run]
    rows = np.empty((shape[1] + 2, 2 * size + 4), np.int64)
    size = read_key(table, progress, frontier, rows)
    if shape[4] < 0:
        size = with_ready(ready, i, end, kw, rows, size)
    state, times = np.zeros(5, np.int64), np.empty((3, 32), np.int64)
    state[2], state[3] = size, progress[2, 3]
    times = with_seeds(ready, i, end, column, times, state, frontier, guards)
    times = with_seeds(pending, p, end_pending, kw, times, state, frontier, guards)
    corrections, times = the_long_way(rows, times, state, frontier, shape, aggregates)
    keys, key = (ready, i) if order <= 0 else (pending, p)
    pended = pended_times(times, state, frontier, guards, pended, keys, key, kw)
    if state[2] > 0:
        out = appended(out, progress[2, 2], keys, key, kw, corrections, state[2])
    progress[2, 0], progress[2, 1], progress[2, 2], progress[2, 3] = (
        end,
        end_pending,
        progress[2, 2] + state[2],
        state[3],
    )
    return out, pended


@large_kernel
def reduce_into(
    ready: Int64s,
    pending: Int64s,
    table: Int64s,
    frontier: Int64s,
    shape: Int64s,
    aggregates: Int64s,
    out: Int64s,
    pended: Int64s,
) -> tuple[Int64s, int, Int64s, int]:
    """Do `reduce_sums`; return (corrections, their number, pending times, their number).

    Corrections are the first columns of `out` or of a larger array, pending times those of `pended`.
    """
    progress = np.zeros((4, max(table.shape[0], 8)), np.int64)
    for index in range(6):
        progress[3, index] = shape[index]
    progress[3, 6], progress[3, 7], progress[2, 4] = steps_of(shape[2]), classes_of(shape[2]), KEYS_AT_ONCE
    while True:
        stopped = go_the_short_way(ready, pending, table, frontier, aggregates, progress, out, pended)
        if stopped == IS_OVER:
            return out, progress[2, 2], pended, progress[2, 3]
        if stopped == IS_LONG:
            out, pended = go_the_long_way(ready, pending, table, frontier, aggregates, progress, out, pended)
        if progress[2, 2] + progress[3, 7] + 2 > out.shape[1]:
            out = more_rows(out, progress[2, 2] + progress[3, 7])
        if progress[2, 3] + LATER_TIMES_MAX > pended.shape[1]:
            pended = more_rows(pended, progress[2, 3] + LATER_TIMES_MAX)


@kernel
def reduce_few(
    ready: Int64s, pending: Int64s, table: Int64s, frontier: Int64s, shape: Int64s, aggregates: Int64s
) -> tuple[Int64s, Int64s]:
    """Do `reduce_sums` in one call, for few rows."""
    room = max(ready.shape[1], pending.shape[1]) + 16
    # Twice the rows: each answer may be retracted and given anew.
    out = np.empty((shape[0] + aggregates.shape[1] + 2, 2 * room), np.int64)
    pended = np.empty((shape[0] + 1, room), np.int64)
    out, size, pended, waiting = reduce_into(ready, pending, table, frontier, shape, aggregates, out, pended)
    return first_rows(out, size), first_rows(pended, waiting)


def prepare_sums() -> None:
    """Compile the kernels of `reduce_sums`, unless they are in the cache."""
    prepare(reduce_few, "tttllt")
    prepare(reduce_into, "tttllttt")


def reduce_sums(
    ready: Int64s, pending: Int64s, table: Int64s, frontier: Int64s, shape: Int64s, aggregates: Int64s
) -> tuple[Int64s, Int64s]:
    """Return corrections of the output, and pending times: int64[kw + m + 2, ·] and int64[kw + 1, ·], sorted.

    ready, pending   int64[kw + vw + 2, n] consolidated rows, int64[kw + 1, q] (key, time): sorted, complete
    table            history of the input, without `ready` if shape[4] is -1
    shape            int64[6]: kw, vw, guards, the answer's value words, `exact` of `gathered_complete`, and
                     1 if the last value word is the component of a row; if 0, values do not count
    aggregates       see `corners.py`
    Raises OverflowError if an answer does not fit.
    Cost: for each key O(history · ready times); nothing is sorted or moved where only one time is ready.
    """
    result = _reduced(ready, pending, table, frontier, shape, aggregates)
    if aggregates.shape[0] > REFUSED and aggregates[REFUSED, 0]:
        aggregates[REFUSED, 0] = 0
        raise OverflowError("an answer does not fit")
    return result


def _reduced(
    ready: Int64s, pending: Int64s, table: Int64s, frontier: Int64s, shape: Int64s, aggregates: Int64s
) -> tuple[Int64s, Int64s]:
    """Do `reduce_sums`, with arbitrary words in place of answers that do not fit."""
    rows = max(ready.shape[1], pending.shape[1])
    if rows < MANY_ROWS:
        return reduce_few(ready, pending, table, frontier, shape, aggregates)
    lines = int(shape[0]) + aggregates.shape[1] + 2, int(shape[0]) + 1
    out, size, pended, waiting = reduce_into(
        ready,
        pending,
        table,
        frontier,
        shape,
        aggregates,
        room_for(lines[0], 2 * rows + 64),
        room_for(lines[1], rows + 64),
    )
    corrections = shortened(out, size)
    return corrections, pended[:, :waiting].copy()
