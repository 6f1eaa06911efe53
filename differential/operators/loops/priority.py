"""Rows that come into a loop one after another, by their priority, instead of all at once.

A row of priority p comes in at iteration `spacing` × the number of bits of p: priority 0 at the first, 1 at
`spacing`, 2 and 3 at twice that, 4 to 7 at three times. Each class is twice as large as the one before, which
suits what most often decides: the smallest labels win, and those that come later find them there and go no
further. Between two classes are iterations enough for most loops to come to rest, and those in which nothing
happens cost nothing. If a class is not done when the next one comes, they mix: times say what comes first,
and so the result is right all the same.

Whatever comes in keeps its place in time: (t, 0) becomes (t, i). Later times of the loop see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from differential.kernels.history.times import take_turns
from differential.operators.vertices import OperatorVertex, joined_words
from timely.wire.batch import Batch

__all__ = ["CLASSES", "ITERATIONS_TO_COME_IN", "PriorityVertex", "spacing_of"]

CLASSES: Final = 64
"""Numbers of bits that a priority can have: 0 to 63."""

_SPACING_MAX: Final = 256

ITERATIONS_TO_COME_IN: Final = CLASSES * _SPACING_MAX
"""After so many iterations, at the latest, everything has come in."""


def spacing_of(bits: int) -> int:
    """Iterations from one class to the next, where counters have so many bits: all classes fit half of it."""
    return max(1, min(_SPACING_MAX, (1 << bits) // (2 * CLASSES)))


class PriorityVertex(OperatorVertex):
    """Rows that have their priority as first word, without it, at the iteration of their class."""

    def on_start(self) -> None:
        """Where the loop's counter stands, and how far it goes."""
        shift, bits = self.code.fields[-1]
        self._turns = (shift, spacing_of(bits), (1 << bits) // 2)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """At once: it keeps nothing."""
        self.send_rows(take_turns(joined_words(messages), *self._turns))
