"""Reduce by sums, keeping no answers: what was said before follows from what the sums were before.

An answer is a function f of sums of a key's multiplicities: their number (count), whether that is positive
(distinct), or a word made of components (`accumulated.py`). With S(t) the sums at a time t, and one chain of
counters, what has to be said at t is f(S(t)) once, and f(S(t - 1)) taken back. With more chains, t has a
*corner* for each set C of them, the latest time that is earlier than t in these and is t in the others:

    correction at t  =  Σ over C of  (-1)^|C| · f(S(corner C of t))

since at every earlier time all corrections up to it add up to f(S). So no trace of answers is written, read
or merged; and of the input one pass per key is made, in whatever order its rows are found:

    sums   int64[2^chains, components]: row by *class*, which is the set of chains in which the row is earlier
           than t; what a corner adds up to are all classes that have its chains

Requires: what was advanced in the table was not advanced beyond any corner of a time that may still come:
since is held one step back in each chain (`earlier_times`). With one chain, and a table without the new rows,
it is enough that these are apart.

The short way is for keys of one ready time, as nearly all are: nothing is copied or sorted, and of what is
later only the minimal times are noted, with a sum that is 0 if what is there cancels. The long way is for all
else: several ready times, large numbers, what may cancel.

Which times are interesting is asked of rows one step before the floor (`closure.py`), since corners are: two
rows that cancel from there on are in no corner. From the floor on more would cancel, and in three chains some
of that counts: rows at (1, 5, 0) and (2, 5, 0) are one to a seed at (2, 3, 1), but not to its corners.
"""

from __future__ import annotations

from typing import Final

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
from differential.kernels.overflow import magnitude, wrapped_add
from differential.kernels.rows.memory import HEADER, load
from differential.kernels.rows.merge import first_rows
from differential.kernels.rows.search import cursors_of, locate, whose_turn
from differential.kernels.sums.accumulated import COUNT, answer_word
from progress.kernel import Int64s, kernel
from progress.times.time_words import LEVELS_MAX
from progress.times.word_order import word_is_beyond, word_less_equal, word_lub

LATER_MAX: Final = 4
"""Minimal later times of a key that the short way notes; with more it is the long way."""

SUM_BITS: Final = 63 - LEVELS_MAX
"""Sums of a class with so many bits can be added up, over all classes, without leaving a word."""

HALF: Final = (1 << 32) - 1

SPREAD: Final = 0x1E3779B97F4A7C15
"""What amounts at times are multiplied by, so that only those at one time cancel, or as good as."""


@kernel
def class_of(word: int, time: int, guards: int, steps: int) -> int:
    """The class of a row at `word`, which is ≤ `time`, as a number with a bit for each chain."""
    earlier = ((time | guards) - steps - word) & guards
    number, bit, rest = np.int64(0), np.int64(1), guards
    while rest != 0:
        if earlier & rest & -rest != 0:
            number |= bit
        bit <<= 1
        rest &= rest - 1
    return number


@kernel
def what_is_later(later: int, time: int, guards: int) -> int:
    """The fields in which a later time is not `time`, the others 0: what is behind it is so in these."""
    low, rest, found = np.int64(1), guards, np.int64(0)
    while rest != 0:
        guard = rest & -rest
        if (later ^ time) & (guard - low) != 0:
            found |= later & (guard - low)
        low, rest = guard << 1, rest ^ guard
    return found


@kernel
def note_later(later: Int64s, time: int, amount: int, frontier: Int64s, guards: int) -> bool:
    """Note a later time, and what is there; False if that is nothing for the short way.

    later   int64[2, LATER_MAX + 1]: an antichain of times, and the amounts at each; how many, at the end
    """
    count = later[0, LATER_MAX]
    for index in range(count):
        if later[0, index] == time:
            later[1, index] += amount
            return True
        if word_less_equal(later[0, index], time, guards):
            return True
    if not word_is_beyond(time, frontier, guards):
        return False  # a second time at which the answer may change
    kept = np.int64(0)
    for index in range(count):
        if not word_less_equal(time, later[0, index], guards):
            later[0, kept], later[1, kept] = later[0, index], later[1, index]
            kept += 1
    if kept == LATER_MAX:
        return False
    later[0, LATER_MAX] = kept + 1
    while kept > 0 and later[0, kept - 1] > time:
        later[0, kept], later[1, kept] = later[0, kept - 1], later[1, kept - 1]
        kept -= 1
    later[0, kept], later[1, kept] = time, amount
    return True


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
def read_key(table: Int64s, cursors: Int64s, shape: Int64s, frontier: Int64s, rows: Int64s) -> int:
    """Read all rows of the key at the cursors, in any order, without those that are known not to be complete;
    returns how many. Requires: room for them.

    If the table is apart its rows are earlier than the new ones, wherever they were advanced to: at time 0.
    """
    kw, vw, guards, exact, count = shape[0], shape[1], shape[2], shape[4], np.int64(0)
    is_apart = exact < 0 and guards & (guards - 1) == 0
    for run in range(table.shape[0]):
        span = (cursors[0, run], cursors[1, run])
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
def summed(
    rows: Int64s, count: int, time: int, frontier: Int64s, shape: Int64s, sums: Int64s, later: Int64s
) -> bool:
    """The short way to the sums of a key's rows by class, and to what is later than `time`, the only ready
    one; False if it takes the long one.
    """
    vw, guards, has_components = shape[1], shape[2], shape[5] != 0
    steps, floor = steps_of(guards), earlier_time(time, guards)
    for number in range(sums.shape[0]):
        for component in range(sums.shape[1]):
            sums[number, component] = 0
    later[0, LATER_MAX] = 0
    wrapped, component, nearest, behind = np.int64(0), np.int64(0), np.int64(-1), np.int64(0)
    for row in range(count):
        word, diff = rows[vw, row], rows[vw + 1, row]
        if has_components:
            component = rows[vw - 1, row]
        if word_less_equal(word, time, guards):
            number = class_of(word, time, guards, steps)
            before = sums[number, component]
            after = wrapped_add(before, diff)
            sums[number, component] = after
            wrapped |= (before ^ after) & (diff ^ after)  # below 0 if it has left its word
            continue
        if nearest >= 0 and word_less_equal(behind, word, guards):
            if not word_less_equal(word, nearest, guards):
                continue  # later than what has been noted, as nearly all that is later
        amount = diff * (2 * component + 1) * (word_lub(word, floor, guards) * SPREAD | 1)
        if not note_later(later, word_lub(word, time, guards), amount, frontier, guards):
            return False
        nearest = later[0, 0] if later[0, LATER_MAX] == 1 else np.int64(-1)
        behind = what_is_later(nearest, time, guards)
    if wrapped < 0:
        return False
    for index in range(later[0, LATER_MAX]):
        if later[1, index] == 0:
            return False
    largest = np.int64(0)
    for number in range(sums.shape[0]):
        for component in range(sums.shape[1]):
            largest |= magnitude(sums[number, component])
    return largest >> SUM_BITS == 0


@kernel
def answer_words(sums: Int64s, number: int, asked: Int64s, out: Int64s, at: int, column: int) -> None:
    """Write the answer of one line of components into a column of `out`, from line `at` on."""
    line = np.empty(sums.shape[1], np.int64)
    for component in range(sums.shape[1]):
        line[component] = sums[number, component]
    for part in range(asked.shape[1]):
        out[at + part, column] = answer_word(line, asked, part)


@kernel
def answer_of(sums: Int64s, number: int, asked: Int64s, out: Int64s, at: int, column: int) -> bool:
    """Write the answer of one line of sums into a column of `out`, from line `at` on; False if the group is
    absent there.
    """
    if asked.shape[0] == 2:
        total = sums[number, 0]
        for part in range(asked.shape[1]):
            out[at + part, column] = total
        if asked.shape[1] > 0:
            return total != 0
        high = sums[number, 1] + (total >> 32)
        return high > 0 or (high == 0 and total & HALF != 0)
    for part in range(asked[6, 0]):
        if sums[number, part] == 0:
            return False
    for part in range(asked.shape[1]):
        if asked[0, part] != COUNT or asked[2, part] >= 0:
            answer_words(sums, number, asked, out, at, column)
            return True
        out[at + part, column] = sums[number, asked[1, part]]
    return True


@kernel
def put_answer(out: Int64s, kw: int, words: int, start: int, end: int, sign: int) -> int:
    """Take the answer in column `end` of `out` among those from `start` on, which are sorted: it, or none if
    it is there; returns where they end now.
    """
    at, order = end, 1
    while at > start and order > 0:
        order = 0
        for word in range(kw, kw + words):
            if out[word, at - 1] != out[word, end]:
                order = 1 if out[word, at - 1] > out[word, end] else -1
                break
        at -= order > 0
    if at > start and order == 0:
        out[kw + words + 1, at - 1] += sign
        return end
    if at < end:
        for line in range(kw, kw + words):
            word = out[line, end]
            for row in range(end, at, -1):
                out[line, row] = out[line, row - 1]
            out[line, at] = word
        for row in range(end, at, -1):
            out[kw + words + 1, row] = out[kw + words + 1, row - 1]
    out[kw + words + 1, at] = sign
    return end + 1


@kernel
def sum_corners(sums: Int64s) -> None:
    """From the sums of classes to those of corners, in place: of all classes that have their chains."""
    classes, step = sums.shape[0], 1
    while step < classes:
        for number in range(classes):
            if number & step == 0:
                for component in range(sums.shape[1]):
                    sums[number, component] += sums[number | step, component]
        step <<= 1


@kernel
def put_corrections(sums: Int64s, asked: Int64s, time: int, out: Int64s, kw: int, start: int) -> int:
    """Write what has to be said at a time behind the `start` rows of `out`, without keys: sorted,
    consolidated; returns the row behind it. `sums` are those of corners.

    Requires: room for a row for each corner, and one more.
    """
    words, end = asked.shape[1], start
    for number in range(sums.shape[0]):
        if answer_of(sums, number, asked, out, kw, end):
            sign, rest = np.int64(1), number
            while rest != 0:
                sign, rest = -sign, rest & (rest - 1)
            end = put_answer(out, kw, words, start, end, sign)
    kept = start
    for row in range(start, end):
        if out[kw + words + 1, row] != 0:
            if kept != row:
                for line in range(kw, kw + words):
                    out[line, kept] = out[line, row]
                out[kw + words + 1, kept] = out[kw + words + 1, row]
            out[kw + words, kept] = time
            kept += 1
    return kept


@kernel
def put_later(later: Int64s, pended: Int64s, keys: Int64s, key: int, kw: int, start: int) -> int:
    """Write (key, time) for the later times that were noted behind the `start` rows of `pended`; returns the
    row behind them. Requires: room for LATER_MAX.
    """
    count = later[0, LATER_MAX]
    for index in range(count):
        for column in range(kw):
            pended[column, start + index] = keys[column, key]
        pended[kw, start + index] = later[0, index]
    return start + count


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
    sums: Int64s,
) -> tuple[Int64s, Int64s]:
    """What has to be said at all ready times of a key, whose state[2] rows these are, and its times:
    (int64[words + 2, ≥ state[2]], of which that many, int64[3, ≥ state[0]]).

    Rows are advanced to one step before the floor, and consolidated. Requires: room for as many and four.
    """
    guards, words, count = shape[2], asked.shape[1], np.int64(0)
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
def one_time(
    ready: Int64s, pending: Int64s, first: int, ends: tuple[int, int], first_pending: int, shape: Int64s
) -> int:
    """The time of all new rows and pending times of a key; -1 if there are several. ends: of both."""
    column, last = shape[0] + shape[1], np.int64(-1)
    for row in range(first, ends[0]):
        if last >= 0 and ready[column, row] != last:
            return np.int64(-1)
        last = ready[column, row]
    for row in range(first_pending, ends[1]):
        if last >= 0 and pending[shape[0], row] != last:
            return np.int64(-1)
        last = pending[shape[0], row]
    return last


@kernel
def classes_of(guards: int) -> int:
    """How many sets of chains there are."""
    classes = np.int64(1)
    while guards != 0:
        classes, guards = 2 * classes, guards & (guards - 1)
    return classes


@kernel
def reduce_sums(
    ready: Int64s, pending: Int64s, table: Int64s, frontier: Int64s, shape: Int64s, asked: Int64s
) -> tuple[Int64s, Int64s]:
    """Corrections of the output, and what stays pending: int64[kw + m + 2, ·] and int64[kw + 1, ·], sorted.

    ready, pending   int64[kw + vw + 2, n] consolidated rows, int64[kw + 1, q] (key, time): sorted, complete
    table            history of the input, without `ready` if shape[4] is -1
    shape            int64[6]: kw, vw, guards, the answer's value words, `exact` of `gathered_complete`, and
                     whether the last value word says which component a row is; else values do not count
    asked            int64[7, m], as in `accumulated.py`, of components; int64[2, m]: m times how often rows
                     are there in all, where that is not 0; m = 0: there if it is more than 0
    Cost: for each key O(history · ready times); nothing is sorted or moved where only one time is ready.
    """
    kw, column, guards = shape[0], shape[0] + shape[1], shape[2]
    cursors, state, classes = cursors_of(table), np.zeros(5, np.int64), classes_of(guards)
    sums = np.zeros((classes, asked[5, 0] if asked.shape[0] > 2 else np.int64(2)), np.int64)
    later, times = np.zeros((2, LATER_MAX + 1), np.int64), np.empty((3, 32), np.int64)
    rows, room = np.empty((shape[1] + 2, 64), np.int64), max(ready.shape[1], pending.shape[1]) + 16
    out, pended = np.empty((kw + asked.shape[1] + 2, room), np.int64), np.empty((kw + 1, room), np.int64)
    emitted, i, p = np.int64(0), np.int64(0), np.int64(0)
    while i < ready.shape[1] or p < pending.shape[1]:
        order = whose_turn(ready, i, pending, p, kw)
        keys, key = (ready, i) if order <= 0 else (pending, p)
        first, first_pending, before = i, p, emitted
        if order <= 0:
            i, _ = key_end(ready, i, kw, column)
        if order >= 0:
            p, _ = key_end(pending, p, kw, kw)
        size = locate(table, cursors, keys, key, kw) + i - first
        if 2 * size + 4 > rows.shape[1]:
            rows = more_rows(rows, 2 * size + 4)
        size = read_key(table, cursors, shape, frontier, rows)
        if shape[4] < 0:
            size = with_ready(ready, first, i, kw, rows, size)
        time = one_time(ready, pending, first, (i, p), first_pending, shape)
        if time >= 0 and summed(rows, size, time, frontier, shape, sums, later):
            if state[3] + LATER_MAX > pended.shape[1]:
                pended = more_rows(pended, state[3] + LATER_MAX)
            state[3] = put_later(later, pended, keys, key, kw, state[3])
            if emitted + classes + 2 > out.shape[1]:
                out = more_rows(out, emitted + classes)
            sum_corners(sums)
            emitted = put_corrections(sums, asked, time, out, kw, emitted)
            for word in range(kw):
                for row in range(before, emitted):
                    out[word, row] = keys[word, key]
            continue
        state[0], state[2] = 0, size
        times = with_seeds(ready, first, i, column, times, state, frontier, guards)
        times = with_seeds(pending, first_pending, p, kw, times, state, frontier, guards)
        made, times = the_long_way(rows, times, state, frontier, shape, asked, sums)
        pended = pended_times(times, state, frontier, guards, pended, keys, key, kw)
        if state[2] > 0:
            out = appended(out, emitted, keys, key, kw, made, state[2])
            emitted += state[2]
    return first_rows(out, emitted), first_rows(pended, state[3])
