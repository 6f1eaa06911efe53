"""All rows of an output, for who reads them: how much work is it to keep them while they change?

They are in a trace, which is nearly always asked for its last state only. So changes of complete epochs wait
beside it, as they came, until they are as many as pay: of a small change that is all there is to do, and of
many changes together rows go through fewer merges. Who reads adds up what waits, which is one array then: it
may be asked for after each change.

They are also kept for readers of changes (`kept_changes.py`): the arrays are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from differential.columns.overflow import ShowRow, row_overflow
from differential.kernels.overflow import SMALL_BITS
from differential.kernels.rows.sort import are_modest, sort_parts
from differential.trace.accumulated import Accumulated
from differential.trace.run import Run
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

__all__ = ["PARTS_READ_MAX", "WAITING_ROWS_MAX", "WAITING_ROWS_MIN", "WAITING_SHARE", "Collected"]

WAITING_ROWS_MIN: Final = 4096
"""Fewer rows always wait: taking them in takes some 0.1 µs a row."""

WAITING_SHARE: Final = 64
"""So does less than this part of all rows, up to a bound in rows."""

WAITING_ROWS_MAX: Final = 1 << 17

_MODEST: Final = 1 << SMALL_BITS
"""How often a row is there, at most, that is taken in while somebody looks for what is in use."""

PARTS_READ_MAX: Final = 8
"""Who reads goes through so many arrays; to add up more of them first takes less by the next time."""


class Collected:
    """The rows of an output with `width` words.

    All that is added is complete: nobody asks what it was at an earlier time.
    """

    def __init__(self, width: int, guards: int) -> None:
        self._trace = Trace(width, 0, guards)
        self._waiting: list[Int64s] = []
        self._rows_waiting = 0
        self._since: Int64s = np.zeros(1, np.int64)

    @property
    def show(self) -> ShowRow:
        """How errors say a row."""
        return self._trace.show

    @show.setter
    def show(self, show: ShowRow) -> None:
        self._trace.show = show

    @property
    def rows(self) -> int:
        """How many are held, those included that would cancel."""
        return self._trace.rows + self._rows_waiting

    def add(self, words: Int64s, since: Int64s) -> None:
        """Sorted and consolidated rows, which nobody may write to any more; behind them times are `since`,
        one word, or a later one.
        """
        rows = words.shape[1]
        if rows == 0:
            return
        if self._is_enough(rows):  # they are in order, and not to be sorted with others
            self.settle()
            self._since = since
            self._trace.set_since(since)
            self._trace.insert(words)
            return
        self._since = since
        self._waiting.append(words)
        self._rows_waiting += rows

    def settle_many(self) -> None:
        """Take in what waits, if it is enough. Called where a row that leaves 64 bits ends the dataflow, and
        not while somebody reads.
        """
        if self.has_many:
            self.settle()

    @property
    def has_many(self) -> bool:
        """Whether so many wait that `settle_many` takes them in."""
        return self._is_enough(self._rows_waiting)

    def _is_enough(self, rows: int) -> bool:
        """Whether so many rows are worth taking in."""
        if rows <= WAITING_ROWS_MIN:
            return False
        return rows > min(self._trace.rows // WAITING_SHARE, WAITING_ROWS_MAX)

    def add_run(self, run: Run, since: Int64s) -> None:
        """The same of many rows, which are a run already, and of one time."""
        self._since = since
        self._trace.set_since(since)
        self._trace.insert_run(run)

    def settle(self) -> None:
        """Take in what waits."""
        if not self._waiting:
            return
        waiting, self._waiting, self._rows_waiting = self._waiting, [], 0
        self._trace.set_since(self._since)
        try:
            words = self._sum(waiting)
        except OverflowError:
            raise row_overflow(waiting, self.show) from None
        self._trace.insert(words)

    def _settle_modest(self) -> None:
        """Take in what waits, unless multiplicities are so large that their sums could leave 64 bits."""
        if self._waiting and are_modest(np.concatenate([words[-1] for words in self._waiting]), _MODEST):
            self.settle()

    def _sum(self, waiting: Sequence[Int64s]) -> Int64s:
        """At one time, which nobody looks at, equal rows of several epochs are one."""
        together = [np.concatenate(waiting, axis=1)]
        together[0][-2] = self._since[0]
        return sort_parts(together)

    def compact(self) -> None:
        """Take in what waits, and let all that cancels do so."""
        self.settle()
        self._trace.compact()

    def accumulated(self, besides: Sequence[Int64s] = ()) -> Accumulated:
        """All rows, and those of `besides`, as they add up. Cost: that of all rows."""
        if len(self._waiting) > PARTS_READ_MAX:
            try:
                words = self._sum(self._waiting)
            except OverflowError:  # all rows together may fit: nothing is wrong with what is read then
                words = np.ascontiguousarray(np.concatenate(self._waiting, axis=1))
            self._waiting, self._rows_waiting = [words] if words.shape[1] else [], words.shape[1]
        return self._trace.accumulated([*self._waiting, *besides])

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch."""
        self._since = by.early(self._since)
        self._trace.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows, but those of rows that came last and cancel."""
        self._settle_modest()
        self._trace.symbols(mark)
        for words in self._waiting:
            mark.words(words[:-2])

    def compared(self) -> object:
        """All that decides what will be read of it."""
        return self.accumulated().all()
