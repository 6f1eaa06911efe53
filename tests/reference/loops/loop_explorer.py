"""The explorer, with a look into compiled loops: L1 to L3 of `loop_state.py` at every state.

It is not part of the packages: round messages are of `differential`, and the explorer below is of `timely`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from reference.loops.loop_state import (
    LoopState,
    RoundSight,
    failures_of_loops,
    loops_of,
    round_in,
    rows_into_closed,
)

from differential.operators.edge.table_in import TableIn
from progress.checking.protocol_state import Failure
from progress.graph.pointstamp_order import Pointstamp
from timely.operators.inputs.handle import InputHandle
from timely.running.checking.explorer import Explorer
from timely.running.checking.reached import Client, Message, Reached
from timely.running.instance import Instance
from timely.running.progress_messages import DataHeader, Header

__all__ = ["LoopExplorer", "TableClient"]


@dataclass(frozen=True)
class TableClient(Client):
    """A client whose rows go to an input of tables; each is a tuple of the columns."""

    rows: tuple[tuple[object, ...], ...] = ()

    def insert(self, handle: InputHandle) -> None:
        assert isinstance(handle.codec, TableIn), "a client of another input is a `Client`"
        names, columns = handle.codec.schema.names, zip(*self.rows, strict=True)
        table = pa.table(dict(zip(names, columns, strict=True)))
        handle.append(handle.epoch, handle.codec.encode(table, 1, handle.epoch_word(handle.epoch)))


class LoopExplorer(Explorer):
    """Explores dataflows in which loops are compiled."""

    compiles_loops: ClassVar[bool] = True

    def _inside_worker(self, instance: Instance) -> tuple[Hashable, ...]:
        return loops_of(instance)

    def _inside_message(self, header: Header, frames: list[memoryview], source: int) -> tuple[Hashable, ...]:
        if not isinstance(header, DataHeader):
            return ()
        frozen = self._flows[header.dataflow].frozen
        if header.connector < len(frozen.connectors):
            return ()
        return (round_in(header, frames[1:], source, frozen.layout.shifts[0]),)

    def _failures_inside(
        self, state: Reached, number: int, earliest: Sequence[Pointstamp]
    ) -> Iterator[Failure]:
        loops = [
            [each for each in local.seen[number].inside if isinstance(each, LoopState)]
            for local in state.workers
        ]
        everyone = range(self._size)
        arriving = [
            [one for p in everyone for one in state.wires[p * self._size + q] if one.dataflow == number]
            for q in everyone
        ]
        yield from failures_of_loops(loops, list(map(_rounds_in, arriving)))
        for local in state.workers:
            yield from rows_into_closed(local.worker.instance(number), earliest, self._flows[number].order)


def _rounds_in(messages: Iterable[Message]) -> list[RoundSight]:
    return [each for message in messages for each in message.inside if isinstance(each, RoundSight)]
