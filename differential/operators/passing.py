"""Stages that let rows pass: one calls a function for each, one delays them; and stages at which rows and
failures end.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import numpy as np

from differential.columns.rows import Row, decode_rows
from differential.columns.schema import Schema
from differential.columns.update_batch import words_of
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import UserFunctionError
from differential.operators.timed.later import LaterVertex
from differential.operators.vertices import PassingVertex, joined_words
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark
from timely.operators.capture import FOREVER
from timely.operators.failures import FailureLog
from timely.operators.vertex import Vertex
from timely.wire.batch import Batch

__all__ = ["DelayVertex", "Epochs", "FailuresEndVertex", "InspectVertex", "Look", "RowsEndVertex"]


Look = Callable[[Row, tuple[int, ...], int], None]
"""A user's function of an update: row, time, difference."""


class InspectVertex(PassingVertex):
    """Calls a function for each update, and hands the updates on."""

    def __init__(self, schema: Schema, function: Look) -> None:
        super().__init__(schema.width, schema.width)
        self._schema = schema
        self._function = function

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Call the function in order of arrival, not of time; batches go on as they are."""
        del port
        for word, batch in messages:
            self.passed(words_of(batch))
            self.send(0, batch, word)

    def passed(self, words: Int64s) -> Iterable[Int64s]:
        """Call the function for each row."""
        unpack = self.code.unpack
        rows = decode_rows(self._schema, words, SYMBOLS)
        for row, time, diff in zip(rows, words[-2].tolist(), words[-1].tolist(), strict=True):
            self._function(row, unpack(time), diff)
        return (words,)

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it keeps nothing."""


_REMEMBERED_MAX = 1_024
_ROWS_SHOWN_MAX = 3


class Epochs:
    """The epoch to which each epoch is delayed: checked to be no earlier, and to keep their order.

    It compares the answers of the function for the latest 1,024 epochs.
    """

    def __init__(self, function: Callable[[int], object], name: str) -> None:
        self._function = function
        self._name = name
        self._delays: dict[int, int] = {}
        self._order: list[int] = []

    def later(self, epoch: int) -> int:
        """Return the epoch that `epoch` goes to; raise UserFunctionError if that breaks the law."""
        if epoch in self._delays:
            return self._delays[epoch]
        delayed = self._function(epoch)
        if type(delayed) is not int or delayed < epoch:
            raise UserFunctionError(
                f"{self._name}: epoch {epoch} goes to {delayed!r}; it must be a whole number, {epoch} or more"
            )
        place = bisect_left(self._order, epoch)
        before, after = self._order[:place][-1:], self._order[place:][:1]
        for other in (*before, *after):
            if (self._delays[other] - delayed) * (other - epoch) < 0:
                raise UserFunctionError(
                    f"{self._name}: epoch {epoch} goes to {delayed}, but epoch {other} to "
                    f"{self._delays[other]}; later epochs may not come earlier"
                )
        self._delays[epoch] = delayed
        insort(self._order, epoch)
        if len(self._order) > _REMEMBERED_MAX:
            del self._delays[self._order.pop(0)]
        return delayed


class DelayVertex(LaterVertex):
    """Gives rows later epochs; other counters of their times stay."""

    def __init__(self, function: Callable[[int], object], name: str) -> None:
        super().__init__()
        self._epochs = Epochs(function, name)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Send rows on at once, under envelopes as late as they are."""
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
        """Show the words of rows of far epochs."""
        super().symbols(mark)


class FailuresEndVertex(Vertex):
    """Ends the dataflow at the first complete epoch at which something has failed; for dataflows without
    outputs, where nobody could read the failure.
    """

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True

    def __init__(self, failures: FailureLog) -> None:
        self._failures = failures

    def on_start(self) -> None:
        """Let the log learn the form of times."""
        self._failures.start(self.code)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Let failures wait for the end of their epoch."""
        del port
        for _, batch in messages:
            self._failures.add(batch)

    def on_frontier(self) -> None:
        """Tell the log that epochs before the frontier are complete."""
        frontier = self.frontier_words(0)
        self._failures.complete(self.code.epoch_of(int(frontier.min())) if len(frontier) else FOREVER)

    def rebase(self, by: Rebase) -> None:
        """Move the times of failures that wait."""
        self._failures.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the words of failures."""
        self._failures.symbols(mark)


class RowsEndVertex(PassingVertex):
    """Takes rows of `words` words that nobody reads: they are there only for a claim about them."""

    def __init__(self, words: int) -> None:
        super().__init__(words, 0)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Drop the rows."""

    def passed(self, words: Int64s) -> Iterable[Int64s]:
        """Return nothing."""
        return ()

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it keeps nothing."""
