"""Numbers of rows that went round in a loop, iteration by iteration.

The sender counts them, under the time of the message: if several epochs are under way at once, rows may be
later than that. Cost: a dictionary look-up for each message, and bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from progress.times.anchor import Rebase

from ...building.freeze import LoopLimit

__all__ = ["ITERATIONS_KEPT", "IterationCounts"]

ITERATIONS_KEPT: Final = 1024
"""The number of iterations whose rows are kept: the last ones to which any rows went."""


class IterationCounts:
    """Rows by time word, for the last `ITERATIONS_KEPT` words; no words that the loop, if it stops, does not
    reach.
    """

    __slots__ = ("_limit", "_rows")

    def __init__(self, limit: LoopLimit) -> None:
        self._limit = limit
        self._rows: dict[int, int] = {}

    def add(self, word: int, rows: int) -> None:
        """Count rows that go on to the iteration of `word`."""
        counts, limit = self._rows, self._limit
        if word in counts:
            counts[word] += rows
            return
        if limit.stops and (word >> limit.shift) & limit.mask > limit.iterations_max:
            return
        if len(counts) == ITERATIONS_KEPT:
            del counts[next(iter(counts))]
        counts[word] = rows

    def rebase(self, by: Rebase) -> None:
        """Count words from a later anchor; earlier ones are below 0."""
        self._rows = {word - by.step: rows for word, rows in self._rows.items()}

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield words and their rows, words ascending."""
        return iter(sorted(self._rows.items()))
