"""All rows of an output, for its readers, kept with little work while they change.

They are in a trace, and readers nearly always want its last state only. So changes of complete epochs wait
beside it, as they came, until there are enough to pay for an insert. A small change costs nothing more, and
rows of many changes together go through fewer merges. A reader that meets many waiting changes adds them up
first, and they are one array from then on: a reader may come after each change.

They are also kept for readers of changes (`kept_changes.py`): the arrays are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from differential.columns.overflow import ShowRow, row_overflow
from differential.kernels.overflow import SMALL_BITS
from differential.kernels.rows.sort import are_modest, sort_parts
from differential.thresholds import BESIDE_ROWS_MAX
from differential.trace.accumulated import Accumulated
from differential.trace.run import Run
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark
from timely.limits import UNSETTLED_ROWS_MAX

__all__ = ["PARTS_READ_MAX", "WAITING_SHARE", "Collected"]

WAITING_SHARE: Final = 64
"""Beyond `BESIDE_ROWS_MAX`, up to 1/64 of the rows in the trace wait, and at most `UNSETTLED_ROWS_MAX`."""

_MODEST: Final = 1 << SMALL_BITS
"""Bound of the multiplicities of rows that are taken in while words in use are looked for."""

PARTS_READ_MAX: Final = 8
"""A reader goes through up to this many arrays; it adds up more of them first, which saves time from the next
read on."""


class Collected:
    """The rows of an output with `width` words.

    All rows that are added are complete: nobody asks for an earlier state.
    """

    def __init__(self, width: int, guards: int) -> None:
        self._trace = Trace(width, 0, guards)
        self._waiting: list[Int64s] = []
        self._rows_waiting = 0
        self._since: Int64s = np.zeros(1, np.int64)

    @property
    def show(self) -> ShowRow:
        """How errors show a row."""
        return self._trace.show

    @show.setter
    def show(self, show: ShowRow) -> None:
        self._trace.show = show

    @property
    def rows(self) -> int:
        """The number of rows that it holds, including rows that would cancel."""
        return self._trace.rows + self._rows_waiting

    def add(self, words: Int64s, since: Int64s) -> None:
        """Add sorted and consolidated rows, which nobody writes to any more. All later rows are at `since`,
        one word, or later.
        """
        rows = words.shape[1]
        if rows == 0:
            return
        if self._is_enough(rows):  # they are sorted already, so do not sort them with others
            self.settle()
            self._since = since
            self._trace.set_since(since)
            self._trace.insert(words)
            return
        self._since = since
        self._waiting.append(words)
        self._rows_waiting += rows

    def settle_many(self) -> None:
        """Take in the rows that wait, if there are enough. Call it where a row that leaves 64 bits ends the
        dataflow, not while somebody reads.
        """
        if self.has_many:
            self.settle()

    @property
    def has_many(self) -> bool:
        """True if enough rows wait for `settle_many` to take them in."""
        return self._rows_waiting > BESIDE_ROWS_MAX and self._is_enough(self._rows_waiting)

    def _is_enough(self, rows: int) -> bool:
        """Return True if taking in this many rows pays."""
        if rows <= BESIDE_ROWS_MAX:
            return False
        return rows > min(self._trace.rows // WAITING_SHARE, UNSETTLED_ROWS_MAX)

    def add_run(self, run: Run, since: Int64s) -> None:
        """Add many rows that are a run already, all of one time."""
        self._since = since
        self._trace.set_since(since)
        self._trace.insert_run(run)

    def settle(self) -> None:
        """Take in all rows that wait."""
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
        """Take in all rows that wait, unless multiplicities are so large that their sums could leave 64
        bits.
        """
        if self._waiting and are_modest(np.concatenate([words[-1] for words in self._waiting]), _MODEST):
            self.settle()

    def _sum(self, waiting: Sequence[Int64s]) -> Int64s:
        """Return all rows at one time, so that equal rows of several epochs are one; nobody reads that
        time.
        """
        together = [np.concatenate(waiting, axis=1)]
        together[0][-2] = self._since[0]
        return sort_parts(together)

    def compact(self) -> None:
        """Take in all rows that wait, and sum up all rows."""
        self.settle()
        self._trace.compact()

    def accumulated(self, besides: Sequence[Int64s] = ()) -> Accumulated:
        """Return the sum of all rows and those of `besides`. Cost: that of all rows."""
        if len(self._waiting) > PARTS_READ_MAX:
            try:
                words = self._sum(self._waiting)
            except OverflowError:  # no error: together with the rows in the trace the sums may fit
                words = np.ascontiguousarray(np.concatenate(self._waiting, axis=1))
            self._waiting, self._rows_waiting = [words] if words.shape[1] else [], words.shape[1]
        return self._trace.accumulated([*self._waiting, *besides])

    def parts(self) -> tuple[Sequence[Run], list[Int64s]]:
        """Return all rows as they are, in runs and in arrays, which nobody writes to."""
        runs, head = self._trace.parts()
        return runs, [head, *self._waiting]

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch."""
        self._since = by.early(self._since)
        self._trace.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows. Take in waiting rows first, so that those that cancel do not count,
        unless their multiplicities are large.
        """
        self._settle_modest()
        self._trace.symbols(mark)
        for words in self._waiting:
            mark.words(words[:-2])

    def compared(self) -> object:
        """Return all that decides what readers get."""
        return self.accumulated().all()
