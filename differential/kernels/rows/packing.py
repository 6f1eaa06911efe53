"""Rows whose varying bits fit one word, as one word each.

Dropping bits that are the same in all rows keeps the order, so packing is exact and not a hash. The varying
bits of a column are up to `SEGMENTS_MAX` stretches; all stretches are laid side by side, the diff's lowest,
then time, values, key. A column with both signs is packed as its distance from the smallest value, since
there the sign bits all vary; so is the diff.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import wrapped_subtract
from progress.compiled.kernel import Int64s, kernel

BLOCK_ROWS: Final = 1024
SEGMENTS_MAX: Final = 4
"""Stretches of varying bits per column; with more, everything up to the highest one is one segment."""


@kernel
def bit_length(value: int) -> int:
    """Return how many bits the unsigned `value` needs: 0 for 0, 64 for a negative one."""
    if value < 0:
        return 64
    bits = np.int64(0)
    while value >= 256:
        value >>= 8
        bits += 8
    while value > 0:
        value >>= 1
        bits += 1
    return bits


@kernel
def survey(words: Int64s, seen: Int64s, fresh: int) -> None:
    """Note first values, varying bits and ranges of the columns of a table, at least one row, in `seen`.

    `fresh` 1: forget what `seen` contained.
    seen   int64[4, columns]: first value, the bits in which any value differs from it, smallest, largest
    """
    for column in range(words.shape[0]):
        first = words[column, 0] if fresh == 1 else seen[0, column]
        low = first if fresh == 1 else seen[2, column]
        high = first if fresh == 1 else seen[3, column]
        varying = np.int64(0) if fresh == 1 else seen[1, column]
        for row in range(words.shape[1]):
            value = words[column, row]
            low = min(low, value)
            high = max(high, value)
            varying |= value ^ first
        seen[0, column] = first
        seen[1, column] = varying
        seen[2, column] = low
        seen[3, column] = high


@kernel
def varying_bits(seen: Int64s, column: int) -> tuple[int, int]:
    """Return (base, mask) such that every value minus base has only bits of mask, and order is kept.

    The last column, the diff, and columns with both signs get the distance from the minimum (a dense mask).
    """
    varying = seen[1, column]
    if varying < 0 or column == seen.shape[1] - 1:
        low = seen[2, column]
        bits = bit_length(wrapped_subtract(seen[3, column], low))
        return low, np.int64(-1) if bits >= 63 else (np.int64(1) << bits) - 1
    return seen[0, column] & ~varying, varying


@kernel
def plan_packing(seen: Int64s, plan: Int64s, bases: Int64s) -> tuple[int, int, int]:
    """Lay the varying bits of all columns side by side: (segments, bits of the diff, bits of all), or bits
    64.

    plan   int64[4, ≥ SEGMENTS_MAX·columns]: column, shift, mask, position of each segment, lowest first
    Ensures: for each row the word Σ ((value - base) >> shift & mask) << position sorts like the row.
    """
    columns = seen.shape[1]
    segments = np.int64(0)
    position = np.int64(0)
    diff_bits = np.int64(0)
    for column in range(columns - 1, -1, -1):
        base, mask = varying_bits(seen, column)
        bases[column] = base
        if mask < 0:
            return 0, 0, 64
        first = segments
        shift = np.int64(0)
        while mask != 0:
            if segments - first == SEGMENTS_MAX:  # too scattered: one dense segment instead
                segments = first + 1
                whole = shift + bit_length(mask)
                position = plan[3, first] + whole
                plan[1, first] = 0
                plan[2, first] = (np.int64(1) << whole) - 1
                break
            while mask & 255 == 0:
                mask >>= 8
                shift += 8
            while mask & 1 == 0:
                mask >>= 1
                shift += 1
            bits = np.int64(0)
            while mask & 1 == 1:
                mask >>= 1
                bits += 1
            plan[0, segments] = column
            plan[1, segments] = shift
            plan[2, segments] = (np.int64(1) << bits) - 1
            plan[3, segments] = position
            segments += 1
            shift += bits
            position += bits
        if column == columns - 1:
            diff_bits = position
        if position > 63:
            return 0, 0, 64
    return segments, diff_bits, position


@kernel
def pack_rows(words: Int64s, plan: Int64s, bases: Int64s, segments: int, keys: Int64s, at: int) -> None:
    """Write the packed word of each row into `keys`, from `at` on.

    Cost: one pass, by blocks that stay in cache.
    """
    rows = words.shape[1]
    for start in range(0, rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, rows)
        for row in range(start, stop):
            keys[at + row] = 0
        for segment in range(segments):
            column, shift, mask, position = (
                plan[0, segment],
                plan[1, segment],
                plan[2, segment],
                plan[3, segment],
            )
            base = bases[column]
            for row in range(start, stop):
                keys[at + row] |= ((words[column, row] - base) >> shift & mask) << position


@kernel
def unpack_rows(keys: Int64s, sums: Int64s, plan: Int64s, bases: Int64s, segments: int, out: Int64s) -> None:
    """Write rows to `out` from the first words of `keys`, which have lost the bits of the diff, and from
    `sums`.
    """
    columns, rows = out.shape
    diff_bits = np.int64(0)
    for segment in range(segments):
        if plan[0, segment] == columns - 1:
            diff_bits = plan[3, segment] + bit_length(plan[2, segment])
    for start in range(0, rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, rows)
        for row in range(start, stop):
            out[columns - 1, row] = sums[row]
        segment = np.int64(0)
        # From the last column on: so lie the segments, those of one column side by side.
        for column in range(columns - 1, -1, -1):
            base, is_first = bases[column], True
            while segment < segments and plan[0, segment] == column:
                shift, mask, position = plan[1, segment], plan[2, segment], plan[3, segment] - diff_bits
                segment += 1
                if column == columns - 1:
                    continue
                if is_first:
                    for row in range(start, stop):
                        out[column, row] = base + ((keys[row] >> position & mask) << shift)
                    is_first = False
                else:
                    for row in range(start, stop):
                        out[column, row] += (keys[row] >> position & mask) << shift
            if is_first and column < columns - 1:
                for row in range(start, stop):
                    out[column, row] = base
