"""Merging two neighbouring runs into one, a bit at a time.

A merge reads two runs of a trace, which stay readable, and writes a third, which nobody reads before it is
complete. The work is done in pieces of a row budget, which inserts pay for, so that no insert waits for a
large merge. While a merge is under way the trace lists its two sources.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import numpy as np

from differential.columns.packed.block import reserve
from differential.kernels.merging.merge_runs import merge_runs
from differential.kernels.merging.merge_words import merge_words
from differential.kernels.rows.memory import LUB, ROWS
from differential.trace.run import Run
from differential.trace.tightening import Tightening
from progress.compiled.arrays import Int64s
from progress.times.word_order import word_glb, word_lub

PACKED_BITS: Final = 63
"""Usable bits of a word: packed rows are compared as numbers ≥ 0."""

_TIME_BASE: Final = -4
"""Index in a line: the base of the time column, which is the column before the last."""


class Merging:
    """Merges `older` and `newer` while advancing times to `since` (at least one time).

    Call `work(budget)` until `is_done`, then `result()`, which is None if all rows cancelled.
    """

    __slots__ = (
        "_compacted",
        "_guards",
        "_lub",
        "_memory",
        "_packing",
        "_progress",
        "_ranges",
        "_since",
        "_tables",
        "_tightening",
        "newer",
        "older",
    )

    def __init__(self, older: Run, newer: Run | None, since: Int64s, guards: int) -> None:
        self.older = older
        self.newer = newer
        self._compacted = since.tobytes()
        # Advancing takes the larger field, chain by chain, and for several bounds the least of the results:
        # the same as one bound with the least field of each chain.
        self._since = functools.reduce(lambda one, other: int(word_glb(one, other, guards)), since.tolist())
        self._guards = guards
        self._start(wide=False)

    def _start(self, wide: bool) -> None:
        """Reserve memory and begin at the first row; `wide`: diffs of eight bytes."""
        # With numbers of Python: most merges are of some thousand rows, and each step in numpy takes 1 µs.
        since, guards, newer = self._since, self._guards, self.newer
        bounds: list[list[int]] = self.older.ranges.tolist()
        lub, rows = int(self.older.line[LUB]), self.older.rows
        moves = [moved_by(bounds[-2][0], bounds[-2][1], since, guards)]
        moved = [_moved(bounds[-2], moves[0])]
        if newer is not None:
            others: list[list[int]] = newer.ranges.tolist()
            moves.append(moved_by(others[-2][0], others[-2][1], since, guards))
            moved.append(_moved(others[-2], moves[1]))
            bounds = [[min(a, c), max(b, d)] for (a, b), (c, d) in zip(bounds, others, strict=True)]
            lub, rows = int(word_lub(lub, int(newer.line[LUB]), guards)), rows + newer.rows
        self._lub = int(word_lub(lub, since, guards))
        steps = [by for by in moves if by is not None]
        is_moved = len(steps) == len(moves)
        if is_moved:
            bounds[-2] = [min(low for low, _ in moved), max(high for _, high in moved)]
        else:
            # An advanced time is no earlier than the original, nor than since, and no later than their lub.
            # The order of words extends the order of times.
            bounds[-2] = [max(bounds[-2][0], since), self._lub]
        low, high = bounds[-1]
        reach = max(4 * abs(low), 4 * abs(high), 127)  # sums of diffs: a guess that is nearly always enough
        bounds[-1] = [-(1 << 63), (1 << 63) - 1] if wide or reach >= 1 << 31 else [-reach, reach]
        self._ranges = np.array(bounds, np.int64)
        line, self._memory = reserve(rows, self._ranges)
        self._tables = np.zeros((3, line.shape[0]), np.int64)
        self._tables[0], self._tables[2] = self.older.line, line
        if newer is not None:
            self._tables[1] = newer.line
        self._progress = np.zeros(5, np.int64)
        self._packing = _packing(bounds) if is_moved else None
        if self._packing is not None:  # by these lines `merge_words` reads times that are advanced already
            self._tables[: len(moves), _TIME_BASE] += steps
        self._tightening: Tightening | None = None

    @property
    def rows(self) -> int:
        """Number of rows still to be read."""
        tables, progress = self._tables, self._progress
        return int(tables[0, ROWS] + tables[1, ROWS] - progress[0] - progress[1])

    @property
    def memory(self) -> Int64s:
        """Memory of the run in the making."""
        return self._memory if self._tightening is None else self._tightening.memory

    @property
    def bytes(self) -> int:
        """Bytes of that memory, at most."""
        return self.memory.nbytes

    @property
    def is_packed(self) -> bool:
        """True if each row is one word and a difference: see `kernels/merging/merge_words.py`."""
        return self._packing is not None

    @property
    def is_done(self) -> bool:
        """True if both sources have been read to their ends, and the result is as narrow as it can be."""
        if self.rows:
            return False
        return self._progress[2] == 0 if self._tightening is None else self._tightening.is_done

    def work(self, budget: int) -> int:
        """Read about `budget` more rows, or do as much other work; return the work done, in rows."""
        if self._tightening is not None:
            return self._tightening.work(budget)
        if self._packing is not None:
            done = merge_words(self._tables, self._progress, self._packing, self._lub, budget)
        else:
            done = merge_runs(self._tables, self._progress, np.array([self._since]), self._guards, budget)
        if self._progress[4]:
            self._start(wide=True)
        elif self.rows == 0 and self._progress[2]:
            self._begin_tightening()
            if done < budget:
                done += self.work(budget - done)
        return done

    def _begin_tightening(self) -> None:
        line = self._tables[2].copy()
        line[LUB] = self._progress[3]
        self._tightening = Tightening(line, self._ranges, self._memory, int(self._progress[2]))
        del self._memory  # so that its memory is freed when it has been copied

    def sources(self) -> list[Int64s]:
        """Return the rows of both runs."""
        return [run.words() for run in (self.older, self.newer) if run is not None]

    def result(self) -> Run | None:
        """Return the merged run; None if it has no rows."""
        assert self.is_done
        if (tightening := self._tightening) is None:
            return None
        return Run(tightening.line, tightening.ranges, tightening.memory, self._compacted)


def moved_by(first: int, last: int, since: int, guards: int) -> int | None:
    """Return the amount by which advancing to `since` changes the word of every time from `first` to `last`.

    None if it may not be the same for all. The range is in the order of words. Times of one epoch, as
    iterations of a loop leave them, have their first chains in common, up to the first one in which they
    differ; in that chain all are at least as in `first`, and in the later chains at least 0. If since is no
    later than that, except in the common chains, advancing changes only these.
    """
    floor, own = first, 0
    if first != last:
        top = 1 << ((first ^ last).bit_length() - 1)
        behind = (guards & (top - 1)).bit_length()  # bits of the chains behind the first one that differs
        floor = first >> behind << behind
        own = (guards >> behind << behind) & -(guards >> behind << behind)
        own -= 1  # bits of that chain and of those behind it
    # Fast path: times before since become since.
    is_before = ((since | guards) - floor) & guards == guards
    advanced = since if is_before else int(word_lub(floor, since, guards))
    return None if (advanced ^ floor) & own else advanced - floor


def _moved(times: list[int], by: int | None) -> list[int]:
    """Return the bounds of times that advancing moves by as much; None: the times move differently."""
    return times if by is None else [time + by for time in times]


def _packing(bounds: Sequence[Sequence[int]]) -> Int64s | None:
    """Return how keys, values and times within these bounds become one word; None if they do not fit one.

    See `merging/merge_words.py`.
    """
    columns: list[tuple[int, int, int]] = []
    shift = 0
    for low, high in bounds[-2::-1]:
        bits = (high - low).bit_length()
        if shift + bits > PACKED_BITS:
            return None
        columns.append((low, shift, (1 << bits) - 1))
        shift += bits
    return np.ascontiguousarray(np.array(columns[::-1], np.int64).T)
