"""What a connector does to rows, in a form for kernels, if it has one."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from differential.kernels.compiled_loops.edges import AT_LEAST, AT_MOST, GREATER, LESS
from differential.kernels.compiled_loops.layout import (
    FAR,
    SUM_WORD,
)
from differential.kernels.overflow import INT64_MIN
from differential.linear.short import Short
from differential.linear.transform import LinearTransform
from progress.compiled.arrays import Int64s
from timely.operators.compiled_loop import Link

__all__ = ["Carrying", "carrying_of", "failing_of"]

_INT64_MAX: Final = -(INT64_MIN + 1)

_NO_TESTS: Final[Int64s] = np.zeros((0, 4), np.int64)


class Carrying(NamedTuple):
    """A connector in a form for kernels.

    words, tests: see `E_PROJECTION` and `E_TESTS`; words is None if rows stay unchanged. limit: see `E_LAST`.
    """

    keep: int
    add: int
    words: Int64s | None
    sign: int
    tests: Int64s
    limit: tuple[int, int, int]
    is_round: bool


def carrying_of(link: Link) -> Carrying | None:
    """Return what a connector does; None if only Python can do it."""
    if len(link.limits) > 1:
        return None
    limit = link.limits[0] if link.limits else (0, 0, FAR)
    if link.transform is None:
        return Carrying(link.keep, link.add, None, 1, _NO_TESTS, limit, link.is_round)
    if not isinstance(link.transform, LinearTransform) or link.is_round:
        return None
    short = link.transform.short
    if short is None:
        return None
    tests = short.tests
    if link.transform.failures is not None:
        within = [test for test, _ in _bounds(short)]
        tests = np.array([*tests.tolist(), *within], np.int64).reshape(-1, 4)
    return Carrying(link.keep, link.add, short.words, short.sign, tests, limit, link.is_round)


def failing_of(link: Link) -> list[Carrying]:
    """Return connectors for rows with a sum that leaves 64 bits, one for each sum that may.

    The rows stay unchanged. A row with several such sums goes by the first one's connector only. Requires
    that `carrying_of` has a form for `link`.
    """
    assert isinstance(link.transform, LinearTransform) and link.transform.short is not None
    short = link.transform.short
    carryings = []
    before: list[tuple[int, int, int, int]] = []
    for within, beyond in _bounds(short):
        tests = np.array([*short.tests.tolist(), *before, beyond], np.int64)
        carryings.append(Carrying(-1, 0, None, 1, tests, (0, 0, FAR), False))
        before.append(within)
    return carryings


def _bounds(short: Short) -> list[tuple[tuple[int, int, int, int], tuple[int, int, int, int]]]:
    """Return for each sum that may leave 64 bits two tests: that it fits, and that it does not."""
    tests = []
    for source, number in short.words.T.tolist():
        if source <= SUM_WORD and number != 0:
            word = SUM_WORD - source
            if number > 0:
                bound = _INT64_MAX - number
                tests.append(((AT_MOST, word, -1, bound), (GREATER, word, -1, bound)))
            else:
                bound = INT64_MIN - number
                tests.append(((AT_LEAST, word, -1, bound), (LESS, word, -1, bound)))
    return tests
