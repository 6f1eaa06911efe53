"""Groups whose sums do not fit their columns: which they are, and the corrections for all other groups.

A kernel that finds such a group notes it, and its result is dropped. Then the same kernel computes the sums
of all ready groups as they are kept, as components, which always fit. An answer is a function of the
components. So the corrections of components are, row for row, corrections of answers; the rows for which the
function has no value are failures, each with its time and its difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sums.accumulated import (
    COUNT,
    DECIMAL_MEAN,
    TOTAL,
    WIDE_MEAN_HIGH,
    WIDE_MEAN_LOW,
    WIDE_TOTAL_HIGH,
    WIDE_TOTAL_LOW,
    answer_and_excess,
)
from differential.kernels.sums.components import WHOLE_LIMBS
from differential.kernels.sums.reduce_sums import reduce_sums
from differential.kernels.sums.wide_totals import WIDE_DIGITS
from progress.compiled.arrays import Int64s

__all__ = ["FailedGroup", "Reduced", "SumLimits", "limits_of", "reduce_apart"]


class SumLimits(NamedTuple):
    """How large an answer may be.

    limbs    those of its total
    digits   how many it may have; 0: it may have 64 bits
    more     of a mean, how many of them are further ones behind the point
    """

    is_mean: bool
    limbs: int
    digits: int
    more: int = 0


def limits_of(what: int, limbs: int, digits: int) -> SumLimits | None:
    """Return the limits of a word of an answer (its fields: `accumulated.py`); None if it always fits."""
    if what == TOTAL:
        return SumLimits(False, WHOLE_LIMBS, len(str(limbs)) if limbs else 0)
    if what == DECIMAL_MEAN:
        return SumLimits(True, WHOLE_LIMBS, len(str(limbs)), digits)
    if what in (WIDE_TOTAL_HIGH, WIDE_TOTAL_LOW):
        return SumLimits(False, limbs, digits)
    if what in (WIDE_MEAN_HIGH, WIDE_MEAN_LOW):
        return SumLimits(True, limbs, digits // WIDE_DIGITS, digits % WIDE_DIGITS)
    return None


class FailedGroup(NamedTuple):
    """A change of a group without an answer: key words, the word of the answer that does not fit, time and
    difference.
    """

    key: tuple[int, ...]
    column: int
    time: int
    diff: int


class Reduced(NamedTuple):
    """The result for ready rows: corrections, pairs that stay pending, and groups without an answer."""

    corrections: Int64s
    pended: Int64s
    failed: list[FailedGroup]


def reduce_apart(
    ready: Int64s, pending: Int64s, table: Int64s, frontier: Int64s, shape: Int64s, formulas: Int64s
) -> Reduced:
    """Reduce as `reduce_sums` does, and return groups that do not fit separately. Raises OverflowError only
    if a multiplicity leaves 64 bits.

    Cost: about 1 µs of Python for each word of each correction.
    """
    kw, words = int(shape[0]), formulas.shape[1]
    components, needed = int(formulas[5, 0]), int(formulas[6, 0])
    columns = [(COUNT, component, -1, 0, 0, components, needed) for component in range(components)]
    of_components = np.array(columns, np.int64).T.copy()
    other = shape.copy()
    other[3] = components
    raw, pended = reduce_sums(ready, pending, table, frontier, other, of_components)
    corrections: list[Sequence[int]] = []
    failed: list[FailedGroup] = []
    for row in raw.T:
        key: tuple[int, ...] = tuple(row[:kw].tolist())
        time, diff = int(row[-2]), int(row[-1])
        totals = np.ascontiguousarray(row[kw : kw + components])
        answer: list[int] = []
        for column in range(words):
            word, excess = answer_and_excess(totals, formulas, column)
            answer.append(int(word))
            if excess:
                failed.append(FailedGroup(key, column, time, diff))
                break
        else:
            corrections.append((*key, *answer, time, diff))
    rows = np.array(corrections, np.int64).reshape(-1, kw + words + 2).T.copy()
    return Reduced(sort_consolidate(rows), np.ascontiguousarray(pended), failed)
