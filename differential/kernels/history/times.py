"""Columns of times: their minimal elements, and moving them along a path.

Orders and lubs of single words are in `progress/times/time_words.py`; which rows are complete, in `ready.py`.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.ready import minimal_times
from progress.kernel import Int64s, kernel

__all__ = ["latest_counter", "minimal_times", "shift_times"]


@kernel
def shift_times(words: Int64s, keep: int, add: int) -> Int64s:
    """The same rows at times (t & keep) + add, in a new array."""
    columns, rows = words.shape
    out = np.empty((columns, rows), np.int64)
    for column in range(columns):
        for row in range(rows):
            out[column, row] = words[column, row]
    for row in range(rows):
        out[columns - 2, row] = (words[columns - 2, row] & keep) + add
    return out


@kernel
def latest_counter(words: Int64s, shift: int, mask: int) -> int:
    """The largest value that the counter at `shift` and `mask` has among the times of the rows; 0 without
    rows.
    """
    latest = np.int64(0)
    column = words.shape[0] - 2
    for row in range(words.shape[1]):
        counter = (words[column, row] >> shift) & mask
        if counter > latest:
            latest = counter
    return latest
