"""The first rows of each group: the machine keeps rows in the layout of the order, and returns plain rows.

Its input trace, which nobody else could read, and its own answers are in that layout (`layout.py`). If others
read the answers, the driver keeps them once more, as plain rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from differential.columns.overflow import ShowRow
from differential.columns.packed.parts import Part, each_in
from differential.operators.machine import Machine
from differential.operators.ordered.layout import InOrder
from differential.operators.ordered.window_machine import WindowMachine
from differential.operators.reduce import ReduceMachine
from differential.operators.reducing.overflowing import FailedGroup
from differential.operators.reducing.window_parts import NO_SUM, WindowFunctions
from differential.operators.vertices import show_schema
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

__all__ = ["FirstMachine"]


class FirstMachine(Machine):
    """Returns the changes of the first rows of each group."""

    def __init__(self, order: InOrder, guards: int) -> None:
        aggregate = order.aggregate()
        self.order = order
        self.columns = order.schema.width + 2
        """The columns of rows that come in, time and difference included."""
        self.words = order.key_words + order.words
        """The words of an answer."""
        self._sums = aggregate.sums if isinstance(aggregate, WindowFunctions) else []
        """Of a window: its sums that may not fit, each with the value word that says so."""
        if isinstance(aggregate, WindowFunctions):
            self.rows_in_order: ReduceMachine = WindowMachine(
                order.key_words, aggregate.width, guards, aggregate
            )
        else:
            self.rows_in_order = ReduceMachine(order.key_words, aggregate.width, guards, aggregate)
        self.rows_in_order.show_rows(show_schema(None), _shown_in(order), show_schema(None))

    def recv(self, port: int, parts: list[Part]) -> None:
        """Let rows wait, in the layout of the order."""
        self.rows_in_order.recv(port, [self.order.encode(words) for words in each_in(parts)])

    def advance(self, *frontiers: Int64s) -> None:
        """Let `work` correct the answers at every time that is complete now."""
        self.rows_in_order.advance(*frontiers)

    def work(self) -> Int64s | None:
        """Return corrections as rows, sorted and consolidated; those of very many epochs in portions."""
        corrections = self.rows_in_order.work()
        return None if corrections is None else self.order.decode(self._with_sums(corrections))

    def _with_sums(self, corrections: Int64s) -> Int64s:
        """Return the rows all of whose sums fit; the others are failures."""
        kw = self.order.key_words
        fits = np.ones(corrections.shape[1], np.bool_)
        for part, word in self._sums:
            failing = fits & (corrections[kw + word] == NO_SUM)
            if failing.any():
                rows = corrections[:, failing].T.tolist()
                self.rows_in_order.add_failed(
                    [FailedGroup(tuple(row[:kw]), part, row[-2], row[-1]) for row in rows]
                )
                fits &= ~failing
        return corrections if fits.all() else np.ascontiguousarray(corrections[:, fits])

    def take_failed(self) -> list[FailedGroup]:
        """Return the changes of rows of a window whose sums do not fit, since the last call."""
        return self.rows_in_order.take_failed()

    def needs(self) -> Int64s:
        """Return the minimal times of rows and keys that wait, ascending."""
        return self.rows_in_order.needs()

    @property
    def traces(self) -> list[Trace]:
        """The traces of rows and answers, in the layout of the order."""
        return self.rows_in_order.traces

    def set_since(self, *frontiers: Int64s) -> None:
        """Ask, from now on, only about times at or after an element of the frontier."""
        self.rows_in_order.set_since(*frontiers)

    def let_look(self, look: Callable[[], None]) -> None:
        """Call `look` before a merge of a trace begins."""
        self.rows_in_order.let_look(look)

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch."""
        self.rows_in_order.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the words of rows in the layout of the order; symbols are in it as they are, or turned."""
        self.rows_in_order.symbols(_BothWays(mark) if self.order.is_turned else mark)


class _BothWays(Mark):
    """Marks symbols that are in use as they are, or with every bit flipped."""

    def __init__(self, mark: Mark) -> None:
        super().__init__(())
        self._mark = mark

    def words(self, words: Int64s) -> None:
        """See `Mark`."""
        self._mark.words(words)
        self._mark.words(~words)

    def has_between(self, low: int, high: int) -> bool:
        """See `Mark`."""
        return self._mark.has_between(low, high) or self._mark.has_between(~high, ~low)

    def unknown(self, who: str) -> None:
        """See `Mark`."""
        self._mark.unknown(who)


def _shown_in(order: InOrder) -> ShowRow:
    """Return the function by which messages show rows in the layout of the order."""
    show = show_schema(order.schema)
    return lambda words: show(order.plain_row(words))
