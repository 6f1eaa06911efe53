"""Groups whose sums do not fit their columns: which they are, and the corrections for all other groups.

A kernel that finds such a group notes it, and its result is dropped. Then the keys are divided until groups
that fit are by themselves; these are reduced as usual. For the others the same kernel computes the sums as
they are kept, as components, which always fit. An answer is a function of the components. So the corrections
of components are, row for row, corrections of answers; the rows for which the function has no value are
failures, each with its time and its difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sums.accumulated import COUNT, answer_and_excess
from differential.kernels.sums.reduce_sums import reduce_sums
from progress.compiled.arrays import Bools, Int64s

__all__ = ["FailedGroup", "Reduced", "reduce_apart"]

_KEYS_MIN: Final = 16
"""Up to this many keys are not divided any more."""

_Reduce = Callable[[Int64s, Int64s], tuple[Int64s, Int64s]]
"""From ready rows and pending pairs to corrections and the pairs that stay pending."""


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
    """
    kw = int(shape[0])
    corrected: list[Int64s] = []
    pended: list[Int64s] = []
    failed: list[FailedGroup] = []
    waiting = [(ready, pending)]
    while waiting:
        rows, pairs = waiting.pop()
        keys: Int64s = np.empty((0, 1), np.int64)
        if kw:
            keys = np.unique(np.concatenate([rows[:kw], pairs[:kw]], axis=1), axis=1)
        if keys.shape[1] > _KEYS_MIN:
            try:
                corrections, left = reduce_sums(rows, pairs, table, frontier, shape, formulas)
            except OverflowError:
                middle = keys[:, keys.shape[1] // 2]
                waiting += [_part(rows, pairs, middle, kw, False), _part(rows, pairs, middle, kw, True)]
                continue
        else:
            corrections, left = _by_components(rows, pairs, table, frontier, shape, formulas, failed)
        corrected.append(corrections)
        pended.append(left)
    return Reduced(
        sort_consolidate(np.concatenate(corrected, axis=1)),
        np.ascontiguousarray(np.concatenate(pended, axis=1)),
        failed,
    )


def _part(rows: Int64s, pairs: Int64s, key: Int64s, kw: int, before: bool) -> tuple[Int64s, Int64s]:
    """Return the rows and pairs with keys before `key`, or all others."""
    return tuple(  # type: ignore[return-value]  # of two
        np.ascontiguousarray(words[:, _is_before(words[:kw], key) == before]) for words in (rows, pairs)
    )


def _is_before(keys: Int64s, key: Int64s) -> Bools:
    """Return, for each column of `keys`, whether it is less than `key`, word by word."""
    less = np.zeros(keys.shape[1], np.bool_)
    same = np.ones(keys.shape[1], np.bool_)
    for word in range(keys.shape[0]):
        less |= same & (keys[word] < key[word])
        same &= keys[word] == key[word]
    return less


def _by_components(
    ready: Int64s,
    pending: Int64s,
    table: Int64s,
    frontier: Int64s,
    shape: Int64s,
    formulas: Int64s,
    failed: list[FailedGroup],
) -> tuple[Int64s, Int64s]:
    """Return corrections and pairs that stay pending, for few keys. Add groups without an answer to
    `failed`.
    """
    kw, words = int(shape[0]), formulas.shape[1]
    components, needed = int(formulas[5, 0]), int(formulas[6, 0])
    columns = [(COUNT, component, -1, 0, 0, components, needed) for component in range(components)]
    of_components = np.array(columns, np.int64).T.copy()
    other = shape.copy()
    other[3] = components
    raw, pended = reduce_sums(ready, pending, table, frontier, other, of_components)
    corrections: list[Sequence[int]] = []
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
    return np.array(corrections, np.int64).reshape(-1, kw + words + 2).T.copy(), pended
