"""Operators as vertices: how the pure machines of join, reduce and consolidate live in a dataflow.

A machine takes words and frontiers and returns words; it knows no stage and no worker. A vertex here feeds it
what arrives, sends what it returns, and holds exactly the capabilities that the machine says it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.overflow import ShowRow, show_words
from differential.columns.rows import row_shower
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch, words_of
from differential.columns.worker_symbols import SYMBOLS
from differential.expressions.projection import CONSTANT
from differential.kernels.history.ready import bound_of_rows, lower_bounds
from differential.linear.transform import LinearTransform
from differential.operators.consolidate import ConsolidateMachine
from differential.operators.join import LEFT, RIGHT, JoinMachine, Source
from differential.operators.reduce import Aggregates, GroupFunction, Kind, ReduceMachine
from differential.trace.trace import Trace
from progress.times.antichain import not_beyond
from timely.operators.vertex import Vertex
from timely.wire.batch import Batch

__all__ = [
    "AggregateVertex",
    "ConsolidateVertex",
    "DistinctVertex",
    "GroupFunctionVertex",
    "JoinVertex",
    "OperatorVertex",
    "Shown",
    "WaitingMachine",
    "WaitingVertex",
]

_IDLE_ROWS = 16_384
"""Rows merged in an idle moment: some 0.3 ms."""

_FEW_WORDS = 32
"""Up to here words are looked through one by one."""

_NO_TIMES: Int64s = np.empty(0, dtype=np.int64)


def _joined_words(messages: Sequence[tuple[int, Batch]]) -> Int64s:
    """All rows of several messages in one array."""
    if len(messages) == 1:
        return words_of(messages[0][1])
    return np.concatenate([words_of(batch) for _, batch in messages], axis=1)


class OperatorVertex(Vertex):
    """What all operators share: exact capabilities, and sending rows under the tightest envelope."""

    word_times: ClassVar[bool] = True

    def __init__(self) -> None:
        self._held: list[int] = []

    def traces(self) -> list[Trace]:
        """What it keeps of its inputs and output."""
        return []

    def on_idle(self) -> bool:
        """Merge a little of what recent activations have put off."""
        more = [trace.settle(_IDLE_ROWS) for trace in self.traces()]
        return any(more)

    def counters(self) -> dict[str, int]:
        """Rows and bytes in its traces."""
        traces = self.traces()
        return {
            "trace_rows": sum(trace.rows for trace in traces),
            "trace_bytes": sum(trace.bytes for trace in traces),
        }

    def hold_exactly(self, needed: Int64s) -> None:
        """Hold the words `needed`, an antichain, and nothing else."""
        wanted = needed.tolist()
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
        if words.shape[1] == 0:
            return
        envelopes = lower_bounds(words, words.shape[0] - 2, _NO_TIMES, self.code.guards)
        if envelopes.shape[0] == 1:
            self.send(0, UpdateBatch(words), int(envelopes[0]))
            return
        # All rows of an envelope together, so that each is looked at once, however many envelopes there are.
        number = bound_of_rows(words, words.shape[0] - 2, envelopes, self.code.guards)
        order = np.argsort(number, kind="stable")
        rows = words[:, order]
        starts = np.searchsorted(number[order], np.arange(envelopes.shape[0] + 1)).tolist()
        for envelope, start, stop in zip(envelopes.tolist(), starts, starts[1:], strict=False):
            self.send(0, UpdateBatch(rows[:, start:stop].copy()), envelope)


def _show(schema: Schema | None) -> ShowRow:
    """How messages show rows of these columns."""
    return show_words if schema is None else row_shower(schema, SYMBOLS)


class JoinVertex(OperatorVertex):
    """Joins two inputs as rows come in; see `JoinMachine`.

    If all its rows go to one place and only move words on the way there, it writes them in that layout at
    once.
    """

    wants_end: ClassVar[bool] = True

    def __init__(
        self,
        key_words: int,
        left_words: int,
        right_words: int,
        schemas: tuple[Schema, Schema] | None = None,
    ) -> None:
        """`schemas`: of the rows that come in on either side, for messages."""
        super().__init__()
        self._widths = (key_words, left_words, right_words)
        self._schemas = (None, None) if schemas is None else schemas
        self._machine: JoinMachine | None = None
        self._frontiers = (_NO_TIMES, _NO_TIMES)

    def on_frontier(self) -> None:
        """An input is complete for ever: what the other side keeps for its rows goes."""
        assert self._machine is not None
        self._look_at_frontiers(self._machine)

    def on_start(self) -> None:
        """Take over the projection of the only connector, if there is one."""
        self._machine = JoinMachine(*self._widths, self.code.guards, self._adopted())
        self._machine.show_rows(_show(self._schemas[0]), _show(self._schemas[1]))

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Match what came in with the other side, and send the first piece of the pairs, mostly all of them.

        While pieces are left, whatever comes in waits behind them.
        """
        machine = self._machine
        assert machine is not None
        self._look_at_frontiers(machine)
        self._send(machine, machine.recv(port, _joined_words(messages)))

    def on_resume(self) -> None:
        """Send the next piece of what waits; what other vertices made of the last one is done."""
        machine = self._machine
        assert machine is not None
        self._look_at_frontiers(machine)
        self._send(machine, machine.work())

    def _send(self, machine: JoinMachine, pairs: Int64s) -> None:
        """Send a piece; if there is more, hold the right to send it, and ask to be called again."""
        self.send_rows(pairs)
        if not machine.is_done:
            self.hold_exactly(machine.capabilities())
            self.resume()
        elif self._held:
            self.hold_exactly(_NO_TIMES)

    def _look_at_frontiers(self, machine: JoinMachine) -> None:
        left, right = self.frontier(LEFT), self.frontier(RIGHT)
        if left is not self._frontiers[0] or right is not self._frontiers[1]:
            self._frontiers = (left, right)
            machine.set_frontiers(left, right)

    def traces(self) -> list[Trace]:
        """Both sides, as far as they are still needed."""
        assert self._machine is not None
        return [trace for trace in self._machine.traces if trace is not None]

    def _adopted(self) -> list[Source] | None:
        connectors = self.connectors(0)
        if len(connectors) != 1 or not isinstance(connectors[0].transform, LinearTransform):
            return None
        projection = connectors[0].transform.projection
        if projection is None or projection.sign != 1:
            return None
        connectors[0].transform = None
        key_words, left_words, _ = self._widths
        sources: list[Source] = []
        for source, constant in zip(projection.sources, projection.constants, strict=True):
            if source == CONSTANT:
                sources.append(("constant", constant))
            elif source < key_words:
                sources.append(("key", source))
            elif source < key_words + left_words:
                sources.append(("left", source - key_words))
            else:
                sources.append(("right", source - key_words - left_words))
        return sources


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


class WaitingVertex(OperatorVertex):
    """A machine that acts when times are complete."""

    wants_frontier: ClassVar[bool] = True
    _machine: WaitingMachine

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Rows wait; the right to answer at their times is held."""
        machine = self._machine
        for _, batch in messages:
            machine.recv(words_of(batch))
        self.hold_exactly(machine.capabilities())

    def on_frontier(self) -> None:
        """Everything that is complete now, at once."""
        frontier = self.frontier(0)
        # An empty one comes last of all: nothing will be asked of the traces, which go then.
        if frontier.shape[0] and self._is_early(frontier):
            return
        machine = self._machine
        self.send_rows(machine.advance(frontier))
        self.hold_exactly(machine.capabilities())

    def _is_early(self, frontier: Int64s) -> bool:
        """Whether no time that something waits for is complete: what is held is a lower bound of all of them.

        With several workers the frontier moves in many small steps, most of which complete nothing here.
        """
        guards = self.code.guards
        if len(self._held) * frontier.shape[0] > _FEW_WORDS:
            return len(not_beyond(np.array(self._held, np.int64), frontier, guards)) == 0
        bounds = frontier.tolist()
        return all(
            any(((word | guards) - bound) & guards == guards for bound in bounds) for word in self._held
        )

    def traces(self) -> list[Trace]:
        """Those of the machine; a consolidation has none."""
        machine = self._machine
        return [machine.input, machine.output] if isinstance(machine, ReduceMachine) else []


class Shown(NamedTuple):
    """What messages of a reduce need to know: the columns of keys, rows and answers, names of aggregates."""

    key: Schema
    row: Schema
    answer: Schema
    names: tuple[str, ...] = ()


def _show_reduced(machine: ReduceMachine, shown: Shown | None) -> ReduceMachine:
    if shown is not None:
        machine.show_rows(_show(shown.key), _show(shown.row), _show(shown.answer), shown.names)
    return machine


class AggregateVertex(WaitingVertex):
    """count, sum, min, max of groups; see `ReduceMachine`. `wanted`: kind and value word of each."""

    def __init__(
        self,
        key_words: int,
        value_words: int,
        wanted: Sequence[tuple[Kind, int]],
        shown: Shown | None = None,
    ) -> None:
        super().__init__()
        self._widths = (key_words, value_words)
        self._wanted = tuple(wanted)
        self._shown = shown

    def on_start(self) -> None:
        """The machine needs the order of the scope's times."""
        machine = ReduceMachine(*self._widths, self.code.guards, Aggregates(self._wanted))
        self._machine = _show_reduced(machine, self._shown)


class DistinctVertex(WaitingVertex):
    """Rows of `words` words with a positive multiplicity, once each; `schema` is for messages."""

    def __init__(self, words: int, schema: Schema | None = None) -> None:
        super().__init__()
        self._words = words
        self._shown = None if schema is None else Shown(schema, schema, schema)

    def on_start(self) -> None:
        """A distinct is a reduce whose key is the whole row."""
        machine = ReduceMachine(self._words, 0, self.code.guards, Aggregates(()))
        self._machine = _show_reduced(machine, self._shown)


class GroupFunctionVertex(WaitingVertex):
    """A Python function of each group, on words."""

    def __init__(
        self, key_words: int, value_words: int, function: GroupFunction, shown: Shown | None = None
    ) -> None:
        super().__init__()
        self._widths = (key_words, value_words)
        self._function = function
        self._shown = shown

    def on_start(self) -> None:
        """The machine needs the order of the scope's times."""
        machine = ReduceMachine(*self._widths, self.code.guards, self._function)
        self._machine = _show_reduced(machine, self._shown)


class ConsolidateVertex(WaitingVertex):
    """Rows of `words` words, summed per time before they go on; `schema`: their columns, for messages."""

    def __init__(self, words: int, schema: Schema | None = None) -> None:
        super().__init__()
        self._words = words
        self._schema = schema

    def on_start(self) -> None:
        """The machine needs the order of the scope's times."""
        self._machine = ConsolidateMachine(self._words, self.code.guards)
        self._machine.show_rows(_show(self._schema))
