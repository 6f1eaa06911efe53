"""Rows that come into a loop one after another, by their priority, instead of all at once.

A row of priority p comes in at iteration `spacing` × the number of bits of p: priority 0 at the first, 1 at
`spacing`, 2 and 3 at twice that, 4 to 7 at three times. Each class is twice as large as the one before.
That suits the most frequent case: the smallest labels win, and labels that come later meet them and go no
further. Between two classes there are enough iterations for most loops to come to rest, and iterations in
which nothing happens cost nothing. If a class is not done when the next one comes, they mix; times decide
the order, so the result is right all the same.

A row keeps its time outside the loop: (t, 0) becomes (t, i). Later times of the loop see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from differential.columns.column_types import Int64s
from differential.kernels.history.times import take_turns
from differential.operators.vertices import PassingVertex
from differential.thresholds import CUT_ROWS_MIN
from timely.dictionaries import Mark

__all__ = ["CLASSES", "ITERATIONS_TO_COME_IN", "PriorityVertex", "by_time", "spacing_of"]

CLASSES: Final = 64
"""Numbers of bits that a priority can have: 0 to 63."""

_SPACING_MAX: Final = 256

ITERATIONS_TO_COME_IN: Final = CLASSES * _SPACING_MAX
"""The number of iterations after which all rows have come in, at the latest."""

_TIMES_MAX: Final = 4 * CLASSES
"""Rows of more different times than this are sent as they are, since each time would be a message."""


def spacing_of(bits: int) -> int:
    """Return the iterations from one class to the next for a counter of `bits` bits: all classes fit
    half of it.
    """
    return max(1, min(_SPACING_MAX, (1 << bits) // (2 * CLASSES)))


class PriorityVertex(PassingVertex):
    """Takes rows whose first word is their priority; sends them without it, at the iteration of their
    class.
    """

    def __init__(self, words: int) -> None:
        """`words`: of a row without its priority."""
        super().__init__(words + 1, words)

    def on_start(self) -> None:
        """Learn where the loop's counter is in a time word, and how far rows may go in it."""
        shift, bits = self.code.fields[-1]
        self._turns = (shift, spacing_of(bits), (1 << bits) // 2)

    def passed(self, words: Int64s) -> Iterator[Int64s]:
        """Return rows without their priority, at the iterations of their classes."""
        return by_time(take_turns(words, *self._turns))

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it keeps nothing."""


def by_time(words: Int64s) -> Iterator[Int64s]:
    """Yield many rows in parts of one time each, in the order of times; few rows as they are.

    Most rows of a load wait long for their iteration. Rows that wait in a part of one time are not looked
    through when another time is ready.
    """
    if words.shape[1] < CUT_ROWS_MIN:
        yield words
        return
    order = np.argsort(words[-2], kind="stable")
    starts = np.flatnonzero(np.diff(words[-2, order], prepend=-1)).tolist()
    if len(starts) > _TIMES_MAX:
        yield words
        return
    for start, stop in zip(starts, [*starts[1:], words.shape[1]], strict=True):
        yield words.take(order[start:stop], 1)
