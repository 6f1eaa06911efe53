"""The rows of a checked input: how often each is there, and how many of its removals were refused.

For each row let S(e) be the sum of its changes up to the epoch e. A checked input has

    refused(e) = the largest -S(k) for k ≤ e, but at least 0        there(e) = S(e) + refused(e)

A base has `refused` removals of the row at an epoch, which are refused again, and `there` insertions at the
next one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from timely.durable.bases.rows_form import BucketRange

from ...columns.column_types import Int64s
from ...kernels.rows.sort import sort_parts
from .summing import WordRows

__all__ = ["ClampedRows", "clamped_rows"]


def clamped_rows(details: Sequence[object], buckets: BucketRange) -> ClampedRows:
    """Return no rows of a checked input with these details; see `rules.py`."""
    return ClampedRows(details, buckets)


class ClampedRows(WordRows):
    """Rows that are there at least 0 times."""

    def as_of(self, words: Int64s, summed: int, first: int) -> Int64s:
        """See `WordRows`."""
        is_old = words[-2] <= summed
        if not is_old.any():
            return words
        old, later = words[:, is_old], words[:, ~is_old]
        is_first = np.ones(old.shape[1], np.bool_)  # of its row: rows are sorted, and epochs within a row
        is_first[1:] = (old[:-2, 1:] != old[:-2, :-1]).any(axis=0)
        starts = np.flatnonzero(is_first)
        ends = np.append(starts[1:], old.shape[1]) - 1
        sums = np.cumsum(old[-1])
        before = sums[starts] - old[-1, starts]
        total = sums[ends] - before
        refused = np.maximum(-(np.minimum.reduceat(sums, starts) - before), 0)
        there = total + refused
        base = old[:, starts]
        refusals, rows = base.copy(), base
        refusals[-1], rows[-1] = -refused, there
        # In the very first epoch there is one sum: a row is there, or was refused.
        refusals[-2], rows[-2] = max(summed - 1, first), summed
        parts = [refusals[:, refused > 0], rows[:, there > 0], later]
        parts = [np.ascontiguousarray(part) for part in parts if part.shape[1]]
        return sort_parts(parts) if parts else words[:, :0]
