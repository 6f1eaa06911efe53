"""Matching rows with bounds: the work of a join whose condition says between which bounds a word lies.

Of two sides, one has rows with a word, by which they are sorted, and the other one *bounds*: rows (low, high)
that meet the rows whose word is from low to high.

    steps          bounds of one time add up to a function of the word that is constant in steps. Where the
                   sum is 0, rows meet nothing: if 5 to 9 is gone, and 5 to 7 has come, only 8 and 9 are left
    match_steps    steps with the history of the rows: two searches for each step
    match_bounds   rows with the history of the bounds, which are few
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.match import write_matches
from differential.kernels.loading import prepare
from differential.kernels.overflow import refuse
from differential.kernels.rows.memory import HEADER, ROWS, load
from differential.kernels.rows.search import first_from
from progress.compiled.kernel import Int64s, kernel

__all__ = [
    "LEAST",
    "MOST",
    "count_steps",
    "fill_steps",
    "match_bounds",
    "match_steps",
    "prepare_within",
    "steps_of",
    "walk_bounds",
]

LEAST: Final = -(1 << 63)
MOST: Final = (1 << 63) - 1
_ADDED_MAX: Final = 2.0**62
"""Sums of multiplicities up to here do not leave 64 bits, however floats round them."""


def steps_of(bounds: Int64s) -> Int64s:
    """Return rows (low, high, time, diff) whose sum is that of `bounds` for every word, and that do not
    overlap within a time; sorted by time and low. Requires: low ≤ high.
    """
    lows, highs, times, diffs = bounds
    if np.abs(diffs.astype(np.float64)).sum() >= _ADDED_MAX:
        return bounds  # each bound is a step of its own, which may overlap others
    ends = highs < MOST
    at = np.concatenate([lows, highs[ends] + 1])
    of = np.concatenate([times, times[ends]])
    by = np.concatenate([diffs, -diffs[ends]])
    order = np.lexsort((at, of))
    at, of, by = at[order], of[order], by[order]
    sums = np.cumsum(by)
    is_last = np.ones(len(at), np.bool_)
    is_last[:-1] = of[1:] != of[:-1]
    number: Int64s = np.cumsum(is_last) - is_last  # of the time of each row
    sums -= np.concatenate([[0], sums[is_last]])[number]  # what the times before have added up to
    until = np.full(len(at), MOST, np.int64)
    until[:-1] = np.where(is_last[:-1], MOST, at[1:] - 1)
    is_step = sums != 0
    is_step[:-1] &= is_last[:-1] | (at[:-1] != at[1:])
    return np.stack([at, until, of, sums])[:, is_step]


@kernel
def count_steps(steps: Int64s, start: int, table: Int64s, rows_max: int, spans: Int64s) -> tuple[int, int]:
    """Return (number of rows that the steps [start, stop) meet, stop); stop is as small as possible.

    spans   int64[2 · steps, runs]: gets where the rows of each step, counted from `start`, begin and end
    """
    pairs, step = np.int64(0), start
    while step < steps.shape[1] and pairs < rows_max:
        for run in range(table.shape[0]):
            rows = table[run, ROWS]
            first = first_from(table, run, 0, 0, rows, steps[0, step], 0) if rows > 0 else np.int64(0)
            after = first_from(table, run, 0, first, rows, steps[1, step], 1) if first < rows else first
            spans[2 * (step - start), run] = first
            spans[2 * (step - start) + 1, run] = after
            pairs += after - first
        step += 1
    return pairs, step


@kernel
def fill_steps(
    steps: Int64s,
    span: tuple[int, int],
    table: Int64s,
    projection: Int64s,
    guards: int,
    spans: Int64s,
    out: Int64s,
) -> None:
    """Write all rows that the steps span[0] … span[1] - 1 meet into `out`. `spans`: see `count_steps`."""
    out_rows, excesses = np.int64(0), np.int64(0)
    for step in range(span[0], span[1]):
        for run in range(table.shape[0]):
            first, after = spans[2 * (step - span[0]), run], spans[2 * (step - span[0]) + 1, run]
            if first < after:
                block = (first, after - first, out_rows)
                excesses |= write_matches(steps, step, table, run, block, projection, guards, out)
                out_rows += after - first
    refuse(excesses)


@kernel
def match_steps(
    steps: Int64s, start: int, table: Int64s, projection: Int64s, guards: int, rows_max: int
) -> tuple[Int64s, int]:
    """Return the rows of a trace that the steps [start, stop) meet, projected as by `match`: (words, stop).

    steps   int64[4, n]: low, high, time, diff
    table   of a trace whose first word is the one between bounds
    Ensures: stop is n, or as small as possible with at least `rows_max` rows. Not consolidated. Raises
    OverflowError for a product of multiplicities that leaves 64 bits.
    """
    spans = np.empty((2 * (steps.shape[1] - start), table.shape[0]), np.int64)
    pairs, stop = count_steps(steps, start, table, rows_max, spans)
    out = np.empty((projection.shape[1] + 2, pairs), np.int64)
    if pairs > 0:
        fill_steps(steps, (start, stop), table, projection, guards, spans, out)
    return out, stop


@kernel
def walk_bounds(
    delta: Int64s,
    span: tuple[int, int],
    table: Int64s,
    projection: Int64s,
    guards: int,
    rows_max: int,
    out: Int64s,
) -> tuple[int, int]:
    """Write the rows span[0] … of `delta`, once for each of the bounds that they lie between, into `out`;
    with `out` empty only count them. Return (their number, the row behind the last one): it is span[1], or
    as small as possible with `rows_max` of them.
    """
    writes = out.shape[1] > 0
    pairs, row, excesses = np.int64(0), span[0], np.int64(0)
    while row < span[1] and pairs < rows_max:
        word = delta[0, row]
        for run in range(table.shape[0]):
            low, high = HEADER, HEADER + 3
            for bound in range(table[run, ROWS]):
                if load(table[run, low], table[run, low + 1], table[run, low + 2], bound) > word:
                    break  # they are sorted by their lows
                if load(table[run, high], table[run, high + 1], table[run, high + 2], bound) >= word:
                    if writes:
                        block = (bound, np.int64(1), pairs)
                        excesses |= write_matches(delta, row, table, run, block, projection, guards, out)
                    pairs += 1
        row += 1
    refuse(excesses)
    return pairs, row


@kernel
def match_bounds(
    delta: Int64s, start: int, table: Int64s, projection: Int64s, guards: int, rows_max: int
) -> tuple[Int64s, int]:
    """Return the rows [start, stop) of `delta` for each of the bounds in a trace that they lie between,
    projected as by `match`: (words, stop).

    delta   its first word is the one between bounds
    table   of a trace of rows (low, high)
    Ensures, and raises: as `match_steps`.
    """
    nothing = np.empty((projection.shape[1] + 2, 0), np.int64)
    whole = (start, delta.shape[1])
    pairs, stop = walk_bounds(delta, whole, table, projection, guards, rows_max, nothing)
    out = np.empty((projection.shape[1] + 2, pairs), np.int64)
    if pairs > 0:
        walk_bounds(delta, (start, stop), table, projection, guards, pairs + 1, out)
    return out, stop


def prepare_within() -> None:
    """Compile both, unless they are in the cache."""
    prepare(match_steps, "tittii")
    prepare(match_bounds, "tittii")
