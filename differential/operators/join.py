"""Join: every pair of rows of two collections with equal keys, kept current.

    output = { (words of the pair, lub of the two times, product of the two diffs) }

Each pair is made exactly once, by whichever row came later: rows that come in are matched with all that the
other side has had, then stored. So a join never waits for a frontier. What it needs frontiers for is
forgetting: no row will come in on the right at a time that is not ≥ one of the right frontier, hence the
*left* history may be compacted to the right frontier, and dropped when the right input is complete for ever;
and the same the other way round.

This is the logic alone: words and frontiers in, words out. `match.py` in `differential/kernels` does the
work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from differential.columns.overflow import ShowRow, product_overflow, row_overflow, show_words
from differential.kernels.history.match import CONSTANT, FROM_DELTA, FROM_TRACE, match
from differential.kernels.history.ready import lower_bounds, minimal_times
from differential.kernels.rows.sort import sort_consolidate
from differential.trace.trace import Trace
from progress.kernel import Int64s

LEFT: Final = 0
RIGHT: Final = 1
MATCHED_ROWS_MAX: Final = 1 << 20
"""About how many rows there are in a piece."""

_NO_TIMES: Final = np.empty(0, np.int64)

Source = tuple[Literal["key", "left", "right", "constant"], int]
"""Where a word of the output comes from: which word of the key, of a side's values, or a constant."""


class _Batch:
    """Rows that came in on one side; `delta` once they are sorted; those before `start` are matched."""

    __slots__ = ("_times", "delta", "port", "start", "words")

    def __init__(self, port: int, words: Int64s, delta: Int64s | None, start: int) -> None:
        self.port = port
        self.words = words
        self.delta = delta
        self.start = start
        self._times: tuple[int, Int64s] | None = None

    def times(self, guards: int) -> Int64s:
        """The minimal times of the rows not matched yet, as int64[1, ·]."""
        if self._times is None or self._times[0] != self.start:
            column = (self.words if self.delta is None else self.delta)[-2, self.start :]
            self._times = (self.start, minimal_times(column, guards).reshape(1, -1))
        return self._times[1]


class JoinMachine:
    """Joins two inputs on `kw` key words; port 0 (left) has `vw_left` value words, port 1 (right) `vw_right`.

    projection   for each word of the output where it comes from; None: key, left values, right values
    Output rows: int64[words of the projection + 2, m], neither sorted nor consolidated.

    What `recv` leaves is matched with `work`, piece by piece, so that a large output does not
    have to be in memory, nor be waited for, as a whole.
    """

    def __init__(
        self, kw: int, vw_left: int, vw_right: int, guards: int, projection: Sequence[Source] | None = None
    ) -> None:
        if projection is None:
            everything: list[Source] = [("key", word) for word in range(kw)]
            everything += [("left", word) for word in range(vw_left)]
            everything += [("right", word) for word in range(vw_right)]
            projection = everything
        self.kw = kw
        self.guards = guards
        self.words = len(projection)
        self.traces: list[Trace | None] = [Trace(kw, vw_left, guards), Trace(kw, vw_right, guards)]
        self._projections = [_projection_array(projection, kw, port) for port in (LEFT, RIGHT)]
        self._unfinished: deque[_Batch] = deque()
        self._nothing: Int64s = np.empty((self.words + 2, 0), np.int64)
        self._shows: tuple[ShowRow, ShowRow] = (show_words, show_words)

    def recv(self, port: int, words: Int64s) -> Int64s:
        """Rows came in on `port`: the first piece of their pairs, perhaps none.

        If rows wait already, these do, too. The array may be kept.
        """
        if self._unfinished:
            self._unfinished.append(_Batch(port, words, None, 0))
            return self._nothing
        delta = self._sorted(port, words)
        pairs, start = self._match(port, delta, 0)
        if start < delta.shape[1]:
            self._unfinished.append(_Batch(port, words, delta, start))
        return pairs

    @property
    def is_done(self) -> bool:
        """Whether no rows wait, in whole or in part."""
        return not self._unfinished

    def work(self) -> Int64s:
        """Make one more piece: pairs of rows that wait, first come first; perhaps there are none.

        Requires: not `is_done`.
        """
        batch = self._unfinished[0]
        if batch.delta is None:
            batch.delta = self._sorted(batch.port, batch.words)
        pairs, batch.start = self._match(batch.port, batch.delta, batch.start)
        if batch.start == batch.delta.shape[1]:
            self._unfinished.popleft()
        return pairs

    def _match(self, port: int, delta: Int64s, start: int) -> tuple[Int64s, int]:
        """A piece, and the row where the next begins; it has less than MATCHED_ROWS_MAX rows but for those of
        the last row matched.

        Rows are stored when all are matched: until then, what is read stays as it was at the first piece.
        """
        rows = delta.shape[1]
        pairs = self._nothing
        other = self.traces[1 - port]
        if other is None:
            start = rows
        elif rows:
            projection = self._projections[port]
            try:
                pairs, start = match(
                    delta, start, other.table, self.kw, projection, self.guards, MATCHED_ROWS_MAX
                )
            except OverflowError:
                raise product_overflow(delta, other.words(), self.kw, self._shows[port]) from None
        if start == rows:
            own = self.traces[port]
            if own is not None:
                own.insert(delta)
        return pairs, start

    def capabilities(self) -> Int64s:
        """The minimal times at which something may still be sent before more comes in, ascending."""
        bounds = _NO_TIMES
        for port in (LEFT, RIGHT):
            bounds = self._bounds(port, bounds)
        return bounds

    def set_frontiers(self, left: Int64s, right: Int64s) -> None:
        """What may still come in: no row of a side is at a time that is not ≥ one of its frontier. Cost:
        nothing, unless rows wait: these still want to meet all of the other side's history.
        """
        for port, frontier in ((LEFT, right), (RIGHT, left)):
            trace = self.traces[port]
            if trace is not None:
                since = self._bounds(1 - port, frontier) if self._unfinished else frontier
                trace.set_since(since)
                if since.shape[0] == 0:
                    self.traces[port] = None

    def show_rows(self, left: ShowRow, right: ShowRow) -> None:
        """How messages show rows of either side."""
        self._shows = (left, right)
        for trace, show in zip(self.traces, self._shows, strict=True):
            if trace is not None:
                trace.show = show

    def _sorted(self, port: int, words: Int64s) -> Int64s:
        try:
            return sort_consolidate(words)
        except OverflowError:
            raise row_overflow([words], self._shows[port]) from None

    def _bounds(self, port: int, bounds: Int64s) -> Int64s:
        """The minimal antichain of `bounds` and the times of the rows of a side that wait."""
        for batch in self._unfinished:
            if batch.port == port:
                bounds = lower_bounds(batch.times(self.guards), 0, bounds, self.guards)
        return bounds

    def effort(self, rows: int) -> bool:
        """Spend some rows of merging while idle; returns whether there is more to do."""
        more = [trace.effort(rows) for trace in self.traces if trace is not None]
        return any(more)

    def check_invariants(self) -> None:
        """Assert those of both traces."""
        for trace in self.traces:
            if trace is not None:
                trace.check_invariants()


def _projection_array(projection: Sequence[Source], kw: int, port: int) -> Int64s:
    """The projection as the kernel wants it, for rows that came in on `port`."""
    mine = "left" if port == LEFT else "right"
    pairs = []
    for source, word in projection:
        if source == "constant":
            pairs.append((CONSTANT, word))
        elif source == "key":
            assert 0 <= word < kw
            pairs.append((FROM_DELTA, word))
        else:
            pairs.append((FROM_DELTA if source == mine else FROM_TRACE, kw + word))
    return np.array(pairs, np.int64).reshape(-1, 2).T.copy()
