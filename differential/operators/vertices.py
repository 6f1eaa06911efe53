"""Operators as vertices: how the pure machines of join, reduce and consolidate live in a dataflow.

A machine takes words and frontiers and returns words; it knows no stage and no worker. A vertex here feeds it
what arrives, sends what it returns, and holds exactly the capabilities that the machine says it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.overflow import ShowRow, show_words
from differential.columns.packed.parts import Part
from differential.columns.rows import row_shower
from differential.columns.schema import Schema
from differential.columns.update_batch import PackedBatch, UpdateBatch, parts_of, words_of
from differential.columns.worker_symbols import SYMBOLS
from differential.kernels.history.ready import bound_of_rows, lower_bounds
from differential.operators.arrangement import Arrangement
from differential.operators.consolidate import ConsolidateMachine
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from progress.times.anchor import Rebase
from progress.times.word_antichain import not_beyond
from progress.times.word_order import few_are_beyond
from timely.dictionaries import Mark
from timely.operators.vertex import Vertex
from timely.wire.batch import Batch

__all__ = [
    "ConsolidateVertex",
    "OperatorVertex",
    "WaitingMachine",
    "WaitingVertex",
    "joined_words",
    "packed_parts",
    "show_schema",
]

_IDLE_ROWS = 16_384
"""Rows merged in an idle moment: some 0.3 ms."""

_FEW_WORDS = 32
"""Up to here words are looked through one by one."""

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
        has, wants = (held, wanted) if len(held) + len(wanted) < _FEW_WORDS else (set(held), set(wanted))
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


class WaitingMachine(Protocol):
    """What waits for times to be complete: the protocol of reduce and consolidate."""

    def recv(self, words: Int64s) -> None:
        """Let rows wait."""
        ...

    def advance(self, frontier: Int64s) -> Int64s:
        """What is to be sent for the times that are complete now."""
        ...

    def capabilities(self) -> Int64s:
        """Minimal times at which something may still be sent."""
        ...

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch; traces apart, which are the vertex's to move."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show all words that it keeps."""
        ...


class WaitingVertex(OperatorVertex):
    """A machine that acts when times are complete."""

    wants_frontier: ClassVar[bool] = True
    _machine: WaitingMachine

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Rows wait; the right to answer at their times is held."""
        machine = self._machine
        for _, batch in messages:
            for words in parts_of(batch):
                machine.recv(words)
        self.hold_exactly(machine.capabilities())

    def rebase(self, by: Rebase) -> None:
        """What waits, too."""
        super().rebase(by)
        self._machine.rebase(by)

    def on_frontier(self) -> None:
        """Everything that is complete now, at once."""
        frontier = self.frontier(0)
        # An empty one comes last of all: nothing will be asked of the traces, which go then.
        if frontier.shape[0] and self._is_early(frontier):
            return
        self.send_complete(frontier)
        self.hold_exactly(self._machine.capabilities())

    def send_complete(self, frontier: Int64s) -> None:
        """Send what is to be sent for the times that are complete now."""
        self.send_rows(self._machine.advance(frontier))

    def _is_early(self, frontier: Int64s) -> bool:
        """Whether no time that something waits for is complete: what is held is a lower bound of all of them.

        With several workers the frontier moves in many small steps, most of which complete nothing here.
        """
        guards = self.code.guards
        if len(self._held) * frontier.shape[0] > _FEW_WORDS:
            return len(not_beyond(np.array(self._held, np.int64), frontier, guards)) == 0
        return few_are_beyond(self._held, frontier.tolist(), guards)


class ConsolidateVertex(WaitingVertex):
    """Rows of `words` words, summed per time before they go on; `schema`: their columns, for messages."""

    def __init__(self, words: int, schema: Schema | None = None) -> None:
        super().__init__()
        self.words = words
        self._schema = schema

    def on_start(self) -> None:
        """The machine needs the order of the scope's times."""
        self._machine = ConsolidateMachine(self.words, self.code.guards)
        self._machine.show_rows(show_schema(self._schema))

    @property
    def machine(self) -> ConsolidateMachine:
        """What does the work. Requires: it has started."""
        assert isinstance(self._machine, ConsolidateMachine)
        return self._machine

    def symbols(self, mark: Mark) -> None:
        """Rows that wait."""
        self._machine.symbols(mark)
