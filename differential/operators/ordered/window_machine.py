"""All rows of each group with their answers: a machine whose work follows the stretches of the changes.

Outside of loops times are in one order, and all rows that came before count at the time of a change. There
the machine keeps no answers: those before a change follow from the rows (`reducing/stretches.py`). Rows of
several epochs come in turns, of each key one epoch in a turn. Within loops it is a `ReduceMachine` as any
other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from differential.kernels.loading import prepare
from differential.kernels.sweeps.around import stretch_rows
from differential.kernels.sweeps.running import answer_changes, run_on
from differential.kernels.sweeps.touched import group_sizes, touched_rows, unclear_spans
from differential.operators.reduce import ReduceMachine
from differential.operators.reducing.stretches import Marks, window_changes
from differential.operators.reducing.window_parts import WindowFunctions
from progress.compiled.arrays import Int64s

__all__ = ["WindowMachine", "turns"]


class WindowMachine(ReduceMachine):
    """Keeps the answers of windows right, in the layout of the order."""

    def __init__(self, kw: int, vw: int, guards: int, functions: WindowFunctions) -> None:
        self._functions = functions  # which `_prepare` asks
        super().__init__(kw, vw, guards, functions)
        self._marks = Marks(kw, functions) if guards & (guards - 1) == 0 else None
        """The marks of its groups, whose symbols are all in rows of the trace; None within loops."""
        self.keeps_answers = self._marks is None

    def _prepare(self) -> None:
        """Compile what `_reduce` will call, unless it is in the cache."""
        if self.guards & (self.guards - 1) != 0:
            super()._prepare()
            return
        prepare(stretch_rows, "tttl")
        if self._functions.asks_totals:
            prepare(touched_rows, "ttttii")
            if self._functions.buckets:
                prepare(group_sizes, "tttii")
        if self._functions.symbols:
            prepare(unclear_spans, "ttttil")
        prepare(answer_changes, "tittt")
        prepare(run_on, "lllti")

    def advance(self, *frontiers: Int64s) -> None:
        """Let `work` correct the output at every time that is complete now."""
        if self._marks is None:
            super().advance(*frontiers)
        else:
            self._portions = turns(self._waiting.take_ready(frontiers[0]), self.kw, frontiers[0])

    def _reduce(self, ready: Int64s, pending: Int64s, frontier: Int64s) -> tuple[Int64s, Int64s]:
        """Return corrections, and the pairs (key, time) that are pending from now on."""
        if self._marks is None:
            return super()._reduce(ready, pending, frontier)
        nothing = np.empty((self.kw + 1, 0), np.int64)
        return window_changes(ready, self.input.lines, self._functions, self._marks), nothing


def turns(ready: Int64s, kw: int, frontier: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Return `ready` in pairs (rows, frontier), so that in each a key has rows of one time; times of a key
    ascend. No later row is before the frontier of its pair; the last pair has the one given.
    """
    times = ready[-2]
    if (times == times[:1]).all():
        return iter(((ready, frontier),))
    return _divided(ready, kw, frontier)


def _divided(ready: Int64s, kw: int, frontier: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    key = np.zeros(ready.shape[1], np.int64)
    for word in range(kw):
        key[1:] |= ready[word, 1:] != ready[word, :-1]
    np.cumsum(key, out=key)
    pairs, pair_of = np.unique(np.array([key, ready[-2]]), axis=1, return_inverse=True)
    begins = np.searchsorted(pairs[0], pairs[0])
    turn = (np.arange(pairs.shape[1]) - begins)[pair_of]
    order = np.argsort(turn, kind="stable")
    start = 0
    for stop in np.bincount(turn).cumsum().tolist():
        left = ready[-2, order[stop:]]
        yield np.take(ready, order[start:stop], axis=1), np.array([left.min()]) if left.size else frontier
        start = stop
