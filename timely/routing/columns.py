"""A routing table as the columns that a kernel reads; `differential/kernels/visits.py` describes each of
them.

They are made once per version: there are many rows of a version, and few versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np

from progress.compiled.arrays import Int64s

from .grid import Grid

__all__ = ["columns_of"]


def columns_of(
    buckets: tuple[tuple[Grid, ...], tuple[Grid, ...]],
    exceptions: tuple[Mapping[int, Grid], Mapping[int, Grid]],
) -> tuple[Int64s, ...]:
    """Return the nine columns; equal grids share an entry."""
    keys = [sorted(side) for side in exceptions]
    listed = [*buckets[0], *buckets[1], *(exceptions[side][key] for side in (0, 1) for key in keys[side])]
    numbers: dict[Grid, int] = {}
    of_each = _column(numbers.setdefault(grid, len(numbers)) for grid in listed)
    bucket_count = len(buckets[0]) + len(buckets[1])
    ends = [*(grid.share_ends for grid in numbers), *(grid.copy_ends for grid in numbers)]
    lines = [line for grid in numbers for line in grid.kept_on]
    lines += [line for grid in numbers for line in grid.visited]
    return (
        of_each[:bucket_count],
        _column(keys[0] + keys[1]),
        _column([0, len(keys[0]), len(keys[0]) + len(keys[1])]),
        of_each[bucket_count:],
        _starts(map(len, ends)),
        _column(end for each in ends for end in each),
        _starts(map(len, lines)),
        _column(unit for line in lines for unit in line),
        _only_units(list(numbers), of_each[:bucket_count].reshape(2, -1), keys),
    )


def _only_units(grids: Sequence[Grid], of_each: Int64s, keys: Sequence[Sequence[int]]) -> Int64s:
    """Return for each side, for its shares and then for its copies, the unit that has all rows of each
    bucket, or -1 if there are several, or if a key of the bucket is an exception.

    of_each   int64[2, buckets], the index in `grids` of each bucket's grid, by side
    keys      the keys of each side that are exceptions
    """
    sides, buckets = of_each.shape
    units = np.empty((sides, 2, buckets), np.int64)
    for lines, column in (([grid.kept_on for grid in grids], 0), ([grid.visited for grid in grids], 1)):
        units[:, column] = _column(each[0][0] if len(each) == len(each[0]) == 1 else -1 for each in lines)[
            of_each
        ]
    for side, excepted in enumerate(keys):
        units[side][:, [key % buckets for key in excepted]] = -1
    return units.reshape(-1)


def _column(numbers: Iterable[int]) -> Int64s:
    return np.fromiter(numbers, np.int64)


def _starts(lengths: Iterable[int]) -> Int64s:
    """Return the begin of each of consecutive pieces of these lengths, and the end of the last."""
    return _column(accumulate(lengths, initial=0))
