"""Import: a collection of another dataflow, from its present state on.

The rows are copied. First comes the state as of the epoch at which all imports of a dataflow begin, on all
workers, in pieces; then every insert as it is made. A row of before that epoch counts as one of it, so what
is accumulated at any epoch from there on is what the owner has accumulated.

The columns are put into the order in which the importing dataflow has declared them, and times into its
words: their layout depends on how deep its loops are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.errors import SchemaError
from differential.operators.between.exports import ExportVertex
from differential.trace.readers import Reader
from progress.arrays import Int64s
from progress.times.time_words import TimeCode
from timely.dictionaries import Mark
from timely.errors import MisuseError
from timely.operators.imported import Exported, Taken

__all__ = ["CopiedImport", "TableImport"]

_PIECE_ROWS: Final = 65_536
"""Rows of the state that enter at once: others have their turn in between."""


@dataclass(frozen=True)
class TableImport:
    """Reads a collection that has the columns of `schema`, in whatever order."""

    schema: Schema

    def describe(self) -> str:
        """The columns."""
        return f"table ({self.schema})"

    def open(self, exported: Exported, reader: str) -> CopiedImport:
        """Begin to read; SchemaError if the columns are others."""
        return CopiedImport(self.schema, self.checked(exported, reader), reader)

    def checked(self, exported: Exported, reader: str) -> ExportVertex:
        """What keeps the collection; SchemaError if its columns are others."""
        vertex = exported.vertex
        if not isinstance(vertex, ExportVertex):
            raise MisuseError(f"{exported.title()} is no collection")
        if sorted(map(str, vertex.schema)) != sorted(map(str, self.schema)):
            raise SchemaError(
                f"{exported.title()} has the columns ({vertex.schema}), which is not what {reader} wants to "
                f"import: ({self.schema}). Declare the same names and types"
            )
        return vertex


class CopiedImport:
    """One import on one worker; see `timely.operators.imported`."""

    def __init__(self, schema: Schema, vertex: ExportVertex, reader: str) -> None:
        self._schema = schema
        self._vertex = vertex
        width = schema.width
        self._order = [
            *(word for column in schema for word in vertex.schema.words_of(column.name)),
            width,
            width + 1,
        ]
        self._reader: Reader | None = vertex.read(reader)
        self._epoch = 0
        self._code: TimeCode | None = None
        self._news: Callable[[], None] | None = None
        self._is_listening = False
        self._state: Int64s | None = None
        self._waiting: list[Int64s] = []

    @property
    def since(self) -> int:
        """The first epoch as of which one can read."""
        assert self._reader is not None
        (epoch,) = self._vertex.code.unpack(int(self._reader.hold[0]))
        return epoch

    @property
    def upper(self) -> int | None:
        """The first epoch of which the owner may still bring something; None if it never will."""
        return self._vertex.upper

    def begin(self, code: TimeCode, epoch: int, news: Callable[[], None]) -> None:
        """Read as of `epoch`; what came before is copied at the first `take`."""
        assert self._reader is not None and epoch >= self.since
        self._code, self._epoch, self._news = code, epoch, news
        self._reader.set_hold(np.array([self._vertex.code.pack((epoch,))], np.int64))

    def on_insert(self, rows: Int64s) -> None:
        """Keep what came in until it is taken."""
        self._waiting.append(rows)
        self.on_frontier()

    def on_frontier(self) -> None:
        """There may be something to take."""
        assert self._news is not None
        self._news()

    def take(self) -> Taken:
        """The next piece of the state; when there is none, all that came in since."""
        if self._reader is not None:
            self._state = self._vertex.state(self._epoch)
            self._vertex.listen(self)
            self._is_listening = True
            self._let_go()
        if self._state is not None:
            piece, self._state = self._state[:, :_PIECE_ROWS], self._state[:, _PIECE_ROWS:]
            if self._state.shape[1] == 0:
                self._state = None
            return self._taken([piece] if piece.shape[1] else [], None, is_all=False)
        waiting, self._waiting = self._waiting, []
        return self._taken(waiting, self._vertex.upper, is_all=True)

    def symbols(self, mark: Mark) -> None:
        """What is left of the state, and what came in since and was not taken."""
        if self._state is not None:
            mark.words(self._state[:-2])
        for rows in self._waiting:
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

    def _taken(self, parts: list[Int64s], upper: int | None, is_all: bool) -> Taken:
        last = max((self._vertex.code.unpack(int(rows[-2].max()))[0] for rows in parts), default=-1)
        return Taken([self._batch(rows) for rows in parts], upper, is_all, max(last, self._epoch))

    def _batch(self, rows: Int64s) -> tuple[int, UpdateBatch]:
        """Rows as the importing dataflow has them, and the first of their epochs."""
        assert self._code is not None
        words = np.ascontiguousarray(rows[self._order])
        times, theirs, ours = words[-2], self._vertex.code, self._code
        np.maximum(times, theirs.pack((self._epoch,)), out=times)
        first, last = (theirs.unpack(int(time))[0] for time in (times.min(), times.max()))
        if theirs.layout != ours.layout:
            ours.pack((last,))  # or there are more epochs than its words hold
            times >>= theirs.layout.shifts[0]
            times <<= ours.layout.shifts[0]
        return first, UpdateBatch(words, self._schema.symbol_words)
