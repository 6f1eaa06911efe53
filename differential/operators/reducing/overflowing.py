"""Groups whose sums do not fit their columns: which are they, and what is said of the others?

A kernel that finds such a group notes it, and its result is dropped. Then its keys are divided until the
groups that fit are by themselves; they are reduced as ever. Of the others the same kernel is asked for the
sums as they are kept, as components that always fit. What it says of these is what has to be said of the
answers, row for row, for an answer is a function of the components: the rows for which the function has no
value are failures, each with its time and its difference.
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
"""So few keys are not divided any more."""

_Reduce = Callable[[Int64s, Int64s], tuple[Int64s, Int64s]]
"""From ready rows and pending pairs to corrections and what stays pending."""


class FailedGroup(NamedTuple):
    """A change of a group without an answer: key words, which word of the answer does not fit, time and
    difference.
    """

    key: tuple[int, ...]
    column: int
    time: int
    diff: int


class Reduced(NamedTuple):
    """What is said of ready rows: corrections, what stays pending, and the groups without an answer."""

    corrections: Int64s
    pended: Int64s
    failed: list[FailedGroup]


def reduce_apart(
    ready: Int64s, pending: Int64s, table: Int64s, frontier: Int64s, shape: Int64s, asked: Int64s
) -> Reduced:
    """As `reduce_sums`, with groups that do not fit apart. Raises OverflowError only if a multiplicity leaves
    64 bits.
    """
    kw = int(shape[0])
    said: list[Int64s] = []
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
                corrections, left = reduce_sums(rows, pairs, table, frontier, shape, asked)
            except OverflowError:
                middle = keys[:, keys.shape[1] // 2]
                waiting += [_part(rows, pairs, middle, kw, False), _part(rows, pairs, middle, kw, True)]
                continue
        else:
            corrections, left = _by_components(rows, pairs, table, frontier, shape, asked, failed)
        said.append(corrections)
        pended.append(left)
    return Reduced(
        sort_consolidate(np.concatenate(said, axis=1)),
        np.ascontiguousarray(np.concatenate(pended, axis=1)),
        failed,
    )


def _part(rows: Int64s, pairs: Int64s, key: Int64s, kw: int, before: bool) -> tuple[Int64s, Int64s]:
    """Rows and pairs with keys before `key`, or with all others."""
    return tuple(  # type: ignore[return-value]  # of two
        np.ascontiguousarray(words[:, _is_before(words[:kw], key) == before]) for words in (rows, pairs)
    )


def _is_before(keys: Int64s, key: Int64s) -> Bools:
    """Which columns of `keys` are less than `key`, word by word."""
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
    asked: Int64s,
    failed: list[FailedGroup],
) -> tuple[Int64s, Int64s]:
    """Corrections and what stays pending of few keys; groups without an answer are added to `failed`."""
    kw, words = int(shape[0]), asked.shape[1]
    components, needed = int(asked[5, 0]), int(asked[6, 0])
    columns = [(COUNT, component, -1, 0, 0, components, needed) for component in range(components)]
    of_components = np.array(columns, np.int64).T.copy()
    other = shape.copy()
    other[3] = components
    raw, pended = reduce_sums(ready, pending, table, frontier, other, of_components)
    made: list[Sequence[int]] = []
    for row in raw.T:
        key: tuple[int, ...] = tuple(row[:kw].tolist())
        time, diff = int(row[-2]), int(row[-1])
        totals = np.ascontiguousarray(row[kw : kw + components])
        answer: list[int] = []
        for column in range(words):
            word, excess = answer_and_excess(totals, asked, column)
            answer.append(int(word))
            if excess:
                failed.append(FailedGroup(key, column, time, diff))
                break
        else:
            made.append((*key, *answer, time, diff))
    return np.array(made, np.int64).reshape(-1, kw + words + 2).T.copy(), pended
