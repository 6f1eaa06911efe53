"""Half-join: each row makes one row for every update that it meets. Who meets whom: `lookups.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from differential.columns.overflow import product_overflow
from differential.kernels.history.match_before import match_before
from differential.kernels.rows.columns import decode_words
from differential.kernels.rows.memory import HEADER
from differential.operators.join import MATCHED_ROWS_MAX
from differential.operators.patterns.lookups import Looked, Lookup, LookupMachine, Work
from progress.compiled.arrays import Int64s

__all__ = ["HalfJoinMachine"]


class HalfJoinMachine(LookupMachine):
    """Pairs of rows and the updates that they meet, at the lub of the two times.

    projection   for each word of a pair (FROM_DELTA, which word of the row), (FROM_TRACE, which word of what
                 it meets), or (CONSTANT, value). The word behind the last value is the time, in both.
    """

    def __init__(
        self, lookup: Lookup, source: Looked, projection: Sequence[tuple[int, int]], guards: int, epoch: int
    ) -> None:
        super().__init__(lookup, source, len(projection), guards, epoch)
        self._projection = np.array(projection, np.int64).reshape(-1, 2).T.copy()

    def answers(self, work: Work, table: Int64s) -> tuple[Int64s, int]:
        """A piece of the pairs."""
        words, projection, limit = self.lookup.words, self._projection, MATCHED_ROWS_MAX
        try:
            return match_before(
                work.delta, work.until, work.start, table, words, projection, self.guards, limit
            )
        except OverflowError:
            columns = (table.shape[1] - HEADER) // 3
            seen = [decode_words(table, line, columns) for line in range(len(table))]
            raise product_overflow(work.delta, np.concatenate(seen, axis=1), words, self.show) from None
