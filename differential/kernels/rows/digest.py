"""The digest of rows: a number that is the same whatever the order of the rows, and whoever adds them up.

    digest = Σ diff · mix(Σ word[i] · factor[i])   modulo 2⁶⁴, over all rows; the time is no part of a row

It is linear: the digest of all rows is the sum of the digests of any parts, and rows that cancel add nothing.
Digests are stored, so a row has the same share on every machine and in every version.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.rows.hashing import mix
from progress.compiled.kernel import Int64s, kernel, small_kernel

_ROWS_AT_ONCE: Final = 1024
"""So many rows stay near the processor while their columns are added."""


@small_kernel
def factor_of(column: int) -> int:
    """Return the odd number by which the word of a column is multiplied."""
    return mix((column + 1) * np.int64(0x1E3779B97F4A7C15)) | 1


@kernel
def digest_at_one_time(words: Int64s, sums: Int64s) -> bool:
    """Write the digest of all rows to `sums[0]`; return True if all are at the time of the first row.

    Requires: there is a row. Cost: one pass, about a nanosecond a row. (Indexes without sign let the compiler
    treat several rows at once: others might count from the end.)
    """
    columns, rows = words.shape
    state = np.empty(min(rows, _ROWS_AT_ONCE), np.int64)
    time = words[columns - 2, 0]
    digest, others = np.int64(0), np.int64(0)
    for start in range(0, rows, _ROWS_AT_ONCE):
        count = min(rows - start, _ROWS_AT_ONCE)
        state[:count] = 0
        for column in range(columns - 2):
            factor = factor_of(column)
            for row in range(count):
                state[row] += words[column, np.uint64(start + row)] * factor
        for row in range(count):
            digest += mix(state[row]) * words[columns - 1, np.uint64(start + row)]
            others |= words[columns - 2, np.uint64(start + row)] ^ time
    sums[0] = digest
    return others == 0


@kernel
def digest_by_time(words: Int64s, times: Int64s, sums: Int64s) -> None:
    """Add the share of each row to the number in `sums` of its time.

    Requires: `times` are ascending, and have the time of each row.
    """
    columns, rows = words.shape
    for row in range(rows):
        state = np.int64(0)
        for column in range(columns - 2):
            state += words[column, row] * factor_of(column)
        at = np.searchsorted(times, words[columns - 2, row])
        sums[at] += mix(state) * words[columns - 1, row]
