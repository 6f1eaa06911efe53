"""Which part of a group may have other answers, when some of its rows have changed?

A sweep reads a row and its neighbours in time. So of a large group only the *spans* of time around the
changed rows are swept again, each as if it were a group of its own:

    sessions   from a time over which no row lasts, to the next such time; all rows count that ever existed
    nearest    left rows between a changed right row and the next sure one, in the direction of the search;
               a changed left row alone. With the right rows that these may take

A right time is *sure* if the multiplicities of its rows sum to more than 0, have not changed now, and all
have times at or before the floor, the glb of the times of the changed rows: then a right row is present at
every time at which answers may change. Rows beyond the spans do not affect those within, and the other way
round, at all of these times; so the interesting times of a span are those of its own rows.

    ready      int64[kw + vw + 2, n]: changed rows, sorted, consolidated; `span`: the rows of a key among them
    sections   int64[3, runs]: where the rows of a key begin in each run, where right rows do, where they end
    spans      int64[2, room]: the first and the last time of each, ascending; they do not touch

Rows of sessions begin with time and end, and a later row ends later: all gaps are equal. Rows of nearest
begin with 0 (left) or 1 (right), then the time. The time is the first value word of an answer.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.closure import key_end
from differential.kernels.history.history import more_rows
from differential.kernels.merging.merge import first_rows
from differential.kernels.rows.memory import HEADER, LUB, read
from differential.kernels.rows.search import cursors_of, first_from, locate
from progress.compiled.kernel import Int64s, kernel
from progress.times.word_order import word_glb, word_less_equal

SESSIONS: Final = 0
NEAREST: Final = 1

FIRST: Final = -(1 << 63)
LAST: Final = (1 << 63) - 1

LARGE: Final = 1 << 40
"""Rows of such multiplicities make no time sure: their sum might not fit 64 bits."""


@kernel
def with_sections(table: Int64s, cursors: Int64s, kw: int, rule: int, sections: Int64s) -> None:
    """Write the bounds of the left and the right rows of the located key."""
    for run in range(table.shape[0]):
        first, last = cursors[0, run], cursors[1, run]
        sections[0, run], sections[1, run], sections[2, run] = first, last, last
        if rule == NEAREST and last > first:
            sections[1, run] = first_from(table, run, kw, first, last, np.int64(1), np.int64(0))


@kernel
def first_at(words: Int64s, line: int, start: int, stop: int, bound: int, past: int) -> int:
    """Return the first index in [start, stop) of an ascending line with a word ≥ `bound` (> if `past` is 1).

    Return `stop` if there is none.
    """
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        word = words[line, middle]
        if word > bound or (word == bound and past == 0):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def sure_at(
    history: tuple[Int64s, Int64s, int], at: Int64s, time: int, step: int, floor_guards: tuple[int, int]
) -> bool:
    """Move `at` over the right rows at a time; return True if it is sure, changed rows aside."""
    (table, sections, column), (floor, guards) = history, floor_guards
    columns = (table.shape[1] - HEADER) // 3
    sure, total = True, np.int64(0)
    for run in range(table.shape[0]):
        early = word_less_equal(table[run, LUB], floor, guards)
        while sections[1, run] <= at[run] < sections[2, run]:
            row = at[run]
            if read(table, run, column, row) != time:
                break
            diff = read(table, run, columns - 1, row)
            sure = sure and -LARGE < diff < LARGE
            if sure:
                total += diff
                sure = early or word_less_equal(read(table, run, columns - 2, row), floor, guards)
            at[run] += step
    return sure and total > 0


@kernel
def sure_time(
    history: tuple[Int64s, Int64s, int],
    beside: int,
    step: int,
    floor_guards: tuple[int, int],
    ready: Int64s,
    span: tuple[int, int],
) -> int:
    """Return the next sure right time after (step 1), or before (-1), the time `beside`; LAST or FIRST if
    none.

    history   table, sections, and the column of times
    span      the changed right rows of the key
    """
    table, sections, column = history
    runs = table.shape[0]
    at = np.empty(runs, np.int64)
    for run in range(runs):
        past = np.int64(1) if step > 0 else np.int64(0)
        row = first_from(table, run, column, sections[1, run], sections[2, run], beside, past)
        at[run] = row if step > 0 else row - 1
    while True:
        any_left, time = False, np.int64(0)
        for run in range(runs):
            if sections[1, run] <= at[run] < sections[2, run]:
                its = read(table, run, column, at[run])
                if not any_left or (its < time if step > 0 else its > time):
                    any_left, time = True, its
        if not any_left:
            return LAST if step > 0 else FIRST
        first = first_at(ready, column, span[0], span[1], time, np.int64(0))
        changed = first < span[1] and ready[column, first] == time
        if sure_at(history, at, time, step, floor_guards) and not changed:
            return time


@kernel
def with_span(spans: Int64s, count: int, first: int, last: int) -> tuple[Int64s, int]:
    """Append a span that begins no earlier than the last one, or lengthen that if they meet.

    Return (the spans or a larger copy, their number).
    """
    if count > 0 and first <= spans[1, count - 1]:
        spans[1, count - 1] = max(spans[1, count - 1], last)
        return spans, count
    if count == spans.shape[1]:
        spans = more_rows(spans, count)
    spans[0, count], spans[1, count] = first, last
    return spans, count + 1


@kernel
def session_spans(
    table: Int64s, sections: Int64s, kw: int, ready: Int64s, span: tuple[int, int], spans: Int64s
) -> tuple[Int64s, int]:
    """Return the spans of changed rows: (the spans or a larger copy, their number)."""
    runs = table.shape[0]
    at = np.empty(runs, np.int64)
    count = np.int64(0)
    for row in range(span[0], span[1]):
        first, last = ready[kw, row], max(ready[kw, row], ready[kw + 1, row] - 1)
        if count == 0 or first > spans[1, count - 1]:
            for run in range(runs):
                start, stop = sections[0, run], sections[2, run]
                at[run] = first_from(table, run, kw, start, stop, first, np.int64(0)) - 1
            moved = True
            while moved:
                moved = False
                for run in range(runs):
                    while at[run] >= sections[0, run] and read(table, run, kw + 1, at[run]) > first:
                        first = min(first, read(table, run, kw, at[run]))
                        at[run] -= 1
                        moved = True
            for run in range(runs):
                at[run] += 1
        spans, count = with_span(spans, count, first, last)
        last = spans[1, count - 1]
        moved = True
        while moved:
            moved = False
            for run in range(runs):
                behind = first_from(table, run, kw, at[run], sections[2, run], last, np.int64(1))
                if behind > at[run]:
                    last = max(last, read(table, run, kw + 1, behind - 1) - 1)
                    at[run] = behind
                    moved = True
        spans[1, count - 1] = last
    return spans, count


@kernel
def nearest_spans(
    history: tuple[Int64s, Int64s, int],
    ready: Int64s,
    span: tuple[int, int, int],
    forward: int,
    floor_guards: tuple[int, int],
    spans: Int64s,
) -> tuple[Int64s, int]:
    """Return the spans of changed rows, as `session_spans` does; right rows begin at `span[1]`."""
    column = history[2]
    left, right = span[0], span[1]
    rights = (span[1], span[2])
    count, reached = np.int64(0), np.int64(-1)
    first, last = np.int64(0), np.int64(0)
    while left < span[1] or right < span[2]:
        if right < span[2] and reached != right:
            time = ready[column, right]
            first = last = time
            if forward != 0:
                first = sure_time(history, time, np.int64(-1), floor_guards, ready, rights)
            else:
                last = sure_time(history, time, np.int64(1), floor_guards, ready, rights)
            reached = right
        if right == span[2] or (left < span[1] and ready[column, left] < first):
            spans, count = with_span(spans, count, ready[column, left], ready[column, left])
            left += 1
        else:
            spans, count = with_span(spans, count, first, last)
            right += 1
    return spans, count


@kernel
def put_numbered(
    table: Int64s,
    run: int,
    rows: tuple[int, int],
    keys: Int64s,
    key: int,
    kw_number: tuple[int, int],
    out: Int64s,
    out_rows: int,
) -> Int64s:
    """Copy rows of a run behind the first `out_rows` of `out`, with the number of their span behind their
    key.

    Return `out`, or a larger copy.
    """
    kw, number = kw_number
    first, size = rows[0], rows[1] - rows[0]
    if out_rows + size > out.shape[1]:
        out = more_rows(out, out_rows + size)
    for row in range(out_rows, out_rows + size):
        for column in range(kw):
            out[column, row] = keys[column, key]
        out[kw, row] = number
    for column in range(kw + 1, out.shape[0]):
        for row in range(size):
            out[column, out_rows + row] = read(table, run, column - 1, first + row)
    return out


@kernel
def put_within(
    table: Int64s,
    bounds: tuple[Int64s, Int64s, int],
    times: tuple[int, int],
    keys: Int64s,
    key: int,
    kw_number: tuple[int, int],
    out: Int64s,
    out_rows: int,
) -> tuple[Int64s, int]:
    """Do `put_numbered` for the rows of all runs between two times, both included; return (`out`, its rows).

    bounds   where rows begin and end in each run, and the column of their times
    """
    starts, stops, column = bounds
    for run in range(table.shape[0]):
        if stops[run] > starts[run] and times[0] <= times[1]:
            first = first_from(table, run, column, starts[run], stops[run], times[0], np.int64(0))
            last = first_from(table, run, column, first, stops[run], times[1], np.int64(1))
            out = put_numbered(table, run, (first, last), keys, key, kw_number, out, out_rows)
            out_rows += last - first
    return out, out_rows


@kernel
def put_ready(ready: Int64s, rows: tuple[int, int], kw: int, number: int, out: Int64s, out_rows: int) -> int:
    """Copy changed rows, with the number of their span; return the new number of rows. Requires: room."""
    for row in range(rows[0], rows[1]):
        for column in range(kw):
            out[column, out_rows] = ready[column, row]
        out[kw, out_rows] = number
        for column in range(kw, ready.shape[0]):
            out[column + 1, out_rows] = ready[column, row]
        out_rows += 1
    return out_rows


@kernel
def reach(
    history: tuple[Int64s, Int64s, int],
    times: tuple[int, int],
    forward: int,
    floor_guards: tuple[int, int],
    ready: Int64s,
    rights: tuple[int, int],
) -> tuple[int, int]:
    """Return the first and the last time of the right rows that the left rows of a span may take."""
    if forward != 0:
        return times[0], sure_time(history, times[1], np.int64(1), floor_guards, ready, rights)
    return sure_time(history, times[0], np.int64(-1), floor_guards, ready, rights), times[1]


@kernel
def rows_near(
    ready: Int64s, table: Int64s, answers_table: Int64s, shape: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Return the changed rows, the other rows of their spans, and the earlier answers of these.

    All have the number of their span as one more key word.
    table   the history of the rows, without `ready`; `answers_table` that of the answers
    shape   int64[6]: kw, vw, guards, answer words, rule, 1 if nearest looks forward
    Ensures: keys with their numbers ascend; changed rows are sorted, the others are not.
    Cost: for each changed row some searches in each run; and the rows of the spans.
    """
    kw, vw, guards, rule, forward = shape[0], shape[1], shape[2], shape[4], shape[5]
    cursors, held = cursors_of(table), cursors_of(answers_table)
    sections = np.zeros((3, table.shape[0]), np.int64)
    spans = np.empty((2, 16), np.int64)
    changed = np.empty((kw + vw + 3, ready.shape[1]), np.int64)
    rows = np.empty((kw + vw + 3, 64), np.int64)
    answers = np.empty((kw + shape[3] + 3, 64), np.int64)
    column = kw + 1 if rule == NEAREST else kw
    history = (table, sections, column)
    count = row_count = answered = number = i = np.int64(0)
    while i < ready.shape[1]:
        key = i
        i, _ = key_end(ready, key, kw, kw + vw)
        floor = ready[kw + vw, key]
        for row in range(key + 1, i):
            floor = word_glb(floor, ready[kw + vw, row], guards)
        locate(table, cursors, ready, key, kw)
        locate(answers_table, held, ready, key, kw)
        with_sections(table, cursors, kw, rule, sections)
        middle, lasting = i, (floor, guards)
        if rule == NEAREST:
            middle = first_at(ready, kw, key, i, np.int64(1), np.int64(0))
            span = (key, middle, i)
            spans, total = nearest_spans(history, ready, span, forward, lasting, spans)
        else:
            spans, total = session_spans(table, sections, kw, ready, (key, i), spans)
        left, right = key, middle
        for index in range(total):
            times, numbered = (spans[0, index], spans[1, index]), (kw, number)
            lefts = (sections[0], sections[1], column)
            rows, row_count = put_within(table, lefts, times, ready, key, numbered, rows, row_count)
            if rule == NEAREST:
                reached = reach(history, times, forward, lasting, ready, (middle, i))
                rights = (sections[1], sections[2], column)
                rows, row_count = put_within(table, rights, reached, ready, key, numbered, rows, row_count)
            before = (held[0], held[1], kw)
            answers, answered = put_within(
                answers_table, before, times, ready, key, numbered, answers, answered
            )
            behind = first_at(ready, column, left, middle, times[1], np.int64(1))
            count = put_ready(ready, (left, behind), kw, number, changed, count)
            left = behind
            behind = first_at(ready, column, right, i, times[1], np.int64(1)) if rule == NEAREST else right
            count = put_ready(ready, (right, behind), kw, number, changed, count)
            right = behind
            number += 1
    return changed, first_rows(rows, row_count), first_rows(answers, answered)
