"""How much went round in a loop, iteration by iteration?

Counted where it is sent, under the time of the message: where several epochs are under way at once, rows may
be later than that. A dictionary look-up for each message; what is kept is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from progress.times.anchor import Rebase

from ...building.freeze import LoopLimit

__all__ = ["ROUNDS_KEPT", "RoundCounts"]

ROUNDS_KEPT: Final = 1024
"""Iterations of which the rows are known: the last ones that anything was sent to."""


class RoundCounts:
    """Rows by time word, of the last `ROUNDS_KEPT` words; none that the loop, if it stops, does not reach."""

    __slots__ = ("_limit", "_rows")

    def __init__(self, limit: LoopLimit) -> None:
        self._limit = limit
        self._rows: dict[int, int] = {}

    def add(self, word: int, rows: int) -> None:
        """So many rows go on to the iteration of `word`."""
        known, limit = self._rows, self._limit
        if word in known:
            known[word] += rows
            return
        if limit.stops and (word >> limit.shift) & limit.mask > limit.iterations_max:
            return
        if len(known) == ROUNDS_KEPT:
            del known[next(iter(known))]
        known[word] = rows

    def rebase(self, by: Rebase) -> None:
        """Words count from a later anchor; those of before it are below 0."""
        self._rows = {word - by.step: rows for word, rows in self._rows.items()}

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Words and their rows."""
        return iter(sorted(self._rows.items()))
