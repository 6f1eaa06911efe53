"""Export: keep a collection by key, for other dataflows to read from its present state on.

Rows are kept as in any arrangement. A hold of the export's own stays one epoch behind the frontier: the last
complete state can always be read, and what was before it may be forgotten, so that the trace costs the
collection and not its history.

Who imports takes a reader of the trace, and becomes a *listener* when it begins: it is handed every insert,
and hears when the frontier has moved. An insert is handed on in the activation that makes it, so that whoever
looks at the frontier has been given all rows that it has passed.
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
    """Somebody who imports, once it has begun."""

    def on_insert(self, rows: Int64s) -> None:
        """Rows that came in; nobody may write to the array."""
        ...

    def on_frontier(self) -> None:
        """Perhaps more is complete than before."""
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
        """The trace, and the hold of the export's own."""
        super().on_start()
        self._own = self._trace.read("the export itself", by_position=False)

    def insert(self, rows: Int64s, envelope: int) -> None:
        """Keep rows, and tell all who read."""
        super().insert(rows, envelope)
        for listener in self._listeners:
            listener.on_insert(rows)

    def on_frontier(self) -> None:
        """More is complete: what was before may be forgotten, and who reads may go on."""
        self._move_hold()
        for listener in self._listeners:
            listener.on_frontier()

    def first_asked(self) -> int | None:
        """The first epoch as of which somebody is going to read."""
        self._importing = [reader for reader in self._importing if not reader.is_done]
        return min((self._epoch(int(reader.hold[0])) for reader in self._importing), default=None)

    def symbols(self, mark: Mark) -> None:
        """What it keeps for those who read."""
        self._trace.symbols(mark)

    @property
    def upper(self) -> int | None:
        """The first epoch of which rows may still come in here; None if none will ever."""
        frontier = self.frontier(0)
        return self._epoch(int(frontier[0])) if len(frontier) else None

    @property
    def since(self) -> int:
        """The first epoch as of which one can begin to read."""
        self._move_hold()
        return self._epoch(int(self._own.hold[0]))

    def read(self, name: str) -> Reader:
        """A reader that holds `since`, whatever the owner's own readers hold; to be closed by who asks."""
        self._move_hold()
        reader = self._trace.read(name, by_position=False, hold=self._own.hold)
        self._importing.append(reader)
        return reader

    def state(self, epoch: int) -> Int64s:
        """What was put in so far, as it looks from `epoch` on, consolidated; a copy.

        Rows of before have the time of `epoch`, or of the last epoch that there are words of. Requires: a
        reader holds it. Cost: a sort of them.
        """
        words = self._trace.words()
        # At the root times are epochs, one after the other, and so are their words.
        np.maximum(words[-2], self.word_of(epoch), out=words[-2])
        try:
            return sort_consolidate(words)
        except OverflowError:
            raise row_overflow([words], self._trace.show) from None

    def word_of(self, epoch: int) -> int:
        """The word of an epoch, or of the last one that there are words of."""
        return self.code.within(self.code.pack_wide((epoch,)))

    def listen(self, listener: Listener) -> None:
        """Hand every insert from now on to `listener`."""
        self._listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        """Hand it nothing any more."""
        self._listeners.remove(listener)

    def counters(self) -> dict[str, int]:
        """Rows, bytes, and how many dataflows read them."""
        return {**super().counters(), "importers": len(self._listeners)}

    def _move_hold(self) -> None:
        upper = self.upper
        if upper is None:
            # Nothing comes any more: what is last is all that can be asked about.
            times = self._trace.words()[-2]
            hold = int(times.max()) if len(times) else int(self._own.hold[0])
        else:
            # Before the epoch with which the dataflow began there is nothing to be read.
            self._first = upper if self._first is None else self._first
            # One that nobody has asked about before the words moved on is as good as the next one.
            hold = self.code.pack((max(upper - 1, self._first, self.code.anchor.epoch),))
        if hold > int(self._own.hold[0]):
            self._own.set_hold(np.array([hold], np.int64))

    def _epoch(self, word: int) -> int:
        (epoch,) = self.code.unpack(word)
        return epoch
