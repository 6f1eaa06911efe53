"""Stages that let rows pass: one looks on, one passes them on later, one must never get any."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.rows import Row, decode_rows
from differential.columns.schema import Schema
from differential.columns.update_batch import words_of
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import NotEmptyError, UserFunctionError
from differential.operators.timed.later import LaterVertex
from differential.operators.vertices import ConsolidateVertex, joined_words
from progress.times.anchor import Rebase
from timely.counted import counted
from timely.dictionaries import Mark
from timely.operators.vertex import Vertex
from timely.wire.batch import Batch

__all__ = ["AssertEmptyVertex", "DelayVertex", "Epochs", "InspectVertex", "Look"]


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

    def rebase(self, by: Rebase) -> None:
        """It keeps nothing."""

    def symbols(self, mark: Mark) -> None:
        """None: it keeps nothing."""


_REMEMBERED_MAX = 1_024
_ROWS_SHOWN_MAX = 3


class Epochs:
    """To which epoch each goes: checked to be no earlier, and to keep their order.

    Remembers some thousand epochs, the latest: what a function says of these is compared.
    """

    def __init__(self, function: Callable[[int], object], name: str) -> None:
        self._function = function
        self._name = name
        self._known: dict[int, int] = {}
        self._order: list[int] = []

    def later(self, epoch: int) -> int:
        """The epoch that `epoch` goes to; UserFunctionError if that breaks the law."""
        if epoch in self._known:
            return self._known[epoch]
        found = self._function(epoch)
        if type(found) is not int or found < epoch:
            raise UserFunctionError(
                f"{self._name}: epoch {epoch} goes to {found!r}; it must be a whole number, {epoch} or more"
            )
        place = bisect_left(self._order, epoch)
        before, after = self._order[:place][-1:], self._order[place:][:1]
        for other in (*before, *after):
            if (self._known[other] - found) * (other - epoch) < 0:
                raise UserFunctionError(
                    f"{self._name}: epoch {epoch} goes to {found}, but epoch {other} to "
                    f"{self._known[other]}; later epochs may not come earlier"
                )
        self._known[epoch] = found
        insort(self._order, epoch)
        if len(self._order) > _REMEMBERED_MAX:
            del self._known[self._order.pop(0)]
        return found


class DelayVertex(LaterVertex):
    """Gives rows later epochs; other counters of their times stay."""

    def __init__(self, function: Callable[[int], object], name: str) -> None:
        super().__init__()
        self._epochs = Epochs(function, name)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Rows go on at once, under envelopes as late as they are."""
        del port
        words = joined_words(messages).copy()
        shift = self.code.layout.shifts[0]
        epochs, inverse = np.unique(words[-2] >> shift, return_inverse=True)
        later = np.array([self._later(self.code.anchor.epoch + epoch) for epoch in epochs.tolist()], np.int64)
        words[-2] &= (1 << shift) - 1
        self.send_later(words, later[inverse.reshape(-1)])

    def _later(self, epoch: int) -> int:
        later = self._epochs.later(epoch)
        self.code.pack_wide((later, *[0] * (self.code.shape.coordinates - 1)))  # or it is no epoch
        return later

    def symbols(self, mark: Mark) -> None:
        """Rows of far epochs."""
        super().symbols(mark)


class AssertEmptyVertex(ConsolidateVertex):
    """Raises NotEmptyError at the first complete time at which there is a row.

    What is empty at all times has no change at any: it is enough to look at the changes of each.
    """

    def __init__(self, schema: Schema, what: str) -> None:
        super().__init__(schema.width, schema)
        self._columns = schema
        self._what = what

    def symbols(self, mark: Mark) -> None:
        """Rows that wait."""
        self._machine.symbols(mark)

    def send_rows(self, words: Int64s) -> None:
        """Rows whose times are complete."""
        if words.shape[1] == 0:
            return
        first = words[:, words[-2] == words[-2].min()]
        rows = decode_rows(self._columns, np.ascontiguousarray(first), SYMBOLS)
        shown = [
            f"{dict(zip(self._columns.names, row, strict=True))} {diff:+d}"
            for row, diff in zip(rows, first[-1].tolist(), strict=True)
        ][:_ROWS_SHOWN_MAX]
        more = ", …" if len(rows) > _ROWS_SHOWN_MAX else ""
        time = self.code.unpack(int(first[-2, 0]))
        raise NotEmptyError(
            f"{self._what} does not hold at time {time}: {counted(len(rows), 'row')} changed: "
            f"{', '.join(shown)}{more}"
        )
