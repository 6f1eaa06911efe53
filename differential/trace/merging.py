"""Two neighbouring runs becoming one, a bit at a time.

A merge reads two runs of a trace, which stay readable, and writes a third, which nobody reads before it is
complete. The work is done in pieces of a row budget, paid for by what is inserted, so that no insert waits
for a large merge. While a merge is under way the trace lists its two sources.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.packed.block import reserve
from differential.kernels.merging.merge_runs import merge_runs
from differential.kernels.merging.merge_words import merge_words
from differential.kernels.rows.memory import LUB, ROWS
from differential.trace.run import Run
from progress.arrays import Int64s
from progress.times.word_order import word_glb, word_lub

PACKED_BITS: Final = 63
"""So many bits of a word are of use: what is packed is compared as a number ≥ 0."""


class Merging:
    """Merges `older` and `newer` while advancing times to `since` (at least one time).

    `work(budget)` until `is_done`, then `result()`, which is None if all rows cancelled.
    """

    __slots__ = (
        "_guards",
        "_memory",
        "_packing",
        "_progress",
        "_ranges",
        "_since",
        "_tables",
        "newer",
        "older",
    )

    def __init__(self, older: Run, newer: Run | None, since: Int64s, guards: int) -> None:
        self.older = older
        self.newer = newer
        self._since = since
        self._guards = guards
        self._start(wide=False)

    def _start(self, wide: bool) -> None:
        """Reserve memory and begin at the first row; `wide`: diffs of eight bytes."""
        sources = [self.older] if self.newer is None else [self.older, self.newer]
        ranges = sources[0].ranges.copy()
        lub = int(sources[0].line[LUB])
        for source in sources[1:]:
            np.minimum(ranges[:, 0], source.ranges[:, 0], out=ranges[:, 0])
            np.maximum(ranges[:, 1], source.ranges[:, 1], out=ranges[:, 1])
            lub = int(word_lub(lub, int(source.line[LUB]), self._guards))
        # An advanced time is no earlier than it was, nor than what all of since have before them; and no
        # later than its lub with any one of them. The order of words extends the order of times.
        meet = int(self._since[0])
        for time in self._since[1:]:
            meet = int(word_glb(meet, int(time), self._guards))
        ranges[-2, 0] = max(int(ranges[-2, 0]), meet)
        ranges[-2, 1] = word_lub(lub, int(self._since[0]), self._guards)
        low, high = int(ranges[-1, 0]), int(ranges[-1, 1])
        reach = max(4 * abs(low), 4 * abs(high), 127)  # sums of diffs, mostly
        if wide or reach >= 1 << 31:
            ranges[-1] = (-(1 << 63), (1 << 63) - 1)
        else:
            ranges[-1] = (-reach, reach)
        self._ranges = ranges
        rows = sum(source.rows for source in sources)
        line, self._memory = reserve(rows, ranges)
        self._tables = np.zeros((3, line.shape[0]), np.int64)
        for index, source in enumerate(sources):
            self._tables[index] = source.line
        self._tables[2] = line
        self._progress = np.zeros(5, np.int64)
        are_settled = all(source.ranges[-2, 0] == source.ranges[-2, 1] for source in sources)
        is_one_time = self._since.shape[0] == 1 and ranges[-2, 0] == ranges[-2, 1]
        self._packing = _packing(ranges) if are_settled and is_one_time else None

    @property
    def rows(self) -> int:
        """Rows still to be read."""
        tables, progress = self._tables, self._progress
        return int(tables[0, ROWS] + tables[1, ROWS] - progress[0] - progress[1])

    @property
    def bytes(self) -> int:
        """Memory of the run in the making, at most."""
        return self._memory.nbytes

    @property
    def is_packed(self) -> bool:
        """Whether each row is one word and a difference: see `kernels/merging/merge_words.py`."""
        return self._packing is not None

    @property
    def is_done(self) -> bool:
        """Whether both sources have been read to their ends."""
        return self.rows == 0

    def work(self, budget: int) -> int:
        """Read about `budget` more rows; returns how many it was."""
        if self._packing is not None:
            time = int(self._ranges[-2, 0])
            done = merge_words(self._tables, self._progress, self._packing, time, budget)
        else:
            done = merge_runs(self._tables, self._progress, self._since, self._guards, budget)
        if self._progress[4]:
            self._start(wide=True)
        return done

    def sources(self) -> list[Int64s]:
        """The rows of both runs."""
        return [run.words() for run in (self.older, self.newer) if run is not None]

    def result(self) -> Run | None:
        """The merged run; None if it has no rows."""
        assert self.is_done
        rows, lub = int(self._progress[2]), int(self._progress[3])
        if rows == 0:
            return None
        line = self._tables[2].copy()
        line[ROWS] = rows
        line[LUB] = lub
        return Run(line, self._ranges, self._memory, self._since.tobytes())


def _packing(ranges: Int64s) -> Int64s | None:
    """How keys and values of these ranges become one word (`merging/merge_words.py`); None: they do not."""
    packing = np.zeros((3, ranges.shape[0] - 2), np.int64)
    shift = 0
    for column in range(packing.shape[1] - 1, -1, -1):
        low, high = int(ranges[column, 0]), int(ranges[column, 1])
        bits = (high - low).bit_length()
        if shift + bits > PACKED_BITS:
            return None
        packing[:, column] = low, shift, (1 << bits) - 1
        shift += bits
    return packing
