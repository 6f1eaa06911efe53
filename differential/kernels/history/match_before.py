"""Matching rows with the rows that came before them: the work of a half-join.

As `match.py`, but each row of `delta` has a bound, `until`, and meets only rows of the trace whose time, as
an integer, is less. The order of the integers is one total order of all times (`time_words.py`), the same on
all workers.

The key may be longer than that of the trace: rows of a run are sorted by all their words, so a search may use
any number of the first words.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.match import write_matches
from differential.kernels.overflow import refuse
from differential.kernels.rows.memory import LUB, ROWS, load
from differential.kernels.rows.search import cursors_of, locate, same_key
from progress.compiled.kernel import Int64s, kernel

_LOOKS_PER_PAIR = 8
"""This many rows that are read and not matched count as one pair, so that a piece has an end."""


@kernel
def seen(table: Int64s, run: int, first: int, stop: int, until: int) -> int:
    """Return how many rows of [first, stop) of a run have a time before `until`.

    Cost: nothing for a run whose line shows that all of its rows are before it, or none.
    """
    if first >= stop:
        return 0
    if table[run, LUB] < until:
        return stop - first
    at = table.shape[1] - 6
    address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
    if width < 8 and base >= until:
        return 0
    count = np.int64(0)
    for row in range(first, stop):
        if load(address, width, base, row) < until:
            count += 1
    return count


@kernel
def count_before(
    delta: Int64s, until: Int64s, start: int, table: Int64s, kw: int, rows_max: int
) -> tuple[int, int]:
    """Return (number of pairs of the rows [start, stop) of `delta`, stop).

    stop is about as small as possible with `rows_max` pairs.
    """
    cursors = cursors_of(table)
    pairs = np.int64(0)
    looked = np.int64(0)
    each = np.int64(0)
    row = start
    while row < delta.shape[1] and pairs + looked // _LOOKS_PER_PAIR < rows_max:
        if row == start or not same_key(delta, row, row - 1, kw):
            each = locate(table, cursors, delta, row, kw)
        if each > 0:
            looked += each
            for run in range(table.shape[0]):
                if table[run, ROWS] > 0:
                    pairs += seen(table, run, cursors[0, run], cursors[1, run], until[row])
        row += 1
    return pairs, row


@kernel
def next_stretch(table: Int64s, run: int, first: int, stop: int, until: int) -> tuple[int, int]:
    """Return (first row, number of rows) of the first stretch in [first, stop) with times before `until`."""
    if table[run, LUB] < until:
        return first, stop - first
    at = table.shape[1] - 6
    address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
    while first < stop and load(address, width, base, first) >= until:
        first += 1
    end = first
    while end < stop and load(address, width, base, end) < until:
        end += 1
    return first, end - first


@kernel
def fill_before(
    delta: Int64s,
    until: Int64s,
    span: tuple[int, int],
    table: Int64s,
    kw: int,
    projection: Int64s,
    guards: int,
    out: Int64s,
) -> None:
    """Write all pairs of the rows span[0] … span[1] - 1 of `delta` into `out`, which has just the room."""
    cursors = cursors_of(table)
    out_rows = np.int64(0)
    excesses = np.int64(0)
    each = np.int64(0)
    for row in range(span[0], span[1]):
        if row == span[0] or not same_key(delta, row, row - 1, kw):
            each = locate(table, cursors, delta, row, kw)
        if each == 0:
            continue
        for run in range(table.shape[0]):
            if table[run, ROWS] == 0:
                continue
            first = cursors[0, run]
            while first < cursors[1, run]:
                first, count = next_stretch(table, run, first, cursors[1, run], until[row])
                if count > 0:
                    block = (first, count, out_rows)
                    excesses |= write_matches(delta, row, table, run, block, projection, guards, out)
                    out_rows += count
                first += count
    refuse(excesses)


def match_before(
    delta: Int64s,
    until: Int64s,
    start: int,
    table: Int64s,
    kw: int,
    projection: Int64s,
    guards: int,
    rows_max: int,
) -> tuple[Int64s, int]:
    """Return pairs of the rows [start, stop) of `delta` with the rows of a trace before them: (words, stop).

    delta        int64[kw + other words + 2, n], sorted
    until        int64[n]: row i meets rows of the trace whose time is less than until[i]
    kw           number of first words that are equal in a pair
    projection   int64[2, out words]: FROM_DELTA and column, FROM_TRACE and column, or CONSTANT and value
    Ensures: stop is n, or not much later than where `rows_max` pairs are made. Not consolidated. Raises
    OverflowError for a product of multiplicities that leaves 64 bits.
    """
    pairs, stop = count_before(delta, until, start, table, kw, rows_max)
    out = np.empty((projection.shape[1] + 2, pairs), np.int64)
    if pairs > 0:
        fill_before(delta, until, (start, stop), table, kw, projection, guards, out)
    return out, stop


@kernel
def note_fewest(rows: Int64s, table: Int64s, kw: int, column: int, number: int) -> None:
    """Note this trace for the rows for whose key it has fewer rows than the trace noted before.

    rows     int64[·, n], sorted but for the two noted columns, which begin at `column` ≥ kw: the fewest rows
             that a trace has, less than 0 if none was searched, and the number of that trace
    number   the number of this trace
    Cost: a search for each key. Rows of all times count, and removals as well.
    """
    cursors = cursors_of(table)
    each = np.int64(0)
    for row in range(rows.shape[1]):
        if row == 0 or not same_key(rows, row, row - 1, kw):
            each = locate(table, cursors, rows, row, kw)
        if rows[column, row] < 0 or each < rows[column, row]:
            rows[column, row] = each
            rows[column + 1, row] = number
