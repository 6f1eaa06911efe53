"""Find which of several arrangements has the fewest rows for a row, so that it proposes and the others check.

    propose     the arrangement with the fewest rows for the known words of a row extends it by each of those
    intersect   each of the others checks, for each extended row, whether it has that, too

So a row costs the least number of rows that any of the arrangements has for it, not the number that the first
one has. Otherwise a join of three or more may cost more than the size of any possible result: for the
triangles of a graph, all neighbours of a node with very many of them, for each of its neighbours.

Rows pass all arrangements, one after another, and note in two words the fewest rows so far, and the number
of the arrangement that has them. The count is an estimate: rows that were removed, or come too late to be
met, may count. It need not be exact: whichever arrangement proposes, the result is the same.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.match_before import note_fewest
from differential.operators.patterns.lookups import Lookup, LookupMachine, Work
from differential.trace.readers import Reader
from progress.compiled.arrays import Int64s

__all__ = ["FewestMachine"]


class FewestMachine(LookupMachine):
    """Returns rows as they came, without those that meet nothing, and notes if this arrangement has the
    fewest.

    words    the number of words of a row
    column   the word with the fewest rows so far, less than 0 if the row has passed no arrangement yet; the
             word behind it is the number of the arrangement that has them
    number   the number of this arrangement
    """

    def __init__(
        self, lookup: Lookup, source: Reader, words: int, note: tuple[int, int], guards: int, epoch: int
    ) -> None:
        """`note`: the column, and the number."""
        super().__init__(lookup, source, words, guards, epoch)
        self._column, self._number = note

    @property
    def gives_times(self) -> tuple[int, ...]:
        """The same words as of the rows that come in."""
        return self.times

    def answers(self, work: Work, table: Int64s) -> tuple[Int64s, int]:
        """Return all rows at once: there are no more than came in."""
        rows = work.delta.copy()
        note_fewest(rows, table, self.lookup.words, self._column, self._number)
        some = rows[self._column] != 0
        return (rows if some.all() else np.ascontiguousarray(rows[:, some])), rows.shape[1]
