"""Consolidate: hold rows back until their times are complete, so that rows that cancel are never sent.

This is the logic alone: words and frontiers in, words out.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.overflow import ShowRow
from differential.columns.packed.parts import Part
from differential.operators.machine import Machine
from differential.operators.waiting.waiting_rows import WaitingRows
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

_NO_TIMES: Final[Int64s] = np.empty(0, np.int64)


class ConsolidateMachine(Machine):
    """Returns rows of `words` words when their times are complete, sorted and consolidated."""

    def __init__(self, words: int, guards: int) -> None:
        self.words = words
        self.columns = words + 2
        """The columns of rows that come in, time and difference included."""
        self._waiting = WaitingRows(words + 2, guards)
        self._ready: Int64s | None = None

    def show_rows(self, show: ShowRow) -> None:
        """Set how messages show rows."""
        self._waiting.show = show

    def recv(self, port: int, parts: list[Part]) -> None:
        """Let rows int64[words + 2, n] wait for their times."""
        self._waiting.take_over(parts)

    def advance(self, *frontiers: Int64s) -> None:
        """Let `work` return the rows that are complete now: no time of the frontier is ≤ theirs."""
        self._ready = self._waiting.take_ready(frontiers[0])

    def work(self) -> Int64s | None:
        """Return the rows that are complete, all at once."""
        ready, self._ready = self._ready, None
        return ready

    def needs(self) -> Int64s:
        """Return the minimal times of the rows that wait, ascending."""
        return self._waiting.times(_NO_TIMES)

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch."""
        self._waiting.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show all words that it keeps."""
        self._waiting.symbols(mark)
