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
from differential.trace.readers import Reader
from differential.trace.trace import Trace
from progress.times.anchor import Rebase
from timely.dictionaries import Mark
from timely.wire.batch import Batch

__all__ = ["JoinPort", "JoinVertex"]

_NO_TIMES: Final[Int64s] = np.empty(0, dtype=np.int64)


class JoinPort(NamedTuple):
    """What comes in at a port: a part of `side`; batches of an arrangement if it `reads`, else rows."""

    side: int
    reads: bool


class JoinVertex(OperatorVertex):
    """Joins as rows come in, and sends pairs in pieces; see `JoinMachine`.

    If all pairs go to one place and only move words on the way there, it writes them in that layout at once.
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
        """`schemas`: of the rows of either side, for messages; `projection`, `flags`: see `JoinMachine`."""
        super().__init__()
        self._widths = (key_words, left_words, right_words)
        self._schemas = (None, None) if schemas is None else schemas
        self._ports = tuple(ports)
        self._projection = whole_pairs(*self._widths) if projection is None else list(projection)
        self._flags = tuple(flags)
        self._machine: JoinMachine | None = None

    def on_start(self) -> None:
        """Begin to read, and take over the projection of the only connector, if there is one."""
        inputs = [JoinInput(port.side, self._source(number)) for number, port in enumerate(self._ports)]
        for one in inputs:
            one.source.look = self._look
        self._machine = JoinMachine(*self._widths, self.code.guards, self._adopted(), inputs, self._flags)
        self._machine.show_rows(show_schema(self._schemas[0]), show_schema(self._schemas[1]))

    @property
    def machine(self) -> JoinMachine:
        """What does the work. Requires: it has started."""
        assert self._machine is not None
        return self._machine

    def _source(self, number: int) -> OwnRows | Reader:
        port = self._ports[number]
        if port.reads:
            return read_arrangement(self, number, by_position=True)[1]
        return OwnRows(Trace(self._widths[0], self._widths[1 + port.side], self.code.guards))

    def _adopted(self) -> list[Source]:
        """Where the words of what is sent come from: by the projection of the only connector, too."""
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
        """Match what came in with the other side, and send the first piece of the pairs, mostly all of them.

        While pieces are left, pairs of what comes in wait behind them.
        """
        machine = self._machine
        assert machine is not None
        if self._ports[port].reads:
            pairs = machine.recv_arranged(port, [arranged(batch) for _, batch in messages])
        else:
            pairs = machine.recv_parts(port, packed_parts(messages))
        self._send(machine, pairs)

    def on_resume(self) -> None:
        """Send the next piece of what waits; what other vertices made of the last one is done."""
        assert self._machine is not None
        self._send(self._machine, self._machine.work())

    def on_frontier(self) -> None:
        """If an input is complete for ever, what is kept of the other side for its rows goes."""
        self._take_over(at_end=True)

    def _look(self) -> None:
        """What is kept may be merged up to what may still come in; the end of that is `on_frontier`'s.

        Frontiers move at every step, and are of use only where merges begin.
        """
        self._take_over(at_end=False)

    def _take_over(self, at_end: bool) -> None:
        frontiers = [self.frontier(port) for port in range(len(self._ports))]
        if all(map(len, frontiers)) != at_end:
            assert self._machine is not None
            self._machine.set_frontiers(*frontiers)

    def _send(self, machine: JoinMachine, pairs: Int64s) -> None:
        """Send a piece; if there is more, hold the right to send it, and ask to be called again."""
        self.send_rows(pairs)
        if not machine.is_done:
            self.hold_exactly(machine.capabilities())
            self.resume()
        elif self._held:
            self.hold_exactly(_NO_TIMES)

    def rebase(self, by: Rebase) -> None:
        """Pairs that wait to be made, too."""
        super().rebase(by)
        assert self._machine is not None
        self._machine.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """What it keeps, and pairs that wait to be made."""
        assert self._machine is not None
        self._machine.symbols(mark)

    def traces(self) -> list[Trace]:
        """Those of its own, as far as they are still needed."""
        assert self._machine is not None
        return self._machine.traces
