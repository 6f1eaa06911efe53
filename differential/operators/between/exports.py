"""Export: keep a collection by key, for other dataflows to read from its present state on.

Rows are kept as in any arrangement. A hold of the export's own stays one epoch behind the frontier. So the
last complete state can always be read, and earlier states may be forgotten: the trace costs the collection
and not its history.

An import takes a reader of the trace, and becomes a *listener* when it begins. The export calls it with every
insert, and when the frontier has moved. It hands an insert on in the activation that makes it, so a listener
that looks at the frontier has all rows that the frontier has passed.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from differential.columns.overflow import row_overflow
from differential.columns.schema import Schema
from differential.kernels.rows.sort import sort_consolidate
from differential.operators.arrange import ArrangeVertex
from differential.trace.readers import Reader
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark

__all__ = ["ExportVertex", "Listener"]


class Listener(Protocol):
    """An import that has begun."""

    def on_insert(self, rows: Int64s) -> None:
        """Take rows that came in. Do not write to the array."""
        ...

    def on_frontier(self) -> None:
        """Learn that more epochs may be complete than before."""
        ...


class ExportVertex(ArrangeVertex):
    """Keeps rows of `schema`, whose first columns are `keys`, at the root of its dataflow."""

    wants_frontier: ClassVar[bool] = True

    def __init__(self, schema: Schema, keys: tuple[str, ...]) -> None:
        key_words = sum(schema[key].words for key in keys)
        super().__init__(key_words, schema.width - key_words, schema)
        self.schema = schema
        self.keys = keys
        self._listeners: list[Listener] = []
        self._importing: list[Reader] = []
        self._first: int | None = None

    def on_start(self) -> None:
        """Make the trace, and the hold of the export's own."""
        super().on_start()
        self._own = self._trace.read("the export itself", by_position=False)

    def insert(self, rows: Int64s, envelope: int) -> None:
        """Keep rows, and hand them to all readers and listeners."""
        super().insert(rows, envelope)
        for listener in self._listeners:
            listener.on_insert(rows)

    def on_frontier(self) -> None:
        """Let earlier states be forgotten, and listeners go on: more epochs are complete."""
        self._move_hold()
        for listener in self._listeners:
            listener.on_frontier()

    def first_asked(self) -> int | None:
        """Return the earliest epoch at which an import is going to begin to read; None if none is."""
        self._importing = [reader for reader in self._importing if not reader.is_done]
        return min((self._epoch(int(reader.hold[0])) for reader in self._importing), default=None)

    def symbols(self, mark: Mark) -> None:
        """Show the words that it keeps for readers."""
        self._trace.symbols(mark)

    @property
    def upper(self) -> int | None:
        """The first epoch for which rows may still come in here; None if no rows will ever come."""
        frontier = self.frontier_words(0)
        return self._epoch(int(frontier[0])) if len(frontier) else None

    @property
    def since(self) -> int:
        """The earliest epoch at which an import can begin to read."""
        self._move_hold()
        return self._epoch(int(self._own.hold[0]))

    def read(self, name: str) -> Reader:
        """Return a reader that holds `since`, whatever the owner's own readers hold. The caller closes it."""
        self._move_hold()
        reader = self._trace.read(name, by_position=False, hold=self._own.hold)
        self._importing.append(reader)
        return reader

    def state(self, epoch: int) -> Int64s:
        """Return a copy of all rows inserted so far, as they look from `epoch` on, consolidated.

        Earlier rows have the time of `epoch`, or of the last epoch that has a word. Requires: a reader holds
        `epoch`. Cost: a sort of the rows.
        """
        words = self._trace.words()
        # At the root times are epochs, one after the other, and so are their words.
        np.maximum(words[-2], self.word_of(epoch), out=words[-2])
        try:
            return sort_consolidate(words)
        except OverflowError:
            raise row_overflow([words], self._trace.show) from None

    def word_of(self, epoch: int) -> int:
        """Return the word of an epoch, or of the last epoch that has a word."""
        return self.code.within(self.code.pack_wide((epoch,)))

    def listen(self, listener: Listener) -> None:
        """Hand every insert from now on to `listener`."""
        self._listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        """Hand nothing to `listener` any more."""
        self._listeners.remove(listener)

    def counters(self) -> dict[str, int]:
        """Return the number of rows and bytes, and of the dataflows that read them."""
        return {**super().counters(), "importers": len(self._listeners)}

    def _move_hold(self) -> None:
        upper = self.upper
        if upper is None:
            # No rows come any more: readers can ask about the last state only.
            times = self._trace.words()[-2]
            hold = int(times.max()) if len(times) else int(self._own.hold[0])
        else:
            # There is nothing to read before the epoch with which the dataflow began.
            self._first = upper if self._first is None else self._first
            # An epoch before the anchor that nobody has asked about is as good as the anchor.
            hold = self.code.pack((max(upper - 1, self._first, self.code.anchor.epoch),))
        if hold > int(self._own.hold[0]):
            self._own.set_hold(np.array([hold], np.int64))

    def _epoch(self, word: int) -> int:
        (epoch,) = self.code.unpack(word)
        return epoch
