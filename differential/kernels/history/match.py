"""Matching rows that came in with the history of the other side: the work of a join.

Every pair of rows with equal keys makes one row: time = lub of the two times, diff = product of the diffs. A
projection, `int64[2, words]`, defines its words: the source of each, and its column there (or the constant).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.loading import prepare
from differential.kernels.overflow import excess, refuse, wide_multiply
from differential.kernels.rows.memory import HEADER, load
from differential.kernels.rows.probing import KEYS_AT_ONCE, locate_keys, next_keys
from differential.kernels.rows.search import cursors_of
from progress.compiled.kernel import Int64s, kernel, small_kernel
from progress.times.word_order import word_lub

FROM_DELTA: Final = 0
FROM_TRACE: Final = 1
CONSTANT: Final = 2


PIECE_KEYS: Final = 1 << 14
"""Most keys of a piece: their positions in a trace are remembered from counting pairs to writing them."""


@kernel
def count_matches(
    delta: Int64s, start: int, table: Int64s, kw: int, rows_max: int, remembered: Int64s
) -> tuple[int, int]:
    """Return (number of pairs of the rows [start, stop) of `delta`, stop); stop is as small as possible.

    remembered   int64[2 · keys, runs]: gets the positions of each key; no more keys are matched than fit
    """
    rows, runs = delta.shape[1], table.shape[0]
    room = min(KEYS_AT_ONCE, rows - start)
    keys, cursors = np.empty((kw + 1, room), np.int64), cursors_of(table)
    pairs, row, seen = np.int64(0), start, np.int64(0)
    while row < rows and pairs < rows_max and seen < remembered.shape[0]:
        count = next_keys(delta, row, kw, keys, min(room, (remembered.shape[0] - seen) // 2))
        spans = remembered[seen : seen + 2 * count]
        seen += 2 * count
        locate_keys(table, cursors, keys, count, kw, spans)
        for key in range(count):
            each = np.int64(0)
            for run in range(runs):
                each += spans[2 * key + 1, run] - spans[2 * key, run]
            while row < keys[kw, key] and pairs < rows_max:
                pairs += each
                row += 1
    return pairs, row


@small_kernel
def write_matches(
    delta: Int64s,
    row: int,
    table: Int64s,
    run: int,
    span: tuple[int, int, int],
    projection: Int64s,
    guards: int,
    out: Int64s,
) -> int:
    """Write the pairs of one row of `delta` with some rows of a run; return 0 unless a product leaves 64
    bits.

    span   first of these rows, how many, row of `out`
    """
    first, count, start = span
    words = out.shape[0] - 2
    columns = delta.shape[0]
    for word in range(words):
        source, value = projection[0, word], projection[1, word]
        if source == FROM_TRACE:
            at = HEADER + 3 * value
            address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
            for pair in range(count):
                out[word, start + pair] = load(address, width, base, first + pair)
        else:
            if source == FROM_DELTA:
                value = delta[value, row]
            for pair in range(count):
                out[word, start + pair] = value
    at = table.shape[1] - 6
    address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
    time = delta[columns - 2, row]
    for pair in range(count):
        out[words, start + pair] = word_lub(load(address, width, base, first + pair), time, guards)
    address, width, base = table[run, at + 3], table[run, at + 4], table[run, at + 5]
    diff = delta[columns - 1, row]
    excesses = np.int64(0)
    for pair in range(count):
        high, low = wide_multiply(diff, load(address, width, base, first + pair))
        excesses |= excess(high, low)
        out[words + 1, start + pair] = low
    return excesses


@kernel
def fill_matches(
    delta: Int64s,
    span: tuple[int, int],
    table: Int64s,
    kw: int,
    projection: Int64s,
    guards: int,
    remembered: Int64s,
    out: Int64s,
) -> None:
    """Write all pairs of the rows span[0] … span[1] - 1 of `delta` into `out`.

    `remembered` is as `count_matches` left it.
    """
    runs = table.shape[0]
    room = min(KEYS_AT_ONCE, span[1] - span[0])
    keys = np.empty((kw + 1, room), np.int64)
    out_rows, row, seen, excesses = np.int64(0), span[0], np.int64(0), np.int64(0)
    while row < span[1]:
        count = next_keys(delta, row, kw, keys, room)
        for key in range(count):
            end = min(keys[kw, key], span[1])
            while row < end:
                for run in range(runs):
                    first, after = remembered[seen + 2 * key, run], remembered[seen + 2 * key + 1, run]
                    if first < after:
                        block = (first, after - first, out_rows)
                        excesses |= write_matches(delta, row, table, run, block, projection, guards, out)
                        out_rows += block[1]
                row += 1
        seen += 2 * count
    refuse(excesses)


@kernel
def match(
    delta: Int64s, start: int, table: Int64s, kw: int, projection: Int64s, guards: int, rows_max: int
) -> tuple[Int64s, int]:
    """Return pairs of the rows [start, stop) of `delta` with all rows of a trace: (words, stop).

    delta        int64[kw + its values + 2, n], sorted
    projection   int64[2, out words]: FROM_DELTA and column, FROM_TRACE and column, or CONSTANT and value
    Ensures: stop is n, or as small as possible with at least `rows_max` pairs, or the row behind `PIECE_KEYS`
    keys. Not consolidated. Raises OverflowError for a product of multiplicities that leaves 64 bits.
    """
    remembered = np.empty((2 * min(PIECE_KEYS, delta.shape[1] - start), table.shape[0]), np.int64)
    pairs, stop = count_matches(delta, start, table, kw, rows_max, remembered)
    out = np.empty((projection.shape[1] + 2, pairs), np.int64)
    if pairs > 0:
        fill_matches(delta, (start, stop), table, kw, projection, guards, remembered, out)
    return out, stop


def prepare_matches() -> None:
    """Compile `match`, unless it is in the cache."""
    prepare(match, "tititii")
