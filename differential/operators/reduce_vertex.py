"""Reduce as a vertex: of rows that come to it, or of an arrangement; its answers may be one, too.

Corrections that are shared are inserted and told of by the vertex: rows of several minimal times are sent
under several envelopes, and each is an insert with a number of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch, rows_of
from differential.columns.worker_symbols import SYMBOLS
from differential.kernels.sums.accumulated import DECIMAL_MEAN
from differential.kernels.sums.components import are_components
from differential.linear.failures.failing import FAILURES, Failed, failure_words, row_hash
from differential.linear.failures.guarding import record_text
from differential.operators.arrangement import ArrangedBatch, Arrangement, arranged, read_arrangement
from differential.operators.reduce import Accumulation, Aggregates, GroupFunction, ReduceMachine
from differential.operators.timed.sweep import SweepFunction
from differential.operators.vertices import WaitingVertex, show_schema
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from progress.errors import PeerError
from timely.dictionaries import Mark
from timely.wire.batch import Batch

__all__ = ["ReduceVertex", "Shown"]


class Shown(NamedTuple):
    """What messages of a reduce need to know: the columns of keys, rows and answers, names of aggregates."""

    key: Schema
    row: Schema
    answer: Schema
    names: tuple[str, ...] = ()


class ReduceVertex(WaitingVertex):
    """Reduces rows that come in, or an arrangement (`reads`), to answers, which others may read (`shares`).

    Output 0 has the changes of the answers as rows, output 1, of one that shares, as batches of an
    arrangement. The one behind these, of one that `fails`, has failures: groups whose sums do not fit. A
    distinct is a reduce whose key is the whole row, without aggregates.
    """

    _machine: ReduceMachine

    def __init__(
        self,
        key_words: int,
        value_words: int,
        aggregate: Aggregates | Accumulation | GroupFunction | SweepFunction,
        shown: Shown | None = None,
        *,
        reads: bool = False,
        shares: bool = False,
        fails: bool = False,
    ) -> None:
        super().__init__()
        self.failures_output = 1 + shares if fails else -1
        """The output for failures; -1: sums that do not fit end the dataflow."""
        self._widths = (key_words, value_words)
        self._aggregate = aggregate
        self._shown = shown
        self._reads = reads
        if shares:
            show = show_schema(None if shown is None else shown.answer)
            self.arrangement = Arrangement(key_words, aggregate.words, show)

    def on_start(self) -> None:
        """Begin to read, and let others read. The machine needs the order of the scope's times."""
        source = read_arrangement(self, 0, by_position=False) if self._reads else None
        answers = None if self.arrangement is None else self.arrangement.trace(self.code, self.name)
        machine = ReduceMachine(*self._widths, self.code.guards, self._aggregate, source, answers)
        if self._shown is not None:
            key, row, answer, names = self._shown
            machine.show_rows(show_schema(key), show_schema(row), show_schema(answer), names)
        machine.fails = self.failures_output >= 0
        self._machine = machine

    @property
    def machine(self) -> ReduceMachine:
        """What does the work. Requires: it has started."""
        return self._machine

    @property
    def components(self) -> int:
        """How many there are, if its rows are components, each of which says in its last word which it is;
        else 0.
        """
        return self._aggregate.components if isinstance(self._aggregate, Accumulation) else 0

    def check_arrived(self, port: int, batch: Batch, peer: int) -> None:
        """Sums are kept in arrays, by component: no row may be of one that is not there. That rows have as
        many words as here the route has found.
        """
        count = self.components
        if count == 0:
            return
        for words in rows_of(batch).in_column(self._widths[0]):
            if not are_components(words, 0, count):
                wrong = next(word for word in words[0].tolist() if not 0 <= word < count)
                raise PeerError(
                    f"worker {peer} sent rows of component {wrong} to {self!r}, which has {count:,}"
                )

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Rows wait; the right to answer at their times is held."""
        if not self._reads:
            super().recv_all(port, messages)
            return
        for _, batch in messages:
            self._machine.recv(arranged(batch).words)
        self.hold_exactly(self._machine.capabilities())

    def on_frontier(self) -> None:
        """Everything that is complete now, at once; what is asked about moves on in any case."""
        frontier = self.frontier(0)
        # An empty one comes last of all: nothing will be asked of the traces, which go then.
        if frontier.shape[0] and self._is_early(frontier):
            if self._reads or self.arrangement is not None:
                self._machine.set_since(frontier)
            return
        for corrections in self._machine.advance_by_portions(frontier):
            self._send_answers(corrections)
            self._send_failures()
        self.hold_exactly(self._machine.capabilities())

    def _send_answers(self, corrections: Int64s) -> None:
        if self.arrangement is None:
            self.send_rows(corrections)
            return
        answers = self._machine.output
        assert isinstance(answers, SharedTrace)
        for envelope, rows in self.parts_by_envelope(corrections):
            self.send(0, UpdateBatch(rows), envelope)
            self.send(1, ArrangedBatch(rows, answers.add(rows)), envelope)

    def failures(self) -> Int64s | None:
        """The changes of groups without an answer since this was last asked, as rows of `FAILURES`, all of
        place 0.
        """
        failed = self._machine.take_failed()
        if not failed:
            return None
        show = show_schema(None if self._shown is None else self._shown.key)
        said = [
            Failed(
                b"",
                row_hash(each.key),
                "SumOverflowError",
                record_text(self._name(each.column)),
                record_text(show(each.key)),
                self._why(each.column),
                "",
                each.time,
                each.diff,
            )
            for each in failed
        ]
        return failure_words({b"": 0}, said, (0, (1 << self.code.layout.shifts[0]) - 1), SYMBOLS)

    def _name(self, column: int) -> str:
        names = () if self._shown is None else self._shown.names
        return names[column] if column < len(names) else f"word {column} of the answer"

    def _why(self, column: int) -> str:
        assert isinstance(self._aggregate, Accumulation)
        what, _, _, is_decimal, _ = self._aggregate.asked[column]
        return "has more than 18 digits" if what == DECIMAL_MEAN or is_decimal else "leaves 64 bits"

    def _send_failures(self) -> None:
        words = self.failures()
        if words is not None:
            for envelope, rows in self.parts_by_envelope(words):
                self.send(self.failures_output, UpdateBatch(rows, FAILURES.symbol_words), envelope)

    def symbols(self, mark: Mark) -> None:
        """What it keeps and writes; what it reads is shown where it is written."""
        self._machine.symbols(mark)

    def traces(self) -> list[Trace]:
        """Those that it writes: what it reads is merged, and counted, elsewhere."""
        return self._machine.traces
