"""Looking at updates as they pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from differential.columns.rows import Row, decode_rows
from differential.columns.schema import Schema
from differential.columns.update_batch import words_of
from differential.columns.worker_symbols import SYMBOLS
from timely.operators.vertex import Vertex
from timely.wire.batch import Batch

__all__ = ["InspectVertex", "Look"]


Look = Callable[[Row, tuple[int, ...], int], None]
"""What a user does with an update: row, time, difference."""


class InspectVertex(Vertex):
    """Calls a function for each update, and hands the updates on."""

    word_times: ClassVar[bool] = True

    def __init__(self, schema: Schema, function: Look) -> None:
        self._schema = schema
        self._function = function

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """In order of arrival, not of time."""
        del port
        unpack = self.code.unpack
        for word, batch in messages:
            words = words_of(batch)
            rows = decode_rows(self._schema, words, SYMBOLS)
            for row, time, diff in zip(rows, words[-2].tolist(), words[-1].tolist(), strict=True):
                self._function(row, unpack(time), diff)
            self.send(0, batch, word)
