"""Collections at the edge of a dataflow: Arrow tables in, Arrow tables out.

    TableIn    columns → update batch at an epoch
    TableOut   update batches → a log of complete epochs (columns, `epoch`, `diff`), and the accumulated rows

The log keeps each complete epoch's consolidated changes until they are forgotten, and a trace of all rows for
snapshots, so that a snapshot costs the collection and not its history.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from differential.column_types import Int64s
from differential.errors import SchemaError
from differential.schema import Schema, SchemaSpec
from progress.time_words import TimeCode
from timely.arrow import int64_array
from timely.batch import Batch
from timely.capture import OutputLog
from timely.dataflow import Dataflow
from timely.errors import MisuseError

from .collection import Collection, Term
from .linear import LinearChain
from .operators.consolidate import WaitingRows
from .trace.trace import Trace
from .update_batch import UpdateBatch, words_of
from .worker_symbols import SYMBOLS

__all__ = ["DIFF", "EPOCH", "TableIn", "TableLog", "TableOut", "input"]

DIFF = "diff"
EPOCH = "epoch"

_OPEN_ROWS_MIN = 65_536


def input(flow: Dataflow, name: str, schema: SchemaSpec) -> Collection:
    """A named input of `flow` as a collection with the columns of `schema`."""
    declared = Schema.of(schema)
    for reserved in (DIFF, EPOCH):
        if reserved in declared.names:
            raise SchemaError(
                f"input {name!r}: a column cannot be called {reserved!r}, which tables of changes use"
            )
    stream = flow.input(name, TableIn(declared, name))
    return Collection(flow, declared, (Term(stream, LinearChain.over(declared)),))


class TableIn:
    """Encodes tables for an input with the columns of `schema`."""

    converter = "differential.client_tables:client_table"

    def __init__(self, schema: Schema, name: str) -> None:
        self.schema = schema
        self.name = name

    def describe(self) -> str:
        """The columns."""
        return f"table ({self.schema})"

    def arrow_schema(self) -> pa.Schema:
        """What clients must send."""
        return self.schema.to_arrow()

    def encode(self, table: pa.Table, diff: int, epoch_word: int) -> UpdateBatch:
        """The rows of `table` at `epoch_word`, each `diff` times."""
        width = self.schema.width
        words = np.empty((width + 2, table.num_rows), dtype=np.int64)
        words[:width] = self.schema.encode(table, SYMBOLS, self.name)
        words[width] = epoch_word
        words[width + 1] = diff
        return UpdateBatch(words)


class TableOut:
    """Makes logs of collections with the columns of `schema`."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def describe(self) -> str:
        """The columns."""
        return f"table ({self.schema})"

    def new_log(self) -> OutputLog:
        """An empty log."""
        return TableLog(self.schema)


class TableLog:
    """What one output on one worker has put out."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._open = WaitingRows(schema.width + 2, 0)
        self._rows_consolidated = 0
        self._changes: dict[int, Int64s] = {}
        self._trace: Trace | None = None
        self._forgotten_before = 0
        self._code: TimeCode | None = None

    def start(self, code: TimeCode) -> None:
        """Learn how epochs are packed into words."""
        self._code = code
        self._open = WaitingRows(self._schema.width + 2, code.guards)
        self._trace = Trace(self._schema.width, 0, code.guards)

    def add(self, epoch: int, batch: Batch) -> None:
        """Rows at or after `epoch`."""
        del epoch
        self._open.add(words_of(batch))
        # What leaves a loop is all its iterations, most of which cancel: sum them before they pile up.
        if self._open.rows > max(_OPEN_ROWS_MIN, 2 * self._rows_consolidated):
            self._open.consolidate()
            self._rows_consolidated = self._open.rows

    def complete(self, epoch: int) -> None:
        """Consolidate all rows before `epoch` into one block of changes per epoch."""
        if not self._open.rows:
            return
        assert self._code is not None and self._trace is not None
        bound = np.array([self._code.pack((min(epoch, self._epoch_max()),))], dtype=np.int64)
        words = self._open.take_ready(bound)
        self._rows_consolidated = self._open.rows
        if words.shape[1] == 0:
            return
        times = words[-2]
        for word in np.unique(times).tolist():
            block = (
                words
                if times[0] == word and (times == word).all()
                else np.ascontiguousarray(words[:, times == word])
            )
            (done,) = self._code.unpack(word)
            self._changes[done] = block
        self._trace.set_since(bound)
        self._trace.insert(words)

    def changes(self, start: int, stop: int) -> pa.Table:
        """Columns, `epoch`, `diff`; epochs ascending."""
        if start < self._forgotten_before:
            raise MisuseError(
                f"changes of epochs before {self._forgotten_before} are no longer kept; asked for from "
                f"{start}. Begin with a snapshot"
            )
        epochs = [epoch for epoch in sorted(self._changes) if start <= epoch < stop]
        blocks = [self._changes[epoch] for epoch in epochs]
        words = (
            np.concatenate(blocks, axis=1)
            if blocks
            else np.empty((self._schema.width + 2, 0), dtype=np.int64)
        )
        table = self._schema.decode(words, SYMBOLS)
        lengths = [block.shape[1] for block in blocks]
        table = table.append_column(EPOCH, int64_array(np.repeat(np.array(epochs, dtype=np.int64), lengths)))
        return table.append_column(DIFF, int64_array(words[-1]))

    def snapshot(self) -> pa.Table:
        """The rows now in the collection, with the column `diff` for their multiplicities."""
        assert self._trace is not None
        words = self._trace.snapshot()
        table = self._schema.decode(words, SYMBOLS)
        return table.append_column(DIFF, int64_array(words[-1]))

    def forget(self, stop: int) -> None:
        """Drop changes of epochs before `stop`."""
        for epoch in [known for known in self._changes if known < stop]:
            del self._changes[epoch]
        self._forgotten_before = max(self._forgotten_before, stop)

    def _epoch_max(self) -> int:
        assert self._code is not None
        return (1 << self._code.fields[0][1]) - 1
