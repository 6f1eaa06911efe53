"""Reduce by the first rows of a group in order, reading no more of its history than they need.

The answer of a key at a time: its rows of positive multiplicity in the order of their words (symbols by rank,
see `in_order.py`), without the first `offset`, and of the rest the first `limit`; a row of multiplicity 3 is
three rows. With *ties*, also all rows behind whose first `ordered` words are those of the last one. Each row
may get its rank in the group.

For each key with new rows or ready pending times, as in `least.py`, of which this is the general form:

    skip   If at every later time there are `limit` answers, all before the new values (or equal, where none
           of them takes rows away, and without ties), they stay. Only the history of the answers is read.
    walk   Otherwise go through the values from the first on. Once every ready time has as many rows as it
           needs, and the last value has no ties left, further values cannot matter at any later time either,
           nor can their times.

Why stopping is right: let t be ≥ a seed, and no pending time ≤ t. The latest interesting time w ≤ t is ready
and has all walked rows up to t, so the rows that are first at w are first at t.

The walked rows are stored, and when the times are known, the answer at each of them follows from these rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.closure import close_with, closed_with, key_end, more_room, with_seeds
from differential.kernels.history.history import (
    appended,
    consolidate_key,
    consolidate_many,
    consolidate_rows,
    gathered,
    more_rows,
    multiplicity,
    pended_times,
)
from differential.kernels.history.in_order import NOTHING, SYMBOLS, begin, next_step, with_symbols
from differential.kernels.merging.merge import first_rows
from differential.kernels.overflow import SMALL_BITS, is_positive, wide_add
from differential.kernels.rows.memory import DIRECTORY, LUB, describe_words, read
from differential.kernels.rows.search import cursors_of, locate, whose_turn
from progress.compiled.kernel import Int64s, kernel, small_kernel
from progress.times.word_order import word_is_beyond, word_less_equal, word_lub

NO_RANK: Final = 0
ROW_NUMBER: Final = 1
RANK: Final = 2
DENSE_RANK: Final = 3

ENOUGH: Final = 1 << 62
"""Not fewer than any multiplicity of a row among ties may be added up to."""

WALKED: Final = 5
READ: Final = 6
"""Where `state` has the number of rows walked for a key, and that for all keys together."""


@kernel
def with_ready(table: Int64s, ready: Int64s, guards: int) -> Int64s:
    """Return the lines of a table and one more, for rows that are not in it yet."""
    runs = table.shape[0]
    lines = np.zeros((runs + 1, table.shape[1]), np.int64)
    for line in range(runs):
        for entry in range(table.shape[1]):
            lines[line, entry] = table[line, entry]
    describe_words(ready, ready.shape[1], lines, runs)
    lines[runs, DIRECTORY] = 0
    lub = np.int64(0)
    for row in range(ready.shape[1]):
        lub = word_lub(lub, ready[ready.shape[0] - 2, row], guards)
    lines[runs, LUB] = lub
    return lines


@small_kernel
def answers_stay(
    ready: Int64s,
    group: tuple[int, int],
    times: Int64s,
    count: int,
    answers: Int64s,
    held: int,
    cut: int,
    shape: Int64s,
) -> bool:
    """Return True if at each of the times there are `limit` answers, none behind the new rows.

    group     first and last row of the key in `ready`
    answers   int64[≥ vw + 2, ≥ held]: the history of the answers, consolidated
    cut       how many words decide which is first: those up to the first symbol, whose word is not its order
    """
    first, last = group
    kw, vw, guards, limit = shape[0], shape[1], shape[2], shape[4]
    takes, ties = False, shape[7] != 0
    if ties:
        cut = min(cut, shape[6])
    for row in range(first, last + 1):
        same = True
        for word in range(vw):
            same = same and ready[kw + word, row] == ready[kw + word, first]
        if not same:
            break
        takes = takes or ready[kw + vw + 1, row] < 0
    for index in range(count):
        present = np.int64(0)
        row = np.int64(0)
        while row < held:
            total, after = multiplicity(answers, held, row, times[0, index], guards)
            if total < 0 or (total > limit and not ties):
                return False
            if total > 0:
                order = np.int64(0)
                word = np.int64(0)
                while order == 0 and word < cut:
                    if answers[word, row] != ready[kw + word, first]:
                        order = -1 if answers[word, row] < ready[kw + word, first] else 1
                    word += 1
                if order > 0 or (order == 0 and (cut < vw or takes or ties)):
                    return False
                present += min(total, limit)
            row = after
        if present < limit or (present > limit and not ties):
            return False
    return True


@small_kernel
def rows_of_block(cursors: Int64s) -> int:
    """Return the number of rows of the value at hand, in all runs."""
    size = np.int64(0)
    at = cursors.shape[0] - 2
    for run in range(cursors.shape[1]):
        size += cursors[at + 1, run] - cursors[at, run]
    return size


@small_kernel
def take_value(
    lines: Int64s, cursors: Int64s, value: Int64s, shape: Int64s, state: Int64s, rows: Int64s
) -> None:
    """Append the rows of the value at hand, times advanced to the floor, to the state[WALKED] rows of `rows`.

    Requires: room for these rows.
    """
    kw, vw, guards, floor = shape[0], shape[1], shape[2], state[1]
    count = state[WALKED]
    at = cursors.shape[0] - 2
    for run in range(lines.shape[0]):
        first, last = cursors[at, run], cursors[at + 1, run]
        if first == last:
            continue
        early = word_less_equal(lines[run, LUB], floor, guards)
        for row in range(first, last):
            for word in range(vw):
                rows[word, count] = value[word]
            rows[vw, count] = floor if early else word_lub(read(lines, run, kw + vw, row), floor, guards)
            rows[vw + 1, count] = read(lines, run, kw + vw + 1, row)
            count += 1
    state[READ] += count - state[WALKED]
    state[WALKED] = count


@small_kernel
def total_at(rows: Int64s, start: int, stop: int, time: int, guards: int, most: int) -> int:
    """Return the sum of the diffs of the rows [start, stop) at times ≤ `time`, from 0 up to `most`."""
    words = rows.shape[0] - 2
    high, low = np.int64(0), np.int64(0)
    for row in range(start, stop):
        if word_less_equal(rows[words, row], time, guards):
            high, low = wide_add(high, low, rows[words + 1, row])
    if not is_positive(high, low):
        return np.int64(0)
    return most if high > 0 or low < 0 or low > most else low


@small_kernel
def cover(
    times: Int64s, state: Int64s, rows: Int64s, start: int, frontier: Int64s, guards: int, needed: int
) -> int:
    """Add the rows [start, state[WALKED]) of a value to all times; return how many ready ones still lack
    rows.
    """
    missing = np.int64(0)
    for index in range(state[0]):
        left = needed - times[1, index]
        if left > 0:
            here = total_at(rows, start, state[WALKED], times[0, index], guards, left)
            times[1, index] += here
            missing += here < left and not word_is_beyond(times[0, index], frontier, guards)
    return missing


@small_kernel
def is_tie(rows: Int64s, row: int, value: Int64s, ordered: int) -> bool:
    """Return True if a value has the first `ordered` words of a row."""
    for word in range(ordered):
        if rows[word, row] != value[word]:
            return False
    return True


@kernel
def walk(
    source: tuple[Int64s, Int64s, Int64s, int],
    cursors: Int64s,
    waiting: Int64s,
    marks: Int64s,
    shape: Int64s,
    frontier: Int64s,
    state: Int64s,
    arrays: tuple[Int64s, Int64s, Int64s],
) -> tuple[Int64s, Int64s, Int64s]:
    """Go through the values until every ready time has the rows that it needs; return (times, rows, waiting).

    arrays   `times`, and `rows` int64[vw + 2, room] for the walked rows (if there are more, larger copies are
             returned); int64[vw] for the value at hand
    """
    times, rows, value = arrays
    vw, guards, needed = shape[1], shape[2], shape[3] + shape[4]
    for index in range(state[0]):
        times[1, index] = 0
    state[WALKED] = 0
    missing = np.int64(1)
    while missing > 0 or shape[7] != 0:
        step = next_step(source, cursors, waiting, marks, value)
        while step == SYMBOLS:
            waiting = with_symbols(source, cursors, waiting, marks)
            step = next_step(source, cursors, waiting, marks, value)
        if step == NOTHING or (missing == 0 and not is_tie(rows, state[WALKED] - 1, value, shape[6])):
            break
        start = state[WALKED]
        size = rows_of_block(cursors)
        if start + size > rows.shape[1]:
            rows = more_rows(rows, start + size)
        take_value(source[0], cursors, value, shape, state, rows)
        for row in range(start, state[WALKED]):
            if rows[vw, row] != state[1]:
                if times.shape[1] <= 2 * state[0] + 2:
                    times = more_room(times, state[0])
                state[0] = close_with(times, state[0], rows[vw, row], frontier, guards)
        missing = cover(times, state, rows, start, frontier, guards, needed)
    return times, rows, waiting


@small_kernel
def value_end(rows: Int64s, start: int, stop: int, words: int) -> int:
    """Return the row behind the last one whose first `words` words are those of row `start`."""
    row = start + 1
    while row < stop:
        for word in range(words):
            if rows[word, row] != rows[word, start]:
                return row
        row += 1
    return row


@small_kernel
def put_answer(chosen: Int64s, count: int, rows: Int64s, row: int, rank: int, diff: int) -> None:
    """Write a value as row `count` of `chosen`, with its rank if there is a word for it. Requires: room."""
    vw = rows.shape[0] - 2
    for word in range(vw):
        chosen[word, count] = rows[word, row]
    if chosen.shape[0] > vw + 2:
        chosen[vw, count] = rank
    chosen[chosen.shape[0] - 1, count] = diff


@kernel
def choose(
    rows: Int64s, walked: int, time: int, shape: Int64s, chosen: Int64s, start: int
) -> tuple[Int64s, int]:
    """Append the answers at a time to the first `start` rows of `chosen`; return (it or a larger copy, its
    end).
    """
    guards, offset, needed, kind, ordered = shape[2], shape[3], shape[3] + shape[4], shape[5], shape[6]
    words = rows.shape[0] - 2
    count, before, number, dense = start, np.int64(0), np.int64(0), np.int64(0)
    row, previous, ties = np.int64(0), np.int64(-1), shape[7] != 0
    while row < walked and (before < needed or (ties and value_end(rows, previous, row + 1, ordered) > row)):
        after = value_end(rows, row, walked, words)
        total = total_at(rows, row, after, time, guards, ENOUGH if ties else needed - before)
        if total > 0:
            if previous < 0 or value_end(rows, previous, row + 1, ordered) <= row:
                dense += 1
                number = before + 1
            previous = row
            first = max(before, offset)
            before += total
            if kind == ROW_NUMBER:
                if count + before - first > chosen.shape[1]:
                    chosen = more_rows(chosen, count + before - first)
                for position in range(first, before):
                    put_answer(chosen, count, rows, row, position + 1, np.int64(1))
                    count += 1
            elif before > first:
                if count + 1 >= chosen.shape[1]:
                    chosen = more_rows(chosen, count + 1)
                rank = number if kind == RANK else dense
                put_answer(chosen, count, rows, row, rank, before - first)
                count += 1
        row = after
    return chosen, count


@kernel
def summed(rows: Int64s, count: int, limit: int) -> int:
    """Sort and sum the first `count` rows, of multiplicities ≤ `limit`, in place; return their number."""
    return consolidate_many(rows, count) if limit >> SMALL_BITS else consolidate_rows(rows, count)


@kernel
def corrections_of(
    times: Int64s,
    state: Int64s,
    frontier: Int64s,
    shape: Int64s,
    rows: Int64s,
    answers: Int64s,
    both: tuple[Int64s, Int64s],
) -> tuple[Int64s, Int64s]:
    """Correct the state[2] rows of `answers` at every ready time, in order; return both arrays, or larger
    copies.

    both   int64[words + 2, room] each: for the answers at one time, and for all corrections, which are its
           first state[2] rows afterwards, sorted and consolidated
    """
    chosen, all_corrections = both
    guards, limit, held = shape[2], ENOUGH if shape[7] != 0 else shape[4], state[2]
    columns = answers.shape[0]
    corrections, corrected = np.int64(0), np.int64(0)
    for index in range(state[0]):
        time = times[0, index]
        if word_is_beyond(time, frontier, guards):
            continue
        chosen, count = choose(rows, state[WALKED], time, shape, chosen, np.int64(0))
        if count + held + 1 > chosen.shape[1]:
            chosen = more_rows(chosen, count + held + 1)
        row = np.int64(0)
        while row < held:
            total, after = multiplicity(answers, held, row, time, guards)
            if total != 0:
                for column in range(columns - 2):
                    chosen[column, count] = answers[column, row]
                chosen[columns - 1, count] = -total
                count += 1
            row = after
        for row in range(count):
            chosen[columns - 2, row] = time
        count = summed(chosen, count, limit)
        if corrections + count + 1 > all_corrections.shape[1]:
            all_corrections = more_rows(all_corrections, corrections + count + 1)
        put_behind(chosen, count, all_corrections, corrections)
        corrections += count
        corrected += count > 0
        if count > 0 and index + 1 < state[0]:  # later times depend on it
            if held + count + 1 > answers.shape[1]:
                answers = more_rows(answers, held + count + 1)
            put_behind(chosen, count, answers, held)
            held = summed(answers, held + count, limit)
    state[2] = corrections if corrected < 2 else summed(all_corrections, corrections, limit)
    return chosen, all_corrections


@small_kernel
def put_behind(source: Int64s, count: int, target: Int64s, at: int) -> None:
    """Copy the first `count` rows to rows `at` and following of `target`."""
    for column in range(source.shape[0]):
        for row in range(count):
            target[column, at + row] = source[column, row]


@kernel
def all_stay(
    ready: Int64s,
    group: tuple[int, int, int],
    answers: Int64s,
    held: int,
    cut: int,
    shape: Int64s,
    reach: Int64s,
    both: tuple[Int64s, Int64s],
) -> tuple[bool, Int64s]:
    """Return `answers_stay` for all times at or behind those of the new rows, and `reach` or a larger copy.

    group   first row of the key in `ready`, the row behind the last with a time of its own, last row
    reach   room for these times
    both    room for their state, as in `closure.py`, and an empty frontier
    """
    first, stop, last = group
    kw, vw, guards = shape[0], shape[1], shape[2]
    reached, never = both
    reached[0] = 0
    reach = with_seeds(ready, first, stop, kw + vw, reach, reached, never, guards)
    reach = closed_with(answers, held, answers.shape[0] - 2, reach, reached, never, guards)
    return answers_stay(ready, (first, last), reach, reached[0], answers, held, cut, shape), reach


@kernel
def without_rank(waiting: Int64s, marks: Int64s) -> Int64s:
    """Return the symbols whose rank was needed and is missing."""
    unknown = np.empty(marks[2], np.int64)
    for index in range(marks[2]):
        unknown[index] = waiting[1, index]
    return unknown


@kernel
def reduce_first(
    ready: Int64s,
    pending: Int64s,
    table: Int64s,
    answers_table: Int64s,
    frontier: Int64s,
    shape: Int64s,
    levels: Int64s,
    ranks: Int64s,
) -> tuple[Int64s, Int64s, Int64s, int]:
    """Return corrections of the output, pending times, symbols without a rank, and the number of rows walked.

    ready           int64[kw + vw + 2, n] sorted consolidated rows, none beyond the frontier
    pending         int64[kw + 1, q] sorted (key, time), none beyond the frontier
    table           history of the input, without `ready`; `answers_table` that of the output
    shape           int64[8]: kw, vw, guards, offset, limit, kind of rank (an answer has a word for it then),
                    how many words decide whether two rows have one rank, or are ties; 1 if ties are answers
    levels, ranks   as in `in_order.py`
    Ensures: corrections and pending times are sorted. If symbols are without a rank, corrections are wrong.
    Cost: for each key a search in every run, and the cost of `next_step` for offset + limit values, unless
    skipped; more values where multiplicities are not positive.
    """
    kw, vw, guards, aw = shape[0], shape[1], shape[2], shape[1] + (shape[5] != NO_RANK)
    lines = with_ready(table, ready, guards)
    source = (lines, levels, ranks, kw)
    located, answer_cursors = cursors_of(lines), cursors_of(answers_table)
    cursors = np.zeros((4 * levels.shape[1], lines.shape[0]), np.int64)
    waiting, marks = np.empty((2, 16), np.int64), np.zeros(levels.shape[1] + 3, np.int64)
    value, newest = np.empty(vw, np.int64), table.shape[0]  # the line of the ready rows
    times, reach = np.empty((3, 32), np.int64), np.empty((3, 32), np.int64)
    state, reached = np.zeros(8, np.int64), (np.zeros(8, np.int64), np.empty(0, np.int64))
    rows, answers = np.empty((vw + 2, 64), np.int64), np.empty((aw + 2, 64), np.int64)
    both = (np.empty((aw + 2, 64), np.int64), np.empty((aw + 2, 64), np.int64))
    out = np.empty((kw + aw + 2, 64), np.int64)
    pended = np.empty((kw + 1, pending.shape[1] + 16), np.int64)
    emitted, i, p = np.int64(0), np.int64(0), np.int64(0)
    while i < ready.shape[1] or p < pending.shape[1]:
        order = whose_turn(ready, i, pending, p, kw)
        keys, key = (ready, i) if order <= 0 else (pending, p)
        first, first_pending, last_seed = i, p, i
        state[0] = 0
        if order <= 0:
            i, one_time = key_end(ready, i, kw, kw + vw)
            last_seed = first + 1 if one_time else i
            times = with_seeds(ready, first, last_seed, kw + vw, times, state, frontier, guards)
        if order >= 0:
            p, _ = key_end(pending, p, kw, kw)
            times = with_seeds(pending, first_pending, p, kw, times, state, frontier, guards)
        answers = gathered(answers_table, answer_cursors, keys, key, kw, state, guards, answers)
        held = consolidate_key(answers, state)
        if held > 0:  # else there are fewer than `limit` answers
            group = first, last_seed, i - 1
            if order < 0 and shape[4] >> SMALL_BITS == 0:  # no time is beyond: the key is not visited again
                stay, reach = all_stay(ready, group, answers, held, levels[0, 0], shape, reach, reached)
                if stay:
                    continue
            times = closed_with(answers, held, aw, times, state, frontier, guards)
        locate(table, located, keys, key, kw)
        located[0, newest], located[1, newest] = first, i
        begin(cursors, located, marks)
        arrays = times, rows, value
        times, rows, waiting = walk(source, cursors, waiting, marks, shape, frontier, state, arrays)
        state[2] = held
        both = corrections_of(times, state, frontier, shape, rows, answers, both)
        if state[2] > 0:
            out = appended(out, emitted, keys, key, kw, both[1], state[2])
            emitted += state[2]
        if state[0] > 1:  # else it is the time of a ready row or pair
            pended = pended_times(times, state, frontier, guards, pended, keys, key, kw)
    return first_rows(out, emitted), first_rows(pended, state[3]), without_rank(waiting, marks), state[READ]
