"""Reduce by sums, keeping no answers: what was said before follows from what the sums were before.

An answer is a function f of sums of a key's multiplicities: their number (count), whether that is positive
(distinct), or a word made of components (`accumulated.py`). With S(t) the sums at a time t, and one chain of
counters, what has to be said at t is f(S(t)) once, and f(S(t - 1)) taken back. With more chains, t has a
*corner* for each set C of them, the latest time that is earlier than t in these and is t in the others:

    correction at t  =  Σ over C of  (-1)^|C| · f(S(corner C of t))

since at every earlier time all corrections up to it add up to f(S). So no trace of answers is written, read
or merged; and of the input one pass per key is made, in whatever order its rows are found,
each row in the sums of its *class*, which is the set of chains in which it is earlier than t (`corners.py`).

Requires: what was advanced in the table was not advanced beyond any corner of a time that may still come:
since is held one step back in each chain (`earlier_times`). With one chain, and a table without the new rows,
it is enough that these are apart.

The short way (`short_way.py`) is for keys of one ready time, as nearly all are. The long way is for all else:
several ready times, large numbers, what may cancel.

Which times are interesting is asked of rows one step before the floor (`closure.py`), since corners are: two
rows that cancel from there on are in no corner. From the floor on more would cancel, and in three chains some
of that counts: rows at (1, 5, 0) and (2, 5, 0) are one to a seed at (2, 3, 1), but not to its corners.
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
def read_key(table: Int64s, places: Int64s, frontier: Int64s, rows: Int64s) -> int:
    """Read all rows of the key at the cursors, in any order, without those that are known not to be complete;
    returns how many. Requires: room for them.

    If the table is apart its rows are earlier than the new ones, wherever they were advanced to: at time 0.
    """
    kw, vw, guards, exact, count = places[3, 0], places[3, 1], places[3, 2], places[3, 4], np.int64(0)
    is_apart = exact < 0 and guards & (guards - 1) == 0
    for run in range(table.shape[0]):
        span = (places[0, run], places[1, run])
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
            kept = count
            for row in range(count, end):
                if not word_is_beyond(rows[vw, row], frontier, guards):
                    if kept != row:
                        for line in range(vw + 2):
                            rows[line, kept] = rows[line, row]
                    kept += 1
            end = kept
        count = end
    return count


@kernel
def with_ready(ready: Int64s, first: int, stop: int, kw: int, rows: Int64s, count: int) -> int:
    """Append new rows of a key; returns how many there are then. Requires: room for them."""
    for line in range(rows.shape[0]):
        for row in range(first, stop):
            rows[line, count + row - first] = ready[kw + line, row]
    return count + stop - first


@kernel
def closed_over(
    rows: Int64s, size: int, times: Int64s, state: Int64s, frontier: Int64s, guards: int
) -> Int64s:
    """Close the times with those of the rows, from the floor on; returns `times`, or a larger copy.

    Rows that cancel from the floor on, and not one step before, count: corners tell them apart.
    """
    lubs = np.empty((1, size), np.int64)
    for row in range(size):
        lubs[0, row] = word_lub(rows[rows.shape[0] - 2, row], state[1], guards)
    return closed_with(lubs, size, np.int64(0), times, state, frontier, guards)


@kernel
def sum_at(rows: Int64s, size: int, time: int, shape: Int64s, asked: Int64s, sums: Int64s) -> None:
    """The sums by class of rows that have been gathered."""
    guards, vw = shape[2], shape[1]
    steps, component = steps_of(guards), np.int64(0)
    for number in range(sums.shape[0]):
        for component in range(sums.shape[1]):
            sums[number, component] = 0
    for row in range(size):
        if not word_less_equal(rows[vw, row], time, guards):
            continue
        number, diff = class_of(rows[vw, row], time, guards, steps), rows[vw + 1, row]
        if asked.shape[1] == 0:  # of several values, whose sum may leave a word: in two halves
            sums[number, 0] += diff & HALF
            sums[number, 1] += diff >> 32
        else:
            component = rows[vw - 1, row] if shape[5] != 0 else np.int64(0)
            sums[number, component] += diff  # that it fits has been checked


@kernel
def the_long_way(
    rows: Int64s,
    times: Int64s,
    state: Int64s,
    frontier: Int64s,
    shape: Int64s,
    asked: Int64s,
) -> tuple[Int64s, Int64s]:
    """What has to be said at all ready times of a key, whose state[2] rows these are, and its times:
    (int64[words + 2, ≥ state[2]], of which that many, int64[3, ≥ state[0]]).

    Rows are advanced to one step before the floor, and consolidated. Requires: room for as many and four.
    """
    guards, words, count = shape[2], asked.shape[1], np.int64(0)
    sums = np.zeros((classes_of(guards), asked[5, 0] if asked.shape[0] > 2 else np.int64(2)), np.int64)
    floor, column = earlier_time(state[1], guards), shape[1]
    state[LARGEST] = 0
    for row in range(state[2]):
        rows[column, row] = word_lub(rows[column, row], floor, guards)
        state[LARGEST] |= magnitude(rows[column + 1, row])
    size = consolidate_key(rows, state)
    times = closed_over(rows, size, times, state, frontier, guards)
    check_key(rows, size, times, state, guards)
    made = np.empty((words + 2, 64), np.int64)
    for index in range(state[0]):
        if not word_is_beyond(times[0, index], frontier, guards):
            if count + sums.shape[0] + 2 > made.shape[1]:
                made = more_rows(made, count + sums.shape[0])
            sum_at(rows, size, times[0, index], shape, asked, sums)
            sum_corners(sums)
            count = put_corrections(sums, asked, times[0, index], made, np.int64(0), count)
    state[2] = consolidate_rows(made, count)
    return made, times


@kernel
def go_the_long_way(
    ready: Int64s,
    pending: Int64s,
    table: Int64s,
    frontier: Int64s,
    asked: Int64s,
    places: Int64s,
    out: Int64s,
    pended: Int64s,
) -> tuple[Int64s, Int64s]:
    """What `reduce_sums` does for one key, at whose rows the cursors are: (out, pended), or larger copies."""
    shape, i, p = places[3], places[2, 0], places[2, 1]
    kw, column, guards, end, end_pending = shape[0], shape[0] + shape[1], shape[2], i, p
    order = whose_turn(ready, i, pending, p, kw)
    if order <= 0:
        end, _ = key_end(ready, i, kw, column)
    if order >= 0:
        end_pending, _ = key_end(pending, p, kw, kw)
    size = end - i
    for run in range(table.shape[0]):
        size += places[1, run] - places[0, run]
    rows = np.empty((shape[1] + 2, 2 * size + 4), np.int64)
    size = read_key(table, places, frontier, rows)
    if shape[4] < 0:
        size = with_ready(ready, i, end, kw, rows, size)
    state, times = np.zeros(5, np.int64), np.empty((3, 32), np.int64)
    state[2], state[3] = size, places[2, 3]
    times = with_seeds(ready, i, end, column, times, state, frontier, guards)
    times = with_seeds(pending, p, end_pending, kw, times, state, frontier, guards)
    made, times = the_long_way(rows, times, state, frontier, shape, asked)
    keys, key = (ready, i) if order <= 0 else (pending, p)
    pended = pended_times(times, state, frontier, guards, pended, keys, key, kw)
    if state[2] > 0:
        out = appended(out, places[2, 2], keys, key, kw, made, state[2])
    places[2, 0], places[2, 1], places[2, 2], places[2, 3] = (
        end,
        end_pending,
        places[2, 2] + state[2],
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
    asked: Int64s,
    out: Int64s,
    pended: Int64s,
) -> tuple[Int64s, int, Int64s, int]:
    """What `reduce_sums` says: the corrections, in the first columns of `out` or of a larger array; how many;
    and the same of what stays pending.
    """
    places = np.zeros((4, max(table.shape[0], 8)), np.int64)
    for index in range(6):
        places[3, index] = shape[index]
    places[3, 6], places[3, 7], places[2, 4] = steps_of(shape[2]), classes_of(shape[2]), KEYS_AT_ONCE
    while True:
        stopped = go_the_short_way(ready, pending, table, frontier, asked, places, out, pended)
        if stopped == IS_OVER:
            return out, places[2, 2], pended, places[2, 3]
        if stopped == IS_LONG:
            out, pended = go_the_long_way(ready, pending, table, frontier, asked, places, out, pended)
        if places[2, 2] + places[3, 7] + 2 > out.shape[1]:
            out = more_rows(out, places[2, 2] + places[3, 7])
        if places[2, 3] + LATER_TIMES_MAX > pended.shape[1]:
            pended = more_rows(pended, places[2, 3] + LATER_TIMES_MAX)


@kernel
def reduce_few(
    ready: Int64s, pending: Int64s, table: Int64s, frontier: Int64s, shape: Int64s, asked: Int64s
) -> tuple[Int64s, Int64s]:
    """`reduce_sums` in one call, for few rows."""
    room = max(ready.shape[1], pending.shape[1]) + 16
    # Twice: what was said is taken back, and said anew.
    out = np.empty((shape[0] + asked.shape[1] + 2, 2 * room), np.int64)
    pended = np.empty((shape[0] + 1, room), np.int64)
    out, made, pended, waiting = reduce_into(ready, pending, table, frontier, shape, asked, out, pended)
    return first_rows(out, made), first_rows(pended, waiting)


def prepare_sums() -> None:
    """Compile what `reduce_sums` calls, unless it is in the cache."""
    prepare(reduce_few, "tttllt")
    prepare(reduce_into, "tttllttt")


def reduce_sums(
    ready: Int64s, pending: Int64s, table: Int64s, frontier: Int64s, shape: Int64s, asked: Int64s
) -> tuple[Int64s, Int64s]:
    """Corrections of the output, and what stays pending: int64[kw + m + 2, ·] and int64[kw + 1, ·], sorted.

    ready, pending   int64[kw + vw + 2, n] consolidated rows, int64[kw + 1, q] (key, time): sorted, complete
    table            history of the input, without `ready` if shape[4] is -1
    shape            int64[6]: kw, vw, guards, the answer's value words, `exact` of `gathered_complete`, and
                     whether the last value word says which component a row is; else values do not count
    asked            see `corners.py`
    Raises OverflowError if an answer does not fit.
    Cost: for each key O(history · ready times); nothing is sorted or moved where only one time is ready.
    """
    found = _reduced(ready, pending, table, frontier, shape, asked)
    if asked.shape[0] > REFUSED and asked[REFUSED, 0]:
        asked[REFUSED, 0] = 0
        raise OverflowError("an answer does not fit")
    return found


def _reduced(
    ready: Int64s, pending: Int64s, table: Int64s, frontier: Int64s, shape: Int64s, asked: Int64s
) -> tuple[Int64s, Int64s]:
    """The same, with whatever words in place of answers that do not fit."""
    rows = max(ready.shape[1], pending.shape[1])
    if rows < MANY_ROWS:
        return reduce_few(ready, pending, table, frontier, shape, asked)
    lines = int(shape[0]) + asked.shape[1] + 2, int(shape[0]) + 1
    out, made, pended, waiting = reduce_into(
        ready,
        pending,
        table,
        frontier,
        shape,
        asked,
        room_for(lines[0], 2 * rows + 64),
        room_for(lines[1], rows + 64),
    )
    said = shortened(out, made)
    return said, pended[:, :waiting].copy()
