"""Looking up as a vertex: rows at port 0 look up the arrangement at port 1, see `lookups.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import ClassVar, Final

from differential.columns.schema import Schema
from differential.columns.update_batch import PackedBatch, UpdateBatch
from differential.operators.arrangement import read_arrangement
from differential.operators.patterns.lookups import LookupMachine
from differential.operators.vertices import OperatorVertex, joined_words, show_schema
from differential.trace.readers import Reader
from progress.times.anchor import Rebase
from timely.dictionaries import Mark
from timely.wire.batch import Batch

__all__ = ["ARRANGED", "ROWS", "LookupVertex", "MakeMachine"]

ROWS: Final = 0
ARRANGED: Final = 1

MakeMachine = Callable[[Reader, int, int], LookupMachine]
"""Of a reader, the guards of the scope, and the position of the epoch."""


class LookupVertex(OperatorVertex):
    """Lets rows wait until what they look up is complete, and sends what they make of it, in pieces.

    It keeps nothing but rows that wait. What comes in at the port of the arrangement says nothing to it but
    how far that is: it reads by time.
    """

    wants_frontier: ClassVar[bool] = True

    def __init__(self, make: MakeMachine, schema: Schema | None = None) -> None:
        """`schema`: the columns of the rows that come in, for messages."""
        super().__init__()
        self._make = make
        self._schema = schema

    def on_start(self) -> None:
        """Begin to read."""
        _, self._reader = read_arrangement(self, ARRANGED, by_position=False)
        self._reader.look = self._look
        epoch, _ = self.code.fields[0]
        self._machine = self._make(self._reader, self.code.guards, epoch)
        self._machine.show = show_schema(self._schema)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Rows look up at once what is complete for them already, and wait otherwise."""
        if port == ROWS:
            for moved, some in groupby(messages, key=_moved):
                self._machine.recv(joined_words(list(some)), moved)
            self._go_on()

    def rebase(self, by: Rebase) -> None:
        """Rows that wait."""
        super().rebase(by)
        self._machine.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Rows that wait; what they look up others keep."""
        self._machine.symbols(mark)

    def on_frontier(self) -> None:
        """Rows for which the arrangement is complete now."""
        self._go_on()

    def on_resume(self) -> None:
        """The next piece."""
        self._go_on()

    def _go_on(self) -> None:
        machine = self._machine
        machine.advance(self.frontier(ARRANGED))
        if not machine.is_idle:
            self.send_rows(machine.work())
        self.hold_exactly(machine.capabilities())
        if not machine.is_idle:
            self.resume()
        elif machine.is_empty and not self._reader.is_done and self.frontier(ROWS).shape[0] == 0:
            self._look()

    def _look(self) -> None:
        """What is looked up may be merged up to what rows may still ask about."""
        self._machine.hold_back(self.frontier(ROWS))


def _moved(message: tuple[int, Batch]) -> int:
    batch = message[1]
    return batch.moved if isinstance(batch, UpdateBatch | PackedBatch) else 0
