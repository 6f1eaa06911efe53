"""Join as a vertex: of rows that come to it, or of arrangements that other stages keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.expressions.projection import CONSTANT
from differential.linear.transform import LinearTransform
from differential.operators.arrangement import arranged, read_arrangement
from differential.operators.join import (
    LEFT,
    RIGHT,
    JoinInput,
    JoinMachine,
    OwnRows,
    Source,
    whole_pairs,
)
from differential.operators.vertices import OperatorVertex, packed_parts, show_schema
from differential.operators.waiting.gathered import Gathered
from differential.thresholds import GATHERED_ROWS_MIN
from differential.trace.readers import Reader
from differential.trace.trace import Trace
from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp
from timely.dictionaries import Mark
from timely.wire.batch import Batch

__all__ = ["JoinPort", "JoinVertex"]

_NO_TIMES: Final[Int64s] = np.empty(0, dtype=np.int64)

_EVEN: Final = 4
"""Ports are even if none has more than this many times the waiting rows of another."""


class JoinPort(NamedTuple):
    """One port: it brings a part of `side`, as batches of an arrangement if it `reads`, else as rows."""

    side: int
    reads: bool


class JoinVertex(OperatorVertex):
    """Joins as rows come in, and sends pairs in pieces; see `JoinMachine`.

    If many rows come in at once, they wait for the end of their epoch, and so do all rows that come behind
    them; see `Gathered`. The order in which rows are accepted changes no pair; until all are accepted, the
    join forgets nothing.

    If all pairs take one connector that only moves words, the join writes them in that layout at once.
    """

    wants_end: ClassVar[bool] = True

    def __init__(
        self,
        key_words: int,
        left_words: int,
        right_words: int,
        schemas: tuple[Schema, Schema] | None = None,
        ports: Sequence[JoinPort] = (JoinPort(LEFT, False), JoinPort(RIGHT, False)),
        projection: Sequence[Source] | None = None,
        flags: Sequence[int] = (),
    ) -> None:
        """`schemas`: the columns of either side, for messages; `projection`, `flags`: see `JoinMachine`."""
        super().__init__()
        self._widths = (key_words, left_words, right_words)
        self._schemas = (None, None) if schemas is None else schemas
        self._ports = tuple(ports)
        self._projection = whole_pairs(*self._widths) if projection is None else list(projection)
        self._flags = tuple(flags)
        self._gathered = Gathered()

    def on_start(self) -> None:
        """Begin to read, and take over the projection of the only connector, if there is one."""
        inputs = [JoinInput(port.side, self._source(number)) for number, port in enumerate(self._ports)]
        for one in inputs:
            one.source.look = self._look
        self.machine = self._machine_of(self._adopted(), inputs)
        self.machine.show_rows(show_schema(self._schemas[0]), show_schema(self._schemas[1]))

    def _machine_of(self, projection: Sequence[Source], inputs: Sequence[JoinInput]) -> JoinMachine:
        return JoinMachine(*self._widths, self.code.guards, projection, inputs, self._flags)

    def _source(self, number: int) -> OwnRows | Reader:
        port = self._ports[number]
        if port.reads:
            return read_arrangement(self, number, by_position=True)[1]
        return OwnRows(Trace(self._widths[0], self._widths[1 + port.side], self.code.guards))

    def _adopted(self) -> list[Source]:
        """Return where the words of pairs come from. The projection of the only connector, if there is one,
        is included, and the connector has none any more.
        """
        connectors = self.connectors(0)
        if len(connectors) != 1 or not isinstance(connectors[0].transform, LinearTransform):
            return self._projection
        projection = connectors[0].transform.projection
        if projection is None or projection.sign != 1:
            return self._projection
        connectors[0].transform = None
        return [
            ("constant", constant) if source == CONSTANT else self._projection[source]
            for source, constant in zip(projection.sources, projection.constants, strict=True)
        ]

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Match the rows that came in with the other side, and send the first piece of the pairs, mostly all.

        While pieces are left, the pairs of new rows wait behind them.
        """
        machine = self.machine
        if self._ports[port].reads:
            pairs = machine.recv_arranged(port, [arranged(batch) for _, batch in messages])
        elif self._gathered.rows or self._are_loaded(messages):
            self._gather(port, messages)
            return
        else:
            pairs = machine.recv_parts(port, packed_parts(messages))
        self._send(machine, pairs)

    def _are_loaded(self, messages: Sequence[tuple[int, Batch]]) -> bool:
        """Return True if these are many rows from outside of all loops. Within a loop a worker gets most of
        its rows in one piece, and they would wait for the slowest worker in each iteration.
        """
        rows = 0
        for _, batch in messages:
            rows += batch.rows
        if rows < GATHERED_ROWS_MIN:
            return False
        counters = (1 << self.code.layout.shifts[0]) - 1
        return not any(word & counters for word, _ in messages)

    def _gather(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Let rows wait until one of the times at which rows have come is complete, or enough rows wait."""
        gathered = self._gathered
        gathered.add(port, packed_parts(messages))
        for word in {word for word, _ in messages} - gathered.words:
            gathered.words.add(word)
            self._runner.request(word)
        self._go_on(self.machine)
        if gathered.are_enough:
            self._take_gathered()

    def on_notify(self, time: Timestamp) -> None:
        """Take up all rows that wait, also those whose times are not complete: perhaps no more of them
        come.
        """
        if self._gathered.rows:
            self._take_gathered()

    def _take_gathered(self) -> None:
        """Take up the port with the most rows first: the few of the others are then looked up in them. If
        the ports are even, take up the right side first: pairs then come in the order of the left rows, in
        which later stages keep them.
        """
        machine, gathered = self.machine, self._gathered
        sizes = gathered.sizes()
        most, least = max(sizes.values()), min(sizes.values())
        is_even = most <= _EVEN * least

        def order(port: int) -> tuple[int, int]:
            return (0 if is_even else -sizes[port], -self._ports[port].side)

        for port in sorted(sizes, key=order):
            parts = gathered.take(port)
            self.send_rows(machine.recv_parts(port, parts))
        self._go_on(machine)
        self._take_over(at_end=True)

    def on_resume(self) -> None:
        """Send the next piece of the pairs that wait; other vertices have worked off the last one."""
        self._send(self.machine, self.machine.work())

    def on_frontier(self) -> None:
        """If an input is complete for ever, drop what is kept of the other side for its rows."""
        self._take_over(at_end=True)

    def _look(self) -> None:
        """Let a merge that is about to begin merge times before the frontiers; `on_frontier` handles the end
        of an input.

        Frontiers move at every step, and are of use only where merges begin.
        """
        self._take_over(at_end=False)

    def _take_over(self, at_end: bool) -> None:
        if self._gathered.rows:
            return  # the frontiers may be past these rows, which are still to be matched
        frontiers = [self.frontier_words(port) for port in range(len(self._ports))]
        if all(map(len, frontiers)) != at_end:
            self.machine.set_frontiers(*frontiers)

    def _send(self, machine: JoinMachine, pairs: Int64s) -> None:
        """Send a piece, and arrange for the others."""
        self.send_rows(pairs)
        self._go_on(machine)

    def _go_on(self, machine: JoinMachine) -> None:
        """If more pairs wait, hold the right to send them, and ask to be called again."""
        if not machine.is_done:
            self.resume()
            self._hold(machine.capabilities())
        elif self._held or self._gathered.rows:
            self._hold(_NO_TIMES)

    def _hold(self, needed: Int64s) -> None:
        """Hold these times, and those of the rows that wait."""
        words = self._gathered.words
        self.hold_words(sorted(words.union(needed.tolist())) if words else needed.tolist())

    def rebase(self, by: Rebase) -> None:
        """Move the words that it holds, its traces, pairs that wait to be made, and rows that wait."""
        super().rebase(by)
        self.machine.rebase(by)
        self._gathered.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the words of what it keeps, of pairs that wait to be made, and of rows that wait."""
        self.machine.symbols(mark)
        self._gathered.symbols(mark)

    def traces(self) -> list[Trace]:
        """Return the traces of its own rows, as far as they are still needed."""
        return self.machine.traces
