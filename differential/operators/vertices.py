"""One driver for every machine: how the pure logic of operators lives in a dataflow.

A machine (`machine.py`) takes words and frontiers and returns words; it knows no stage and no worker. The
vertex here hands it what arrives, sends what it returns, and holds exactly the times that the machine needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.overflow import ShowRow, show_words
from differential.columns.packed.parts import Part
from differential.columns.rows import row_shower
from differential.columns.schema import Schema
from differential.columns.update_batch import PackedBatch, UpdateBatch, rows_of, words_of
from differential.columns.worker_symbols import SYMBOLS
from differential.kernels.history.ready import bound_of_rows, lower_bounds
from differential.kernels.sums.components import are_components
from differential.linear.failures.failing import FAILURES
from differential.operators.arrangement import ArrangedBatch, Arrangement, arranged
from differential.operators.machine import Machine
from differential.operators.reducing.overflowing import FailedGroup
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from progress.errors import PeerError
from progress.times.anchor import Rebase
from progress.times.word_antichain import not_beyond
from progress.times.word_order import few_are_beyond
from timely.dictionaries import Mark
from timely.operators.vertex import Vertex
from timely.thresholds import FEW_WORDS_MAX
from timely.wire.batch import Batch

__all__ = [
    "Components",
    "MachineVertex",
    "OperatorVertex",
    "PassingVertex",
    "joined_words",
    "packed_parts",
    "show_schema",
]

_IDLE_ROWS = 16_384
"""Rows merged in an idle moment: some 0.3 ms."""

_NO_TIMES: Int64s = np.empty(0, dtype=np.int64)


def joined_words(messages: Sequence[tuple[int, Batch]]) -> Int64s:
    """All rows of several messages in one array."""
    if len(messages) == 1:
        return words_of(messages[0][1])
    return np.ascontiguousarray(np.concatenate([words_of(batch) for _, batch in messages], axis=1))


def packed_parts(messages: Sequence[tuple[int, Batch]]) -> list[Part]:
    """The rows of several messages, those of large ones as they are packed."""
    parts: list[Part] = []
    for _, batch in messages:
        if isinstance(batch, PackedBatch):
            parts += batch.packed()
        elif batch.rows or len(messages) == 1:
            parts.append(words_of(batch))
    return parts or [words_of(messages[0][1])]


class OperatorVertex(Vertex):
    """What all operators share: exact capabilities, and sending rows under the tightest envelope."""

    word_times: ClassVar[bool] = True
    arrangement: Arrangement | None = None
    """What it lets others read."""

    def __init__(self) -> None:
        self._held: list[int] = []

    def traces(self) -> list[Trace]:
        """What it keeps of its inputs and output."""
        return []

    def on_idle(self) -> bool:
        """Merge a little of what recent activations have put off."""
        more = [trace.settle(_IDLE_ROWS) for trace in self.traces()]
        return any(more)

    def on_rest(self) -> None:
        """Let traces look whether most of what they keep cancels."""
        for trace in self.traces():
            trace.rest()

    def counters(self) -> dict[str, int]:
        """Rows and bytes in its traces."""
        traces = self.traces()
        return {
            "trace_rows": sum(trace.rows for trace in traces),
            "trace_bytes": sum(trace.bytes for trace in traces),
        }

    def report(self) -> dict[str, object]:
        """The arrangements that it keeps for others: their size, and who holds back what of them."""
        found = [trace.report() for trace in self.traces() if isinstance(trace, SharedTrace)]
        return {"arrangements": [one.to_plain(self.code.unpack) for one in found]} if found else {}

    def rebase(self, by: Rebase) -> None:
        """What is held, and the traces that it writes; who keeps more says so himself."""
        self._held = [by.word(word) for word in self._held]
        for trace in self.traces():
            trace.rebase(by)

    def hold_exactly(self, needed: Int64s) -> None:
        """Hold the words `needed`, an antichain, and nothing else."""
        self.hold_words(needed.tolist())

    def hold_words(self, wanted: list[int]) -> None:
        """The same of words, ascending, of which some may be wide."""
        held = self._held
        if wanted == held:
            return
        # Ascending, as both are. As sets only where there are many: for one or two words a list is as quick.
        has, wants = (held, wanted) if len(held) + len(wanted) < FEW_WORDS_MAX else (set(held), set(wanted))
        for word in wanted:
            if word not in has:
                self.hold(word)
        for word in held:
            if word not in wants:
                self.release(word)
        self._held = wanted

    def send_rows(self, words: Int64s) -> None:
        """Send rows, each under an envelope time at or before its own that this vertex may send at.

        The envelopes are the minimal times of the rows: anything earlier would hold receivers back for
        nothing.
        """
        if words.shape[1] == 1:  # most often, where little changes
            self.send(0, UpdateBatch(words), int(words[-2, 0]))
            return
        for envelope, rows in self.parts_by_envelope(words):
            self.send(0, UpdateBatch(rows), envelope)

    def parts_by_envelope(self, words: Int64s) -> Iterator[tuple[int, Int64s]]:
        """Rows in parts, each with one of the minimal times of all rows, which is ≤ those of the part; their
        order is kept. Rows with one minimal time are one part, the array itself.
        """
        if words.shape[1] < 2:  # one row is what there is most often where little changes
            if words.shape[1]:
                yield int(words[-2, 0]), words
            return
        envelopes = lower_bounds(words, words.shape[0] - 2, _NO_TIMES, self.code.guards)
        if envelopes.shape[0] == 1:
            yield int(envelopes[0]), words
            return
        # All rows of an envelope together, so that each is looked at once, however many envelopes there are.
        number = bound_of_rows(words, words.shape[0] - 2, envelopes, self.code.guards)
        order = np.argsort(number, kind="stable")
        rows = words[:, order]
        starts = np.searchsorted(number[order], np.arange(envelopes.shape[0] + 1)).tolist()
        for envelope, start, stop in zip(envelopes.tolist(), starts, starts[1:], strict=False):
            yield envelope, rows[:, start:stop].copy()


def show_schema(schema: Schema | None) -> ShowRow:
    """How messages show rows of these columns."""
    return show_words if schema is None else row_shower(schema, SYMBOLS)


class PassingVertex(OperatorVertex):
    """A vertex that keeps nothing: each row passes at once, perhaps as another, or not at all.

    A compiled loop asks it for the same (`passed`). Rows come in with `columns` columns, and have `words`
    words when they have passed.
    """

    def __init__(self, words_in: int, words: int) -> None:
        super().__init__()
        self.columns = words_in + 2
        self.words = words

    def passed(self, words: Int64s) -> Iterable[Int64s]:
        """Return what becomes of rows, in one or more parts."""
        raise NotImplementedError

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Let all that came in pass at once."""
        for words in self.passed(joined_words(messages)):
            self.send_rows(words)


class Components(NamedTuple):
    """What rows must say of themselves: the word `at` is a component, below `number`."""

    number: int
    at: int


class _Failures(Protocol):
    """Makes rows of the groups that a machine has no answer for: `GroupFailures`."""

    def rows(self, failed: Sequence[FailedGroup], counters: int) -> Int64s:
        """Return a row for each; `counters`: the bits of a time below its epoch."""
        ...


class MachineVertex(OperatorVertex):
    """Drives one machine: hands it what comes in, sends what it makes, and holds the times that it needs.

    Output 0 has the rows of the machine. If others read these (`arrangement`), output 1 has them as batches
    of an arrangement. The last output of one with `failures` has the groups without an answer.
    """

    wants_frontier: ClassVar[bool] = True

    def __init__(
        self,
        make: Callable[[MachineVertex], Machine],
        arrangement: Arrangement | None = None,
        reads: Sequence[int] = (),
        *,
        ports: int = 1,
        failures: _Failures | None = None,
        components: Components | None = None,
    ) -> None:
        """`make`: makes the machine when the vertex starts. `reads`: ports at which batches of an arrangement
        come in; `ports`: how many there are. `components`: of rows that name a place in memory.
        """
        super().__init__()
        self._make = make
        self.arrangement = arrangement
        self.shared: SharedTrace | None = None
        """The trace of the arrangement, if others read the rows."""
        self._reads = tuple(reads)
        self._ports = ports
        self._looks_on = bool(reads) or arrangement is not None
        """Whether others merge what it asks about, and so want to know how far that is."""
        self._failures = failures
        self.failures_output = -1 if failures is None else 1 + (arrangement is not None)
        """The output for failures; -1: sums that do not fit end the dataflow."""
        self.components = components

    def on_start(self) -> None:
        """Make the machine, which begins to read, and let others read."""
        if self.arrangement is not None:
            self.shared = self.arrangement.trace(self.code, self.name)
        self.machine = self._make(self)
        if self.machine.pauses:
            self.machine.let_look(self._look)

    def check_arrived(self, port: int, batch: Batch, peer: int) -> None:
        """Refuse rows of a component that is not there: sums are kept in arrays, by component. The route has
        found before that rows have as many words as here.
        """
        components = self.components
        if components is None:
            return
        for words in rows_of(batch).in_column(components.at):
            if not are_components(words, 0, components.number):
                wrong = next(word for word in words[0].tolist() if not 0 <= word < components.number)
                raise PeerError(
                    f"worker {peer} sent rows of component {wrong} to {self!r}, which has "
                    f"{components.number:,}"
                )

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Let rows wait, and hold the right to answer at their times."""
        machine = self.machine
        if port in self._reads:
            machine.recv(port, [arranged(batch).words for _, batch in messages])
        elif machine.times:
            machine.recv(port, [_with_times_moved(batch, machine.times) for _, batch in messages])
        else:
            machine.recv(port, packed_parts(messages))
        if machine.pauses:
            self._go_on()
        else:
            self.hold_words(machine.needs().tolist())

    def on_frontier(self) -> None:
        """Send everything that is complete now."""
        if self.machine.pauses:
            self._go_on()
            return
        machine, frontier = self.machine, self.frontier(0)
        # An empty one comes last of all: nothing will be asked of the traces, which go then.
        if frontier.shape[0] and self._is_early(frontier):
            if self._looks_on:
                machine.set_since(frontier)
            return
        machine.advance(frontier)
        while (rows := machine.work()) is not None:
            self._send_all(rows)
        self.hold_words(machine.needs().tolist())

    def on_resume(self) -> None:
        """Send the next piece; what other vertices made of the last one is done."""
        self._go_on()

    def _go_on(self) -> None:
        """Send a piece; if more are left, hold the right to send them, and ask to be called again."""
        machine = self.machine
        machine.advance(*[self.frontier(port) for port in range(self._ports)])
        rows = machine.work()
        if rows is not None:
            self._send_all(rows)
        self.hold_words(machine.needs().tolist())
        if not machine.is_done:
            self.resume()

    def _look(self) -> None:
        """A merge begins: what is kept may be merged up to what rows may still ask about."""
        self.machine.set_since(*[self.frontier(port) for port in range(self._ports)])

    def first_asked(self) -> int | None:
        """The epoch from which on times must be told apart."""
        word = self.machine.first_asked()
        return None if word is None else self.code.epoch_of(word)

    def _is_early(self, frontier: Int64s) -> bool:
        """Whether no time that something waits for is complete: what is held is a lower bound of all of them.

        With several workers the frontier moves in many small steps, most of which complete nothing here.
        """
        guards = self.code.guards
        if len(self._held) * frontier.shape[0] > FEW_WORDS_MAX:
            return len(not_beyond(np.array(self._held, np.int64), frontier, guards)) == 0
        return few_are_beyond(self._held, frontier.tolist(), guards)

    def _send_all(self, rows: Int64s) -> None:
        """Send rows to all who want them, and failures."""
        shared = self.shared
        if shared is None:
            self.send_rows(rows)
        else:
            # Rows of several minimal times are several inserts: a batch has one number and one envelope.
            for envelope, some in self.parts_by_envelope(rows):
                self.send(0, UpdateBatch(some), envelope)
                self.send(1, ArrangedBatch(some, shared.add(some)), envelope)
        if self._failures is not None:
            failed = self.failures()
            if failed is not None:
                for envelope, some in self.parts_by_envelope(failed):
                    self.send(self.failures_output, UpdateBatch(some, FAILURES.symbol_words), envelope)

    def failures(self) -> Int64s | None:
        """Return the changes of groups without an answer since the last call, as rows of `FAILURES`."""
        failed = self.machine.take_failed()
        if not failed or self._failures is None:
            return None
        return self._failures.rows(failed, (1 << self.code.layout.shifts[0]) - 1)

    def rebase(self, by: Rebase) -> None:
        """What is held, what waits, and traces."""
        super().rebase(by)
        self.machine.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """What the machine keeps, and what others read."""
        self.machine.symbols(mark)
        if self.shared is not None:
            self.shared.symbols(mark)

    def traces(self) -> list[Trace]:
        """Those that it writes: what it reads is merged, and counted, elsewhere."""
        traces, shared = self.machine.traces, self.shared
        return traces if shared is None or shared in traces else [*traces, shared]


def _with_times_moved(batch: Batch, times: Sequence[int]) -> Int64s:
    """Rows of a batch; words that are times count from where the batch does."""
    words = words_of(batch)
    moved = batch.moved if isinstance(batch, UpdateBatch | PackedBatch) else 0
    if moved:
        words = words.copy()
        for word in times:
            words[word] += moved
    return words
