"""Merging two sorted runs in which each row is one word and a difference.

Advancing nearly always adds the same to all times of a run: they are of one epoch, as iterations of a loop
leave them, or need no advancing. Then rows of one key and value keep their order, and the extra work of
`merge_runs.py` for them is unnecessary. If, besides, the ranges of keys, values and times take 63 bits or
fewer together, a row is *packed* into one word, whose order is that of rows: merging compares two words,
whatever the columns are, and has no branch that depends on the rows.

    packing   int64[3, keys, values and time]: the offset that is subtracted from the words of a column, the
              number of bits by which they are then shifted, and the mask of their bits before that
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.merging.merge_runs import BLOCK_ROWS
from differential.kernels.overflow import refuse, wrapped_add
from differential.kernels.rows.memory import HEADER, ROWS, load, store
from progress.compiled.kernel import CHECK_BOUNDS, Int64s, kernel, small_kernel

FROM: Final = 0
SHIFTED: Final = 1
MASK: Final = 2


@kernel
def pack_block(
    table: Int64s, run: int, start: int, rows: int, packing: Int64s, words: Int64s, diffs: Int64s
) -> None:
    """Read some rows of run 0 or 1 into its lines of `words` and `diffs`."""
    if CHECK_BOUNDS:
        if start < 0 or start + rows > table[run, ROWS]:
            raise IndexError("rows outside their run")
    columns = packing.shape[1]
    for column in range(columns):
        at, off, shift = HEADER + 3 * column, packing[FROM, column], packing[SHIFTED, column]
        address, width, base = table[run, at], table[run, at + 1], table[run, at + 2] - off
        if column == 0:
            for row in range(rows):
                words[run, row] = load(address, width, base, start + row) << shift
        else:
            for row in range(rows):
                words[run, row] |= load(address, width, base, start + row) << shift
    at = HEADER + 3 * columns
    address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
    for row in range(rows):
        diffs[run, row] = load(address, width, base, start + row)


@small_kernel
def merge_blocks(words: Int64s, diffs: Int64s, ends: Int64s, out: Int64s, out_rows: int, steps: int) -> int:
    """Take up to `steps` steps through two blocks, and append the results to the first `out_rows` rows of
    `out`.

    Return the new number of rows. Stops early at the end of either block.

    ends   int64[4]: next row and end of the first block, the same of the second
    """
    i, end_a, j, end_b = ends[0], ends[1], ends[2], ends[3]
    wrapped, step = np.int64(0), np.int64(0)
    while i < end_a and j < end_b and step < steps:
        a, b = words[0, i], words[1, j]
        takes_a, takes_b = np.int64(a <= b), np.int64(b <= a)
        one, other = diffs[0, i] & -takes_a, diffs[1, j] & -takes_b
        total = wrapped_add(one, other)
        wrapped |= (one ^ total) & (other ^ total)
        out[0, out_rows] = min(a, b)
        out[1, out_rows] = total
        out_rows += np.int64(total != 0)
        i += takes_a
        j += takes_b
        step += 1
    refuse(np.int64(wrapped < 0))
    ends[0], ends[2] = i, j
    return out_rows


@small_kernel
def copy_block(
    words: Int64s, diffs: Int64s, run: int, ends: Int64s, out: Int64s, out_rows: int, steps: int
) -> int:
    """Append up to `steps` rows of one block, where the other run has ended; return the new `out_rows`."""
    start = ends[2 * run]
    count = min(steps, ends[2 * run + 1] - start)
    for row in range(count):
        out[0, out_rows + row] = words[run, start + row]
        out[1, out_rows + row] = diffs[run, start + row]
    ends[2 * run] += count
    return out_rows + count


@kernel
def write_packed(out: Int64s, rows: int, packing: Int64s, table: Int64s, at: int) -> bool:
    """Write rows to line 2, from row `at` on; return False if a difference does not fit its column."""
    columns = packing.shape[1]
    entry = HEADER + 3 * columns
    address, width, base = table[2, entry], table[2, entry + 1], table[2, entry + 2]
    if width < 8:
        beyond = np.int64(0)
        for row in range(rows):
            beyond |= (out[1, row] - base) >> (8 * width)
        if beyond != 0:
            return False
    for row in range(rows):
        store(address, width, at + row, out[1, row] - base)
    for column in range(columns):
        entry, shift, mask = HEADER + 3 * column, packing[SHIFTED, column], packing[MASK, column]
        address, width, base = table[2, entry], table[2, entry + 1], table[2, entry + 2]
        off = packing[FROM, column] - base
        for row in range(rows):
            store(address, width, at + row, ((out[0, row] >> shift) & mask) + off)
    return True


@kernel
def merge_words(tables: Int64s, progress: Int64s, packing: Int64s, lub: int, budget: int) -> int:
    """Do `merge_runs` where packing is possible, and the lines of `tables` have the times as advanced, up to
    `lub`.

    Cost: about 8 ns a row.
    """
    block = max(64, min(BLOCK_ROWS, budget))
    words, diffs = np.empty((2, block), np.int64), np.empty((2, block), np.int64)
    out, ends = np.empty((2, 2 * block), np.int64), np.zeros(4, np.int64)
    started = progress[0] + progress[1]
    while progress[0] < tables[0, ROWS] or progress[1] < tables[1, ROWS]:
        left = budget - (progress[0] + progress[1] - started)
        if left <= 0:
            break
        for run in range(2):
            if ends[2 * run] == ends[2 * run + 1]:
                ends[2 * run] = 0
                ends[2 * run + 1] = min(block, tables[run, ROWS] - progress[run])
                pack_block(tables, run, progress[run], ends[2 * run + 1], packing, words, diffs)
        before_a, before_b = ends[0], ends[2]
        if ends[1] == ends[0] or ends[3] == ends[2]:
            run = np.int64(ends[1] == ends[0])
            out_rows = copy_block(words, diffs, run, ends, out, np.int64(0), left)
        else:
            out_rows = merge_blocks(words, diffs, ends, out, np.int64(0), (left + 1) // 2)
        if not write_packed(out, out_rows, packing, tables, progress[2]):
            progress[4] = 1
            break
        progress[0] += ends[0] - before_a
        progress[1] += ends[2] - before_b
        progress[2] += out_rows
        progress[3] = lub if progress[2] > 0 else 0
    return progress[0] + progress[1] - started
