"""A chain of linear operators in a few integers, for kernels that take rows one by one.

    words    int64[2, words]: for each word of the result its source and a number: a word as it was (0),
             CONSTANT_WORD (the number itself), or SUM_WORD - w, word w plus the number
    tests    int64[tests, 4]: comparison, word, other word or -1, number to compare with; all must hold
    sign     by which differences are multiplied

Chains that do more have no such form, and are functions on whole columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.expressions.projection import CONSTANT, Projection
from differential.kernels.regions.layout import CONSTANT_WORD
from progress.arrays import Int64s

__all__ = ["Short", "short_of"]


class Short(NamedTuple):
    """See above."""

    words: Int64s
    tests: Int64s
    sign: int


def short_of(projection: Projection | None) -> Short | None:
    """The form of a chain that only moves words."""
    if projection is None:
        return None
    pairs = [
        (CONSTANT_WORD, constant) if source == CONSTANT else (source, 0)
        for source, constant in zip(projection.sources, projection.constants, strict=True)
    ]
    words = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    return Short(words, np.zeros((0, 4), np.int64), projection.sign)
