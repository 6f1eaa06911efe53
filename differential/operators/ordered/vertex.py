"""The first rows of each group as a vertex: rows are kept in order, and answers leave as they came.

What the machine keeps is in order (`layout.py`): its input trace, which nobody else could read, and its own
answers. If others read the answers, they are kept once more, as rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from differential.columns.column_types import Int64s
from differential.columns.overflow import ShowRow
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch, words_of
from differential.operators.arrangement import ArrangedBatch, Arrangement
from differential.operators.ordered.layout import InOrder
from differential.operators.reduce import ReduceMachine
from differential.operators.vertices import WaitingVertex, show_schema
from differential.trace.trace import Trace
from timely.dictionaries import Mark
from timely.wire.batch import Batch

__all__ = ["FirstVertex"]


class FirstVertex(WaitingVertex):
    """Sends changes of the first rows of each group on output 0, and as an arrangement (`shares`) on 1."""

    _machine: ReduceMachine

    def __init__(self, order: InOrder, answer: Schema | None = None, *, shares: bool = False) -> None:
        """`answer`: the columns of answers, for messages of who reads them."""
        super().__init__()
        self._order = order
        if shares:
            self.arrangement = Arrangement(order.key_words, order.words, show_schema(answer))

    def on_start(self) -> None:
        """The machine needs the order of the scope's times."""
        order, first = self._order, self._order.first_rows()
        machine = ReduceMachine(order.key_words, first.width, self.code.guards, first)
        machine.show_rows(show_schema(None), _shown_in(order), show_schema(None))
        self._machine = machine
        self._answers = None if self.arrangement is None else self.arrangement.trace(self.code, self.name)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Rows wait, in order; the right to answer at their times is held."""
        for _, batch in messages:
            self._machine.recv(self._order.encode(words_of(batch)))
        self.hold_exactly(self._machine.capabilities())

    def send_complete(self, frontier: Int64s) -> None:
        """Of very many epochs in portions."""
        for corrections in self._machine.advance_by_portions(frontier):
            self.send_rows(corrections)

    def send_rows(self, words: Int64s) -> None:
        """Answers, as rows; under envelopes as all operators send them."""
        rows = self._order.decode(words)
        if self._answers is None:
            super().send_rows(rows)
            return
        for envelope, some in self.parts_by_envelope(rows):
            self.send(0, UpdateBatch(some), envelope)
            self.send(1, ArrangedBatch(some, self._answers.add(some)), envelope)

    def symbols(self, mark: Mark) -> None:
        """Rows in order, in which symbols stand as they are, and the answers that others read."""
        self._machine.symbols(mark)
        if self._answers is not None:
            self._answers.symbols(mark)

    def traces(self) -> list[Trace]:
        """All that it writes."""
        mine = self._machine.traces
        return mine if self._answers is None else [*mine, self._answers]


def _shown_in(order: InOrder) -> ShowRow:
    """How messages show rows that are laid out in order."""
    show = show_schema(order.schema)
    return lambda words: show(order.plain_row(words))
