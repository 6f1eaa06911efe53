"""The values at some places of the order of a group, found in the runs of a trace without reading the group.

The rows of a key are in the order of their values in each run. The value at a place is searched as in one
sorted list: the value in the middle of the longest part that is left divides all parts, and the rows before
it are counted. Counting rows means adding up their differences. Each run has these sums already, for every
`BLOCK_ROWS` rows; if all rows of a run have the same difference, none is needed.

    ready      int64[kw + vw + 2, n]: changed rows of one time, sorted, consolidated
    table      their trace, without `ready`; all its rows count at that time. `answers_table`: of the answers
    shape      int64[4]: kw; 1 if a word before the value says that it is not null, else 0; words of an
               answer; guards
    calls      int64[2, c]: for each place INTERPOLATED or ONE, and the bits of its fraction
    sums       sums of differences up to the begin of each block, of all runs, one after another
    starts     int64[lines]: where in `sums` those of a run begin; -1: it has none

Requires: no row has a negative multiplicity, and all multiplicities add up to less than 2⁶². If a row is
there less than not at all, `select` returns False, and its answers are wrong.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.closure import key_end
from differential.kernels.history.first import with_ready
from differential.kernels.history.history import more_rows
from differential.kernels.merging.merge import first_rows
from differential.kernels.rows.memory import HEADER, load, read
from differential.kernels.rows.search import cursors_of, first_from, locate
from progress.compiled.kernel import Int64s, kernel

INTERPOLATED: Final = 0
ONE: Final = 1
BLOCK_ROWS: Final = 256
"""Rows of a block. Smaller blocks take more memory, eight bytes each; of larger ones more rows are read."""


@kernel
def weight(table: Int64s, where: tuple[int, int], rows: tuple[int, int], sums: Int64s, start: int) -> int:
    """Return the sum of the differences of some rows of a run.

    where   the run, and the column of differences
    start   where in `sums` those of the run begin; -1: it has none
    """
    at = HEADER + 3 * where[1]
    address, width, base = table[where[0], at], table[where[0], at + 1], table[where[0], at + 2]
    first, last = rows
    if first >= last:
        return np.int64(0)
    if width == 0:
        return base * (last - first)
    total = np.int64(0)
    if start >= 0:
        low, high = (first + BLOCK_ROWS - 1) // BLOCK_ROWS, last // BLOCK_ROWS
        if low < high:
            total = sums[start + high] - sums[start + low]
            for row in range(first, low * BLOCK_ROWS):
                total += load(address, width, base, row)
            first = high * BLOCK_ROWS
    for row in range(first, last):
        total += load(address, width, base, row)
    return total


@kernel
def weight_of_all(table: Int64s, column: int, parts: Int64s, sums: Int64s, starts: Int64s) -> int:
    """Return the sum of the differences of a part of each run; parts: int64[2, runs], first and last."""
    total = np.int64(0)
    for run in range(table.shape[0]):
        total += weight(table, (run, column), (parts[0, run], parts[1, run]), sums, starts[run])
    return total


@kernel
def value_at(
    table: Int64s, column: int, parts: Int64s, place: int, sums: Int64s, starts: Int64s
) -> tuple[int, bool]:
    """Return the value at a place of the order of all rows in `parts`, counted from 0, and whether there is
    one. `parts` is written to.

    column   of the values; that of differences is the last but one behind it
    """
    runs, diffs = table.shape[0], column + 2
    left = np.empty((2, runs), np.int64)
    while True:
        longest, rows = np.int64(-1), np.int64(0)
        for run in range(runs):
            if parts[1, run] - parts[0, run] > rows:
                longest, rows = run, parts[1, run] - parts[0, run]
        if longest < 0:
            return np.int64(0), False
        middle = read(table, longest, column, parts[0, longest] + (rows >> 1))
        before = equal = np.int64(0)
        for run in range(runs):
            first, last = parts[0, run], parts[1, run]
            left[0, run] = first_from(table, run, column, first, last, middle, np.int64(0))
            left[1, run] = first_from(table, run, column, left[0, run], last, middle, np.int64(1))
            before += weight(table, (run, diffs), (first, left[0, run]), sums, starts[run])
            equal += weight(table, (run, diffs), (left[0, run], left[1, run]), sums, starts[run])
        if place < before:
            for run in range(runs):
                parts[1, run] = left[0, run]
        elif place < before + equal:
            return middle, True
        else:
            place -= before + equal
            for run in range(runs):
                parts[0, run] = left[1, run]


@kernel
def places_of(kind: int, fraction: Int64s, count: int, far: Int64s) -> tuple[int, int]:
    """Return the places between which an answer is.

    fraction   one word, the bits of the fraction of the way from the first value to the last
    far        one word: gets the bits of how far the answer is from the first place to the second
    """
    portion, rest = fraction.view(np.float64)[0], far.view(np.float64)
    rest[0] = 0.0
    if kind == ONE:
        place = np.int64(np.ceil(portion * count)) - 1
        place = min(max(place, np.int64(0)), count - 1)
        return place, place
    position = portion * (count - 1)
    place = min(np.int64(position), count - 1)
    rest[0] = position - place
    return place, min(place + (rest[0] > 0), count - 1)


@kernel
def are_there(
    ready: Int64s,
    span: tuple[int, int],
    table: Int64s,
    shape: Int64s,
    cursors: Int64s,
    sums: tuple[Int64s, Int64s],
) -> bool:
    """Return True if no changed row of a key that goes is there less than not at all."""
    kw, flags = shape[0], shape[1]
    column = kw + flags
    for row in range(span[0], span[1]):
        if ready[column + 2, row] >= 0:
            continue
        total = np.int64(0)
        for run in range(table.shape[0]):
            first, last = cursors[0, run], cursors[1, run]
            for word in range(kw, column + 1):
                first = first_from(table, run, word, first, last, ready[word, row], np.int64(0))
                last = first_from(table, run, word, first, last, ready[word, row], np.int64(1))
            total += weight(table, (run, column + 2), (first, last), sums[0], sums[1][run])
        if total < 0:
            return False
    return True


@kernel
def put_answers(
    table: Int64s, cursors: Int64s, key_kw_words: tuple[int, int, int], answers: Int64s, count: int
) -> tuple[Int64s, int]:
    """Append the earlier answers of a key to the first `count` rows of `answers`.

    Return (it, or a larger copy, its number of rows).
    """
    key, kw, words = key_kw_words
    for run in range(table.shape[0]):
        for row in range(cursors[0, run], cursors[1, run]):
            if count == answers.shape[1]:
                answers = more_rows(answers, count)
            answers[0, count] = key
            for word in range(words):
                answers[1 + word, count] = read(table, run, kw + word, row)
            answers[words + 1, count] = read(table, run, kw + words + 1, row)
            count += 1
    return answers, count


@kernel
def select(
    ready: Int64s,
    table: Int64s,
    answers_table: Int64s,
    shape: Int64s,
    calls: Int64s,
    sums: Int64s,
    starts: Int64s,
) -> tuple[Int64s, Int64s, bool]:
    """Return the values of all changed keys, their earlier answers, and whether no row is there less than not
    at all; see above.

    values    int64[3 + 3c, keys]: the first row of the key in `ready`; whether it has a row; how many values;
              and for each place the value before it, that behind it, and the bits of how far it is
    answers   int64[words + 2, m]: the first row of the key in `ready`; words of the answer; difference
    Cost: for each place of a key some log(rows) searches in each run.
    """
    kw, flags, words = shape[0], shape[1], shape[2]
    column = kw + flags
    lines = with_ready(table, ready, shape[3])
    marks = np.empty(lines.shape[0], np.int64)
    for run in range(lines.shape[0]):
        marks[run] = starts[run] if run < table.shape[0] else np.int64(-1)
    cursors, held = cursors_of(lines), cursors_of(answers_table)
    parts, rest = np.empty((2, lines.shape[0]), np.int64), np.empty((2, lines.shape[0]), np.int64)
    out = np.zeros((3 + 3 * calls.shape[1], ready.shape[1]), np.int64)
    fractions, far = calls[1].copy(), np.empty(1, np.int64)
    answers, answered = np.empty((words + 2, 64), np.int64), np.int64(0)
    keys = end = np.int64(0)
    while end < ready.shape[1]:
        key = end
        end, _ = key_end(ready, key, kw, column + 1)
        locate(lines, cursors, ready, key, kw)
        locate(answers_table, held, ready, key, kw)
        answers, answered = put_answers(answers_table, held, (key, kw, words), answers, answered)
        if not are_there(ready, (key, end), lines, shape, cursors, (sums, marks)):
            return out, answers, False
        for run in range(lines.shape[0]):
            parts[0, run], parts[1, run] = cursors[0, run], cursors[1, run]
        all_rows = weight_of_all(lines, column + 2, parts, sums, marks)
        if flags != 0:
            for run in range(lines.shape[0]):
                parts[0, run] = first_from(
                    lines, run, kw, cursors[0, run], cursors[1, run], np.int64(1), np.int64(0)
                )
        count = weight_of_all(lines, column + 2, parts, sums, marks)
        out[0, keys], out[1, keys], out[2, keys] = key, np.int64(all_rows > 0), count
        for call in range(calls.shape[1]):
            if count <= 0:
                break
            low, high = places_of(calls[0, call], fractions[call : call + 1], count, far)
            for run in range(lines.shape[0]):
                rest[0, run], rest[1, run] = parts[0, run], parts[1, run]
            out[3 + 3 * call, keys], _ = value_at(lines, column, rest, low, sums, marks)
            if high == low:
                out[4 + 3 * call, keys] = out[3 + 3 * call, keys]
            else:
                for run in range(lines.shape[0]):
                    rest[0, run], rest[1, run] = parts[0, run], parts[1, run]
                out[4 + 3 * call, keys], _ = value_at(lines, column, rest, high, sums, marks)
            out[5 + 3 * call, keys] = far[0]
        keys += 1
    return first_rows(out, keys), first_rows(answers, answered), True
