"""Half-join: each row makes one row for every update that it meets; `lookups.py` says which these are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from differential.columns.overflow import product_overflow
from differential.kernels.history.match import FROM_DELTA, FROM_TRACE
from differential.kernels.history.match_before import match_before
from differential.kernels.rows.columns import decode_words
from differential.kernels.rows.memory import HEADER
from differential.operators.join import MATCHED_PIECE_ROWS
from differential.operators.patterns.lookups import Lookup, LookupMachine, LookupSource, Work
from progress.compiled.arrays import Int64s

__all__ = ["HalfJoinMachine"]


class HalfJoinMachine(LookupMachine):
    """Pairs of rows and the updates that they meet, at the lub of the two times.

    projection   for each word of a pair (FROM_DELTA, index of a word of the row), (FROM_TRACE, index of a
                 word of the update), or (CONSTANT, value). The word behind the last value is the time, in
                 both.
    """

    def __init__(
        self,
        lookup: Lookup,
        source: LookupSource,
        projection: Sequence[tuple[int, int]],
        guards: int,
        epoch: int,
    ) -> None:
        super().__init__(lookup, source, len(projection), guards, epoch)
        self._projection = np.array(projection, np.int64).reshape(-1, 2).T.copy()
        self._with_times = self._projection
        """In a compiled loop: also the time of the update, and the origin of the row, behind the words
        of a pair."""

    @property
    def gives_times(self) -> tuple[int, ...]:
        """The words of a pair that are times, too: its origins."""
        origin = self.columns - 2 if self.lookup.origin is None else self.lookup.origin
        is_origin = (self._projection[0] == FROM_DELTA) & (self._projection[1] == origin)
        return tuple(np.flatnonzero(is_origin).tolist())

    def answers(self, work: Work, table: Int64s) -> tuple[Int64s, int]:
        """Return a piece of the pairs."""
        words, projection, limit = self.lookup.words, self._projection, MATCHED_PIECE_ROWS
        span = self.wide_span
        if span is not None:
            projection = self._projection_with_times(work.delta, table)
        try:
            pairs, stop = match_before(
                work.delta, work.until, work.start, table, words, projection, self.guards, limit
            )
            return (pairs if span is None else self._in_order(pairs, span)), stop
        except OverflowError:
            columns = (table.shape[1] - HEADER) // 3
            seen = [decode_words(table, line, columns) for line in range(len(table))]
            raise product_overflow(work.delta, np.concatenate(seen, axis=1), words, self.show) from None

    def _projection_with_times(self, delta: Int64s, table: Int64s) -> Int64s:
        if self._with_times is self._projection:
            origin = delta.shape[0] - 2 if self.lookup.origin is None else self.lookup.origin
            time = (table.shape[1] - HEADER) // 3 - 2
            more = np.array([[FROM_TRACE, FROM_DELTA], [time, origin]], np.int64)
            self._with_times = np.concatenate([self._projection, more], axis=1)
        return self._with_times

    def _in_order(self, pairs: Int64s, span: tuple[int, int]) -> Int64s:
        """Return the pairs whose update is before the row in the order of a compiled loop, without the
        two times.
        """
        met, origins = pairs[-4], pairs[-3]
        counters = (1 << self.epoch) - 1
        iterations, own = met & counters, origins & counters
        is_earlier = met < origins if self.lookup.strictly else met <= origins
        is_before = (met < span[0]) | (iterations < own) | ((iterations == own) & is_earlier)
        return np.concatenate([pairs[:-4], pairs[-2:]]).compress(is_before, 1)
