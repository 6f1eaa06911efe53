"""What was inserted and not yet accepted by every reader: the pieces behind the head of a shared trace.

A piece is what came with the inserts `first` … `last`, sorted and consolidated, at the times that its rows
had when they came. It holds the array of the batch that is on its way to the readers, so that a tail costs
little memory of its own.
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
        """Itself: it never changes."""
        return self

    @property
    def rows(self) -> int:
        """How many rows; none, if all that came has cancelled."""
        return int(self.words.shape[1])

    @property
    def line(self) -> Int64s:
        """What describes the rows to kernels. Made when first asked for: most pieces settle before."""
        if self._line is None:
            columns, rows = self.words.shape
            self._line = np.zeros(HEADER + 3 * columns, np.int64)
            if rows:
                describe_words(self.words, rows, self._line.reshape(1, -1), 0)
                ranges = np.empty((columns, 2), np.int64)
                self._line[LUB] = column_ranges(self.words, ranges, self.guards)
        return self._line

    def rebased(self, by: Rebase) -> TailPiece:
        """The same for words that count from a later epoch."""
        return TailPiece(self.first, self.last, by.rows(self.words), self.guards)

    def with_newer(self, newer: TailPiece) -> TailPiece:
        """This piece and the next one as one. Raises OverflowError if a multiplicity leaves 64 bits."""
        assert newer.first == self.last + 1
        return TailPiece(self.first, newer.last, merge(self.words, newer.words), self.guards)
