"""Which of several arrangements has the fewest rows for a row? The others need only be asked about those.

    propose     the one with the fewest rows for what is known of a row says how it may go on
    intersect   the others are asked, for each of these, whether they have it, too

so that a row costs the least of what the arrangements have for it, and not what the first one has. Without
that a join of three or more may cost more than any of its results can be large: along the triangles of a
graph, all neighbours of a node with very many of them, for each of its neighbours.

Rows go by all arrangements, one after another, and have two words in which the fewest rows so far, and the
number of the arrangement that has them, are noted. It is an estimate (what was removed, or comes too late to
be met, may count), and need not be more: whoever proposes, the result is the same.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.match_before import note_fewest
from differential.operators.patterns.lookups import Lookup, LookupMachine, Work
from differential.trace.readers import Reader
from progress.compiled.arrays import Int64s

__all__ = ["FewestMachine"]


class FewestMachine(LookupMachine):
    """Rows as they come, without those that meet nothing, and a note where this arrangement has the fewest.

    words    how many words rows have
    column   the word with the fewest rows so far, less than 0 where nobody was asked; the one behind it is
             the number of the arrangement that has them
    number   that of this arrangement
    """

    def __init__(
        self, lookup: Lookup, source: Reader, words: int, note: tuple[int, int], guards: int, epoch: int
    ) -> None:
        """`note`: the column, and the number."""
        super().__init__(lookup, source, words, guards, epoch)
        self._column, self._number = note

    @property
    def gives_times(self) -> tuple[int, ...]:
        """As of the rows that come in."""
        return self.times

    def answers(self, work: Work, table: Int64s) -> tuple[Int64s, int]:
        """All at once: it makes no more rows than there are."""
        rows = work.delta.copy()
        note_fewest(rows, table, self.lookup.words, self._column, self._number)
        some = rows[self._column] != 0
        return (rows if some.all() else np.ascontiguousarray(rows[:, some])), rows.shape[1]
