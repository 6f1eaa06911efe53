"""The copies of rows, what aggregates have come to at each, and which answers differ from those before.

values, there   int64[n]: the word of a value, and whether it is one (not null)
number          int64[n]: the stretch of each row, ascending
state           int64[3, ·]: how many values; and the sum in two words (`overflow.py`), or 0 and the bits
                of a sum of floats, or 0 and the extreme
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import wide_add
from progress.compiled.kernel import Int64s, kernel

WHOLE_SUM: Final = 0
FLOAT_SUM: Final = 1
LEAST: Final = 2
GREATEST: Final = 3


@kernel
def run_on(values: Int64s, there: Int64s, number: Int64s, state: Int64s, kind: int) -> Int64s:
    """Return the state at each row, that row included; `state` has that before each stretch."""
    rows = values.shape[0]
    out = np.empty((3, rows), np.int64)
    floats, totals, begins = values.view(np.float64), out[2].view(np.float64), state[2].view(np.float64)
    count, high, low, total = np.int64(0), np.int64(0), np.int64(0), 0.0
    last = np.int64(-1)
    for row in range(rows):
        if number[row] != last:
            last = number[row]
            count, high, low, total = state[0, last], state[1, last], state[2, last], begins[last]
        if there[row] != 0:
            if kind == WHOLE_SUM:
                high, low = wide_add(high, low, values[row])
            elif kind == FLOAT_SUM:
                total += floats[row]
            elif count == 0 or (values[row] < low if kind == LEAST else values[row] > low):
                low = values[row]
            count += 1
        out[0, row], out[1, row] = count, high
        if kind == FLOAT_SUM:
            totals[row] = total
        else:
            out[2, row] = low
    return out


@kernel
def spread(rows: Int64s, times: Int64s, bounds: Int64s, ordered: int) -> Int64s:
    """Return the copies of rows in groups.

    times     int64[k, m]: how often each row is there, in k versions, one behind the other
    bounds    int64[≥ 2, g]: where each group begins and ends
    ordered   rows that are equal in so many words are peers
    result    int64[6, n]: for each copy its row, the number of its group (those of the second version behind
              those of the first), and where its group begins and ends, and its peers do
    """
    count = np.int64(0)
    for version in range(times.shape[0]):
        for group in range(bounds.shape[1]):
            for row in range(bounds[0, group], bounds[1, group]):
                count += max(times[version, row], 0)
    out = np.empty((6, count), np.int64)
    at = number = np.int64(0)
    for version in range(times.shape[0]):
        for group in range(bounds.shape[1]):
            begin = peers = at
            last = np.int64(-1)
            for row in range(bounds[0, group], bounds[1, group]):
                if times[version, row] <= 0:
                    continue
                if last >= 0:
                    for word in range(ordered):
                        if rows[word, row] != rows[word, last]:
                            out[4, peers:at], out[5, peers:at] = peers, at
                            peers = at
                            break
                last = row
                stop = at + times[version, row]
                out[0, at:stop] = row
                at = stop
            out[4, peers:at], out[5, peers:at] = peers, at
            out[1, begin:at], out[2, begin:at], out[3, begin:at] = number, begin, at
            number += 1
    return out


@kernel
def order_of(answers: Int64s, one: int, other: int) -> int:
    """Return -1, 0 or 1: how an answer compares with another one."""
    for word in range(answers.shape[0]):
        a, b = answers[word, one], answers[word, other]
        if a != b:
            return -1 if a < b else 1
    return 0


@kernel
def put_change(
    out: Int64s,
    count: int,
    source: tuple[Int64s, int, int],
    rows: Int64s,
    row: int,
    answer: tuple[Int64s, int, int],
) -> int:
    """Write a row with an answer as row `count`; return how many rows there are then.

    source   `ready`, the column with the key and the time, and the number of key words
    answer   the answers, the column, and the diff
    """
    (ready, key, kw), (answers, at, diff), values = source, answer, rows.shape[0] - 2
    for word in range(kw):
        out[word, count] = ready[word, key]
    for word in range(values):
        out[kw + word, count] = rows[word, row]
    for word in range(answers.shape[0]):
        out[kw + values + word, count] = answers[word, at]
    out[out.shape[0] - 2, count] = ready[ready.shape[0] - 2, key]
    out[out.shape[0] - 1, count] = diff
    return count + 1


@kernel
def answer_changes(
    ready: Int64s, kw: int, rows: Int64s, spans: Int64s, answers: Int64s
) -> tuple[Int64s, bool]:
    """Return the answers that come (1) and go (-1), and True if they are sorted and consolidated.

    ready, rows, spans   as in `around.py`
    answers              int64[·, ·]: those of each copy of each row before; and behind them, from then on
    result               int64[kw + vw + words of an answer + 2, ·]
    """
    vw = rows.shape[0] - 2
    old_rows, changes = np.int64(0), np.int64(0)
    for row in range(rows.shape[1]):
        old_rows += max(rows[vw, row], 0)
    old, new = np.int64(0), old_rows
    for row in range(rows.shape[1]):
        before, then = max(rows[vw, row], 0), max(rows[vw, row] + rows[vw + 1, row], 0)
        if before != 1 or then != 1:
            changes += before + then
        elif order_of(answers, old, new) != 0:
            changes += 2
        old += before
        new += then
    out = np.empty((kw + vw + answers.shape[0] + 2, changes), np.int64)
    old, new, count, is_sorted = np.int64(0), old_rows, np.int64(0), True
    for stretch in range(spans.shape[1]):
        source = (ready, spans[2, stretch], kw)
        for row in range(spans[0, stretch], spans[1, stretch]):
            before, then = max(rows[vw, row], 0), max(rows[vw, row] + rows[vw + 1, row], 0)
            order = order_of(answers, old, new) if before == 1 and then == 1 else np.int64(-1)
            is_sorted = is_sorted and before <= 1 and then <= 1
            if order > 0:
                count = put_change(out, count, source, rows, row, (answers, new, np.int64(1)))
            if order != 0:
                for copy in range(before):
                    count = put_change(out, count, source, rows, row, (answers, old + copy, np.int64(-1)))
            if order < 0:
                for copy in range(then):
                    count = put_change(out, count, source, rows, row, (answers, new + copy, np.int64(1)))
            old += before
            new += then
    return out, is_sorted
