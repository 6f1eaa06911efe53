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

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import numpy as np

from differential.kernels.match import CONSTANT, FROM_DELTA, FROM_TRACE, match
from differential.kernels.sort import sort_consolidate
from differential.trace.trace import Trace
from progress._compile import Int64s

LEFT: Final = 0
RIGHT: Final = 1
MATCHED_ROWS_MAX: Final = 1 << 20
"""About how many rows `recv` makes before it hands them over."""

Source = tuple[Literal["key", "left", "right", "constant"], int]
"""Where a word of the output comes from: which word of the key, of a side's values, or a constant."""


class JoinMachine:
    """Joins two inputs on `kw` key words; port 0 (left) has `vw_left` value words, port 1 (right) `vw_right`.

    projection   for each word of the output where it comes from; None: key, left values, right values
    Output rows: int64[words of the projection + 2, m], neither sorted nor consolidated.
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

    def recv(self, port: int, words: Int64s) -> Iterator[Int64s]:
        """Match rows that came in on `port` with the other side, in pieces of some `MATCHED_ROWS_MAX` rows.

        Requires: the iterator is exhausted before anything else is called; only then are the rows stored.
        The pieces have at least one row each.
        """
        delta = sort_consolidate(words)
        rows = delta.shape[1]
        if rows == 0:
            return
        other = self.traces[1 - port]
        start = 0
        while other is not None and start < rows:
            out, start = match(
                delta, start, other.table, self.kw, self._projections[port], self.guards, MATCHED_ROWS_MAX
            )
            if out.shape[1] > 0:
                yield out
        own = self.traces[port]
        if own is not None:
            own.insert(delta)

    def set_frontiers(self, left: Int64s, right: Int64s) -> None:
        """What may still come in: no row of a side is at a time that is not ≥ one of its frontier. Cost:
        nothing.
        """
        for port, frontier in ((LEFT, right), (RIGHT, left)):
            trace = self.traces[port]
            if trace is not None:
                trace.set_since(frontier)
                if frontier.shape[0] == 0:
                    self.traces[port] = None

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
