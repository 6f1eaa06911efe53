"""Answers of ordered windows about decimals: sums, means and extremes over frames, exact for any digits."""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.column_types import Bools, ColumnType, Int64s
from differential.columns.wide.wide_words import Objects, integers_of, widened
from differential.expressions.arithmetic.wide_integers import as_words, divided
from differential.expressions.arithmetic.wide_numbers import Numbers, computed, rescaled
from differential.kernels.sweeps.frames import frame_extremes

__all__ = ["decimal_means", "decimal_sums", "wide_extremes"]

_SAFE_SUM: Final = float(1 << 62)


def decimal_sums(
    numbers: Numbers, there: Int64s, frames: Int64s, to: ColumnType
) -> tuple[Int64s, Bools | None]:
    """Return the sums of the numbers that are `there` over each frame, and which do not fit."""
    totals = _small_totals(numbers, there, frames)
    if totals is None:
        return as_words(_totals(numbers, there, frames), to)
    return rescaled(totals, to)


def decimal_means(
    numbers: Numbers, there: Int64s, frames: Int64s, counts: Int64s, to: ColumnType
) -> tuple[Int64s, Bools | None]:
    """Return their means; `counts` says how many there are."""
    counts, totals = np.maximum(counts, 1), _small_totals(numbers, there, frames)
    if totals is None:
        exact = _totals(numbers, there, frames) * 10 ** (to.scale - numbers.scale)
        return as_words(divided(exact, counts.astype(object)), to)
    return computed("/", totals, Numbers(counts, 0, False), to)


def wide_extremes(words: Int64s, there: Int64s, frames: Int64s, sign: int) -> Int64s:
    """Return the least (`sign` 1) or greatest (-1) of numbers of two words: a flag, and the words."""
    different, ranks = np.unique(words, axis=1, return_inverse=True)
    flag, rank = frame_extremes(ranks.reshape(-1).astype(np.int64), there, frames, sign)
    values = different.take(rank, 1) if different.shape[1] else np.zeros((2, rank.shape[0]), np.int64)
    return np.array([flag, *(values * flag)], np.int64)


def _small_totals(numbers: Numbers, there: Int64s, frames: Int64s) -> Numbers | None:
    """Return the sums if they, and all before them, fit one word."""
    small = numbers.in_one_word()
    if small is None:
        return None
    words = np.atleast_1d(small) * there
    if float(np.abs(words.astype(np.float64)).sum()) >= _SAFE_SUM:
        return None
    upto = np.zeros(words.shape[0] + 1, np.int64)
    np.cumsum(words, out=upto[1:])
    return Numbers(upto[frames[1]] - upto[frames[0]], numbers.scale, False)


def _totals(numbers: Numbers, there: Int64s, frames: Int64s) -> Objects:
    """Return the sums, which may have any number of digits."""
    words = numbers.words if numbers.is_wide else widened(numbers.words)
    upto: Objects = np.zeros(words.shape[1] + 1, object)
    upto[1:] = np.cumsum(integers_of(words) * there)
    return np.asarray(upto[frames[1]] - upto[frames[0]], dtype=object)
