"""Few rows of several calls or epochs that enter as one batch.

Each batch is a message, and each message costs the same whether it has one row or a thousand: to send, to
take, to count. If rows have times of their own, those of several epochs may go together; their envelope is at
the first of these until they arrive. So do the rows of one epoch that several calls have brought, as one that
removes and one that inserts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...wire.batch import Batch, Timed

__all__ = ["ENTERING_BATCH_ROWS", "Together"]

ENTERING_BATCH_ROWS: Final = 4_096
"""The size of a batch of several calls or epochs; more rows go in several batches, so that the first epochs
do not wait for the last."""


class Together:
    """The batches that enter next, in order, by `let_in`, which takes a batch and the word of its envelope.

    Law: the caller flushes before it gives up the right to enter at any of these epochs.
    """

    __slots__ = ("_batches", "_first", "_let_in", "_rows")

    def __init__(self, let_in: Callable[[Batch, int], None]) -> None:
        self._let_in = let_in
        self._batches: list[Timed] = []
        self._first = self._rows = 0

    def add(self, batch: Batch, word: int) -> None:
        """Let a batch of one epoch enter, now or with others. Requires: no word is less than one before."""
        rows = batch.rows
        if not isinstance(batch, Timed) or rows > ENTERING_BATCH_ROWS:
            self.flush()
            self._let_in(batch, word)
            return
        if self._rows + rows > ENTERING_BATCH_ROWS:
            self.flush()
        if not self._batches:
            self._first = word
        self._batches.append(batch)
        self._rows += rows

    def flush(self) -> None:
        """Let all batches enter that wait here."""
        if self._batches:
            first, *others = self._batches
            self._batches, self._rows = [], 0
            self._let_in(first.with_others(others), self._first)
