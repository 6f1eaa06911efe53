"""The pieces of a tail: inserts that not every reader of a shared trace has accepted.

A piece has the rows of the inserts `first` … `last`, sorted and consolidated, with their original times. It
holds the array of the batch that is on its way to the readers, so a tail costs little memory of its own.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.merging.merge import merge
from differential.kernels.rows.columns import column_ranges
from differential.kernels.rows.memory import HEADER, LUB, describe_words
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase


class TailPiece:
    """The rows of the inserts `first` … `last`."""

    __slots__ = ("_line", "first", "guards", "last", "words")

    def __init__(self, first: int, last: int, words: Int64s, guards: int) -> None:
        self.first = first
        self.last = last
        self.words = words
        self.guards = guards
        self._line: Int64s | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> TailPiece:
        """Return the piece itself: it never changes."""
        return self

    @property
    def rows(self) -> int:
        """Number of rows; 0 if all of them have cancelled."""
        return int(self.words.shape[1])

    @property
    def line(self) -> Int64s:
        """The description of the rows for kernels, made on demand: most pieces settle without it."""
        if self._line is None:
            columns, rows = self.words.shape
            self._line = np.zeros(HEADER + 3 * columns, np.int64)
            if rows:
                describe_words(self.words, rows, self._line.reshape(1, -1), 0)
                ranges = np.empty((columns, 2), np.int64)
                self._line[LUB] = column_ranges(self.words, ranges, self.guards)
        return self._line

    def rebased(self, by: Rebase) -> TailPiece:
        """Return the piece with words that count from a later epoch."""
        return TailPiece(self.first, self.last, by.rows(self.words), self.guards)

    def with_newer(self, newer: TailPiece) -> TailPiece:
        """Return this piece joined with the next. Raises OverflowError if a multiplicity leaves 64 bits."""
        assert newer.first == self.last + 1
        return TailPiece(self.first, newer.last, merge(self.words, newer.words), self.guards)
