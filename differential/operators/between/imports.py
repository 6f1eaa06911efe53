"""Import: a collection of another dataflow, from its present state on.

The rows are copied. First comes the state as of the epoch at which all imports of a dataflow begin, on all
workers, in pieces; then every insert as it is made. A row of an earlier epoch counts as one of that epoch. So
the collection at any epoch from there on is the owner's collection.

The columns are put into the order in which the importing dataflow has declared them, and times into its
words: their layout depends on how deep its loops are. A new version of a dataflow may read other columns than
the old one has (`evolution.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.errors import SchemaError
from differential.operators.between.evolution import Evolution, check_evolution
from differential.operators.between.exports import ExportVertex
from differential.trace.readers import Reader
from progress.compiled.arrays import Int64s
from progress.times.time_words import TimeCode
from timely.dictionaries import Mark
from timely.errors import MisuseError
from timely.operators.imported import Exported, Taken
from timely.wire.batch import Batch

__all__ = ["CopiedImport", "TableImport"]

_PIECE_ROWS: Final = 65_536
"""Rows of the state that enter at once; other vertices have their turn in between."""


@dataclass(frozen=True)
class TableImport:
    """Reads a collection that has the columns of `schema`, in whatever order; of these it keeps `columns`.

    With `is_newer`, it reads what an older version of an input holds, which may have other columns;
    `defaults` has values of new ones.
    """

    schema: Schema
    columns: Schema | None = None
    is_newer: bool = False
    defaults: pa.Table | None = None

    def describe(self) -> str:
        """Return the columns, as text."""
        return f"table ({self.schema})"

    def open(self, exported: Exported, reader: str) -> CopiedImport:
        """Begin to read; raise SchemaError if the columns differ."""
        columns = self.schema if self.columns is None else self.columns
        return CopiedImport(columns, self.checked(exported, reader), reader, self.defaults)

    def checked(self, exported: Exported, reader: str) -> ExportVertex:
        """Return the vertex that keeps the collection; raise SchemaError if its columns differ."""
        vertex = exported.vertex
        if not isinstance(vertex, ExportVertex):
            raise MisuseError(f"{exported.title()} is no collection")
        if self.is_newer:
            check_evolution(vertex.schema, self.schema, self.defaults)
        elif sorted(map(str, vertex.schema)) != sorted(map(str, self.schema)):
            raise SchemaError(
                f"{exported.title()} has the columns ({vertex.schema}), which is not what {reader} wants to "
                f"import: ({self.schema}). Declare the same names and types"
            )
        return vertex


class CopiedImport:
    """One import on one worker; see `timely.operators.imported`."""

    def __init__(
        self, schema: Schema, vertex: ExportVertex, reader: str, defaults: pa.Table | None = None
    ) -> None:
        self._schema = schema
        self._vertex = vertex
        self._evolution: Evolution | None = None
        self._order: list[int] = []
        if set(schema) <= set(vertex.schema):
            width = vertex.schema.width
            words = [word for column in schema for word in vertex.schema.words_of(column.name)]
            self._order = [*words, width, width + 1]
        else:
            self._evolution = Evolution(vertex.schema, schema, defaults)
        self._reader: Reader | None = vertex.read(reader)
        self._epoch = 0
        self._code: TimeCode | None = None
        self._news: Callable[[], None] | None = None
        self._is_listening = False
        self._state: Int64s | None = None
        self._state_from = 0
        self._waiting: list[tuple[Int64s, int]] = []
        """Rows that were not taken yet, and the epoch from which their words count: the owner's anchor
        may move."""
        self._divides = False

    def divide_epochs(self) -> None:
        """Let each batch have rows of one epoch only."""
        self._divides = True

    @property
    def since(self) -> int:
        """The earliest epoch at which the import can begin to read."""
        assert self._reader is not None
        (epoch,) = self._vertex.code.unpack(int(self._reader.hold[0]))
        return epoch

    @property
    def upper(self) -> int | None:
        """The first epoch for which the owner may still bring rows; None if it never will."""
        return self._vertex.upper

    def begin(self, code: TimeCode, epoch: int, news: Callable[[], None]) -> None:
        """Read as of `epoch`; the first `take` copies the state."""
        assert self._reader is not None and epoch >= self.since
        self._code, self._epoch, self._news = code, epoch, news
        self._reader.set_hold(np.array([self._vertex.word_of(epoch)], np.int64))

    def on_insert(self, rows: Int64s) -> None:
        """Keep the rows until they are taken."""
        self._waiting.append((rows, self._vertex.code.anchor.epoch))
        self.on_frontier()

    def on_frontier(self) -> None:
        """Report that there may be something to take."""
        assert self._news is not None
        self._news()

    def take(self, before: int) -> Taken:
        """Return the next piece of the state; if none is left, all rows that came in since.

        Rows of epochs from `before` on are not returned, and wait for a later call.
        """
        if self._reader is not None:
            self._state, self._state_from = self._vertex.state(self._epoch), self._vertex.code.anchor.epoch
            self._vertex.listen(self)
            self._is_listening = True
            self._let_go()
        if self._state is not None:
            piece, self._state = self._state[:, :_PIECE_ROWS], self._state[:, _PIECE_ROWS:]
            if self._state.shape[1] == 0:
                self._state = None
            pieces = [(piece, self._state_from)] if piece.shape[1] else []
            return self._taken(pieces, None, False, before)
        waiting, self._waiting = self._waiting, []
        return self._taken(waiting, self._vertex.upper, True, before)

    def symbols(self, mark: Mark) -> None:
        """Show the words of the rest of the state, and of rows that were not taken."""
        if self._state is not None:
            mark.words(self._state[:-2])
        for rows, _ in self._waiting:
            mark.words(rows[:-2])

    def close(self) -> None:
        """Read no more."""
        self._let_go()
        if self._is_listening:
            self._is_listening = False
            self._vertex.forget(self)
        self._state = None
        self._waiting.clear()

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _taken(self, parts: list[tuple[Int64s, int]], upper: int | None, is_all: bool, before: int) -> Taken:
        """Return the rows of epochs before `before`; the others wait."""
        batches: list[tuple[int, Batch]] = []
        latest = self._epoch
        for part, first in parts:
            rows = part
            own = (rows[-2] >> self._vertex.code.layout.shifts[0]) + first
            epochs = np.maximum(own, self._epoch)
            last = int(epochs.max())
            if last >= before:
                later = epochs >= before
                self._waiting.append((np.ascontiguousarray(rows[:, later]), first))
                least = int(epochs[later].min())
                upper = least if upper is None else min(upper, least)
                if later.all():
                    continue
                last, rows, own, epochs = before - 1, rows[:, ~later], own[~later], epochs[~later]
            latest = max(latest, last)
            if not self._divides:
                batches.append((int(epochs.min()), self._batch(rows, epochs)))
                continue
            for epoch in np.unique(epochs).tolist():
                which = epochs == epoch
                batch = self._batch(rows[:, which], epochs[which])
                batches.append((epoch, self._logged(batch, own[which] if is_all else own[which] * 0 - 1)))
        return Taken(batches, upper, is_all, latest)

    def _logged(self, batch: UpdateBatch, order: Int64s) -> UpdateBatch:
        """Return a batch as an input has it. `order`: of each row among those of its epoch."""
        del order
        return batch

    def _batch(self, rows: Int64s, epochs: Int64s) -> UpdateBatch:
        """Return rows of these epochs with the columns and words of the importing dataflow."""
        assert self._code is not None
        evolution = self._evolution
        words = np.ascontiguousarray(rows[self._order]) if evolution is None else evolution.rows(rows)
        np.left_shift(epochs - self._code.anchor.epoch, self._code.layout.shifts[0], out=words[-2])
        return UpdateBatch(words, self._schema.symbol_words)
