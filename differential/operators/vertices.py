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
    """Return all rows of several messages in one array."""
    if len(messages) == 1:
        return words_of(messages[0][1])
    return np.ascontiguousarray(np.concatenate([words_of(batch) for _, batch in messages], axis=1))


def packed_parts(messages: Sequence[tuple[int, Batch]]) -> list[Part]:
    """Return the rows of several messages; those of large ones stay packed."""
    parts: list[Part] = []
    for _, batch in messages:
        if type(batch) is UpdateBatch:  # Fast path: nearly all are.
            if batch.rows or len(messages) == 1:
                parts.append(batch.words)
        elif isinstance(batch, PackedBatch):
            parts += batch.packed()
        elif batch.rows or len(messages) == 1:
            parts.append(words_of(batch))
    return parts or [words_of(messages[0][1])]


class OperatorVertex(Vertex):
    """The base class of operators: it holds exact capabilities, and sends rows under the tightest
    envelope.
    """

    word_times: ClassVar[bool] = True
    arrangement: Arrangement | None = None
    """The arrangement that it lets others read."""

    def __init__(self) -> None:
        self._held: list[int] = []

    def traces(self) -> list[Trace]:
        """Return the traces that it keeps of its inputs and output."""
        return []

    def on_idle(self) -> bool:
        """Do a little of the merging that recent activations have put off."""
        more = [trace.settle(_IDLE_ROWS) for trace in self.traces()]
        return any(more)

    def on_rest(self) -> None:
        """Let each trace check whether most of its rows cancel."""
        for trace in self.traces():
            trace.rest()

    def counters(self) -> dict[str, int]:
        """Return the number of rows and bytes in its traces."""
        traces = self.traces()
        return {
            "trace_rows": sum(trace.rows for trace in traces),
            "trace_bytes": sum(trace.bytes for trace in traces),
            "trace_file_bytes": sum(trace.file_bytes for trace in traces),
        }

    def report(self) -> dict[str, object]:
        """Return the arrangements that it keeps for others: their size, and what each reader holds back."""
        reports = [trace.report() for trace in self.traces() if isinstance(trace, SharedTrace)]
        return {"arrangements": [report.to_plain(self.code.unpack) for report in reports]} if reports else {}

    def rebase(self, by: Rebase) -> None:
        """Move the words that it holds, and the traces that it writes; a class that keeps more overrides
        this.
        """
        self._held = [by.word(word) for word in self._held]
        for trace in self.traces():
            trace.rebase(by)

    def hold_exactly(self, needed: Int64s) -> None:
        """Hold the words `needed`, an antichain, and nothing else."""
        self.hold_words(needed.tolist())

    def hold_words(self, needed: list[int]) -> None:
        """Hold the words `needed`, ascending, and nothing else; some of them may be wide."""
        held = self._held
        if needed == held:
            return
        # Both are ascending. Sets pay only where there are many: for one or two words a list is as quick.
        has, wants = (held, needed) if len(held) + len(needed) < FEW_WORDS_MAX else (set(held), set(needed))
        for word in needed:
            if word not in has:
                self._runner.hold(word)
        for word in held:
            if word not in wants:
                self._runner.release(word)
        self._held = needed

    def send_rows(self, words: Int64s) -> None:
        """Send rows, each under an envelope time at or before its own that this vertex may send at.

        The envelopes are the minimal times of the rows: anything earlier would hold receivers back for
        nothing.
        """
        rows = words.shape[1]
        if 0 < rows < FEW_WORDS_MAX:  # Fast path: little has changed, all of it at one time.
            times = words[-2].tolist()
            if times == [times[0]] * rows:
                self._runner.send(0, UpdateBatch(words), times[0])
                return
        for envelope, some in self.parts_by_envelope(words):
            self.send(0, UpdateBatch(some), envelope)

    def parts_by_envelope(self, words: Int64s) -> Iterator[tuple[int, Int64s]]:
        """Yield the rows in parts, each with one of the minimal times of all rows, which is ≤ the times of
        the part. Rows keep their order. If there is one minimal time, the array itself is the only part.
        """
        if words.shape[1] < 2:  # Fast path: little has changed.
            if words.shape[1]:
                yield int(words[-2, 0]), words
            return
        envelopes = lower_bounds(words, words.shape[0] - 2, _NO_TIMES, self.code.guards)
        if envelopes.shape[0] == 1:
            yield int(envelopes[0]), words
            return
        # Group rows by envelope, so that each row is looked at once, however many envelopes there are.
        number = bound_of_rows(words, words.shape[0] - 2, envelopes, self.code.guards)
        order = np.argsort(number, kind="stable")
        rows = words[:, order]
        starts = np.searchsorted(number[order], np.arange(envelopes.shape[0] + 1)).tolist()
        for envelope, start, stop in zip(envelopes.tolist(), starts, starts[1:], strict=False):
            yield envelope, rows[:, start:stop].copy()


def show_schema(schema: Schema | None) -> ShowRow:
    """Return the function by which messages show rows of these columns."""
    return show_words if schema is None else row_shower(schema, SYMBOLS)


class PassingVertex(OperatorVertex):
    """A vertex that keeps nothing: each row passes at once, perhaps changed, or goes no further.

    A compiled loop calls its method `passed`, too. Rows come in with `columns` columns, and go on with
    `words` words.
    """

    def __init__(self, words_in: int, words: int) -> None:
        super().__init__()
        self.columns = words_in + 2
        self.words = words

    def passed(self, words: Int64s) -> Iterable[Int64s]:
        """Return the rows that go on, in parts."""
        raise NotImplementedError

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Let all rows that came in pass at once."""
        for words in self.passed(joined_words(messages)):
            self.send_rows(words)


class Components(NamedTuple):
    """A condition on rows: their word `at` is the index of a component, below `number`."""

    number: int
    at: int


class _Failures(Protocol):
    """`GroupFailures`: makes rows of the groups that a machine has no answer for."""

    def rows(self, failed: Sequence[FailedGroup], counters: int) -> Int64s:
        """Return a row for each; `counters`: the bits of a time below its epoch."""
        ...


class MachineVertex(OperatorVertex):
    """Drives one machine: hands it the rows that come in, sends those that it makes, and holds the times that
    it needs.

    Output 0 has the rows of the machine. If others read these (`arrangement`), output 1 has them as batches
    of an arrangement. With `failures`, the last output has the groups without an answer.
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
        come in; `ports`: how many there are. `components`: for rows that name a place in an array.
        """
        super().__init__()
        self._make = make
        self.arrangement = arrangement
        self.shared: SharedTrace | None = None
        """The trace of the arrangement, if others read the rows."""
        self._reads = tuple(reads)
        self._ports = ports
        self._looks_on = bool(reads) or arrangement is not None
        """True if other stages merge the traces that it asks about, and so need to know how far it has
        come."""
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
        """Raise PeerError for rows of a component that does not exist: sums are kept in arrays, by component.
        The route has checked before that rows have as many words as here.
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
        machine, frontier = self.machine, self._runner.frontier(0)
        # An empty frontier is the last one: nobody asks the traces any more, and they are dropped.
        if frontier.shape[0] and self._is_early(frontier):
            if self._looks_on:
                machine.set_since(frontier)
            return
        machine.advance(frontier)
        while (rows := machine.work()) is not None:
            self._send_all(rows)
        self.hold_words(machine.needs().tolist())

    def on_resume(self) -> None:
        """Send the next piece; other vertices have worked off the last one."""
        self._go_on()

    def _go_on(self) -> None:
        """Send a piece; if more are left, hold the right to send them, and ask to be called again."""
        machine = self.machine
        machine.advance(*[self.frontier_words(port) for port in range(self._ports)])
        rows = machine.work()
        if rows is not None:
            self._send_all(rows)
        self.hold_words(machine.needs().tolist())
        if not machine.is_done:
            self.resume()

    def _look(self) -> None:
        """Let a merge that is about to begin merge times that no row will ask about any more."""
        self.machine.set_since(*[self.frontier_words(port) for port in range(self._ports)])

    def first_asked(self) -> int | None:
        """Return the first epoch whose times must stay different from earlier ones; None if there is none."""
        word = self.machine.first_asked()
        return None if word is None else self.code.epoch_of(word)

    def _is_early(self, frontier: Int64s) -> bool:
        """Return True if no time is complete that something waits for: held words are lower bounds of these.

        With several workers the frontier moves in many small steps, most of which complete nothing here.
        """
        held = self._held
        if not held:
            return True
        guards = self._runner.vertex_code.guards
        if len(held) * frontier.shape[0] > FEW_WORDS_MAX:
            return len(not_beyond(np.array(held, np.int64), frontier, guards)) == 0
        return few_are_beyond(held, frontier.tolist(), guards)

    def _send_all(self, rows: Int64s) -> None:
        """Send rows by each output that has them, and send failures."""
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
        """Move the words that it holds, its traces, and what waits in the machine."""
        super().rebase(by)
        self.machine.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the words that the machine keeps, and those that others read."""
        self.machine.symbols(mark)
        if self.shared is not None:
            self.shared.symbols(mark)

    def hides_words(self, waits: bool) -> bool:
        """See `HidesWords`."""
        return self.machine.hides_words(waits)

    def traces(self) -> list[Trace]:
        """Return the traces that it writes; those that it reads are merged, and counted, elsewhere."""
        traces, shared = self.machine.traces, self.shared
        return traces if shared is None or shared in traces else [*traces, shared]


def _with_times_moved(batch: Batch, times: Sequence[int]) -> Int64s:
    """Return the rows of a batch, with the words that are times moved by as much as the batch was."""
    words = words_of(batch)
    moved = batch.moved if isinstance(batch, UpdateBatch | PackedBatch) else 0
    if moved:
        words = words.copy()
        for word in times:
            words[word] += moved
    return words
