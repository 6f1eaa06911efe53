"""Rows that are read with the changed ones, though they stay: touched rows; and rows whose order is unclear.

Some answers depend on rows far from a change: on the last row of the group, up to which a total counts, or on
the row that begins a bucket. Such rows are put among the changed rows with a difference of 0, so that
stretches (`around.py`) have them and what they see.

Rows that are equal up to a word that is a symbol, with several symbols there, may be in the wrong order: that
of symbols is not that of texts. Only long texts, or texts that end in zero bytes, are ever so near.

ready, table, marks, rows, spans   as in `around.py`; the first word of a state is the number of rows
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.closure import key_end
from differential.kernels.history.history import more_rows
from differential.kernels.merging.merge import first_rows
from differential.kernels.rows.memory import read
from differential.kernels.rows.search import cursors_of, locate
from differential.kernels.sweeps.around import (
    compare_row,
    compare_rows,
    compare_words,
    find_row,
    least_run,
    marks_of,
)
from progress.compiled.kernel import Int64s, kernel


@kernel
def pass_copies(
    table: Int64s, cursors: Int64s, kw_vw: tuple[int, int], at: Int64s, copies: int
) -> tuple[int, int, int]:
    """Move `at` on to the row that has copy number `copies`, from 0 on; return the run and the row where that
    is, or -1, -1 if there are fewer; and how many copies are before it.
    """
    passed, (kw, vw) = np.int64(0), kw_vw
    while True:
        run = least_run(table, cursors, kw_vw, at, np.int64(-1))
        if run < 0:
            return np.int64(-1), np.int64(-1), passed
        row, total = at[run], np.int64(0)
        for other in range(table.shape[0]):
            while (
                at[other] < cursors[1, other]
                and compare_rows(table, (other, at[other]), (run, row), kw, vw) == 0
            ):
                total += read(table, other, kw + vw + 1, at[other])
                at[other] += 1
        if total > 0 and passed + total > copies:
            return run, row, passed
        passed += max(total, np.int64(0))


@kernel
def begin_behind(
    table: Int64s, cursors: Int64s, kw_vw: tuple[int, int], marked: tuple[Int64s, int, int], at: Int64s
) -> int:
    """Set `at` behind a mark, or, if it is before `low`, to the begin of its group; return how many copies
    are before that.

    marked   the marks, the mark, and the first one of its group
    """
    marks, mark, low = marked
    for run in range(table.shape[0]):
        at[run] = cursors[0, run]
        if mark >= low:
            span = (cursors[0, run], cursors[1, run])
            at[run] = find_row(table, run, span, kw_vw, (marks, mark, kw_vw[0]), 1)
    return marks[kw_vw[0] + kw_vw[1], mark] if mark >= low else np.int64(0)


@kernel
def group_sizes(ready: Int64s, table: Int64s, marks: Int64s, kw: int, vw: int) -> Int64s:
    """Return for each key of `ready`: its first column, and the end; how many copies its group has in the
    table; and how many copies the changes are.
    """
    cursors, at, out = cursors_of(table), np.zeros(table.shape[0], np.int64), np.empty((4, 8), np.int64)
    count = end = np.int64(0)
    while end < ready.shape[1]:
        begin = end
        end, _ = key_end(ready, begin, kw, kw + vw)
        locate(table, cursors, ready, begin, kw)
        low, high = marks_of(marks, ready, begin, kw)
        size = begin_behind(table, cursors, (kw, vw), (marks, high - 1, low), at)
        _, _, passed = pass_copies(table, cursors, (kw, vw), at, np.int64(1) << 62)
        if count == out.shape[1]:
            out = more_rows(out, count)
        out[0, count], out[1, count], out[2, count], out[3, count] = begin, end, size + passed, 0
        for row in range(begin, end):
            out[3, count] += min(abs(ready[kw + vw + 1, row]), np.int64(1) << 32)
        count += 1
    return first_rows(out, count)


@kernel
def touch(table: Int64s, run: int, row: int, kw_vw: tuple[int, int], out: tuple[Int64s, int]) -> int:
    """Write a row of a run behind `count` touched ones, unless it is the last of these; return how many there
    are.
    """
    (rows, count), (kw, vw) = out, kw_vw
    if count > 0 and compare_row(table, (run, row), kw_vw, rows, count - 1, np.int64(0)) == 0:
        return count
    for word in range(vw):
        rows[word, count] = read(table, run, kw + word, row)
    return count + 1


@kernel
def last_row(table: Int64s, cursors: Int64s, kw_vw: tuple[int, int]) -> int:
    """Return the run that has the last row of a key, at its end; -1 if there is none."""
    last = np.int64(-1)
    for run in range(table.shape[0]):
        if cursors[1, run] > cursors[0, run] and (
            last < 0
            or compare_rows(
                table, (last, cursors[1, last] - 1), (run, cursors[1, run] - 1), kw_vw[0], kw_vw[1]
            )
            < 0
        ):
            last = run
    return last


@kernel
def merge_touched(
    ready: Int64s, span: tuple[int, int], kw_vw: tuple[int, int], rows: Int64s, out: Int64s, count: int
) -> int:
    """Write the changed rows of a key, and touched `rows` among them, from column `count` on; return the next
    column. Rows of `out` have the words of `ready`.
    """
    (change, end), (kw, vw), row = span, kw_vw, np.int64(0)
    while change < end or row < rows.shape[1]:
        order = np.int64(1) if change == end else np.int64(-1)
        if change < end and row < rows.shape[1]:
            order = -compare_words(rows, row, np.int64(0), ready, change, kw, vw)
        if order <= 0:
            for word in range(ready.shape[0]):
                out[word, count] = ready[word, change]
            change += 1
        else:
            for word in range(ready.shape[0]):
                out[word, count] = ready[word, end - 1]
            for word in range(vw):
                out[kw + word, count] = rows[word, row]
            out[kw + vw + 1, count] = 0
        row += order >= 0
        count += 1
    return count


@kernel
def touched_rows(ready: Int64s, table: Int64s, marks: Int64s, places: Int64s, kw: int, vw: int) -> Int64s:
    """Return `ready` with the last row of each group, and with the rows at some places.

    places   int64[2, ·]: the first column of a key, and the number of a copy in its group, from 0 on;
             ascending
    """
    cursors, at = cursors_of(table), np.zeros(table.shape[0], np.int64)
    out = np.empty((ready.shape[0], 2 * ready.shape[1] + places.shape[1]), np.int64)
    rows = np.empty((vw, places.shape[1] + 1), np.int64)
    count = end = place = np.int64(0)
    while end < ready.shape[1]:
        begin = end
        end, _ = key_end(ready, begin, kw, kw + vw)
        locate(table, cursors, ready, begin, kw)
        low, high = marks_of(marks, ready, begin, kw)
        touched = np.int64(0)
        while place < places.shape[1] and places[0, place] == begin:
            first, behind = low, high  # marks up to and with the copy
            while first < behind:
                middle = (first + behind) >> 1
                if marks[kw + vw, middle] <= places[1, place]:
                    first = middle + 1
                else:
                    behind = middle
            before = begin_behind(table, cursors, (kw, vw), (marks, first - 1, low), at)
            run, row, _ = pass_copies(table, cursors, (kw, vw), at, places[1, place] - before)
            if run >= 0:
                touched = touch(table, run, row, (kw, vw), (rows, touched))
            place += 1
        run = last_row(table, cursors, (kw, vw))
        if run >= 0:
            touched = touch(table, run, cursors[1, run] - 1, (kw, vw), (rows, touched))
        count = merge_touched(ready, (begin, end), (kw, vw), first_rows(rows, touched), out, count)
    return first_rows(out, count)


@kernel
def has_other_symbol(
    table: Int64s, cursors: Int64s, kw: int, rows: Int64s, row: int, symbols: Int64s
) -> bool:
    """Return True if the table has a row with other symbols, but the same words before it."""
    for level in range(symbols.shape[0]):
        word = symbols[level]
        for run in range(table.shape[0]):
            span, of = (cursors[0, run], cursors[1, run]), (rows, row, np.int64(0))
            low = find_row(table, run, span, (kw, word), of, 0)
            high = find_row(table, run, span, (kw, word), of, 1)
            if low < high and (
                read(table, run, kw + word, low) != rows[word, row]
                or read(table, run, kw + word, high - 1) != rows[word, row]
            ):
                return True
    return False


@kernel
def unclear_spans(
    ready: Int64s, table: Int64s, rows: Int64s, spans: Int64s, kw: int, symbols: Int64s
) -> Int64s:
    """Return for each stretch 1 if it has rows in the wrong order, perhaps with rows beyond its ends; else 0.

    symbols   the words that are symbols of the order, ascending
    """
    cursors, key = cursors_of(table), np.int64(-1)
    out = np.zeros(spans.shape[1], np.int64)
    for stretch in range(spans.shape[1]):
        if spans[2, stretch] != key:
            key = spans[2, stretch]
            locate(table, cursors, ready, key, kw)
        begin, end = spans[0, stretch], spans[1, stretch]
        for level in range(symbols.shape[0]):
            word = symbols[level]
            for row in range(begin + 1, end):
                if (
                    rows[word, row] != rows[word, row - 1]
                    and compare_words(rows, row - 1, np.int64(0), rows, row, np.int64(0), word) == 0
                ):
                    out[stretch] = 1
                    break
        if begin < end and (
            has_other_symbol(table, cursors, kw, rows, begin, symbols)
            or has_other_symbol(table, cursors, kw, rows, end - 1, symbols)
        ):
            out[stretch] = 1
    return out
