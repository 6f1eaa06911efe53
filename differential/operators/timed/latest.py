"""Inputs that keep the last value of each key, and inputs that refuse removals of what is not there.

The entries of an upsert input set the value of a key, or delete it. They wait until their epoch is
complete. Then, key by key, the last entry counts: it becomes a removal of the old value and an insertion of
the new one, or nothing if these are the same:

    at every complete epoch e:   the collection at e = for each key the value of the last entry at an
                                 epoch ≤ e

The input of a new version of a dataflow *inherits* at first: the changes of the values that the old one
keeps, as they are. When it gets an entry of its own it inherits nothing any more.

A checked input's clients insert and remove rows. Epoch by epoch, a removal of a row that is not there is not
made, and goes out as a refused row instead:

    there(e) = max(there(e - 1) + sum(e), 0)        refused(e) = max(-(there(e - 1) + sum(e)), 0)

for each row, where sum(e) is the sum of its changes in epoch e. Both machines keep the rows that they have
put out, by key, at the worker of the key; the work is a search for each key with an entry or a change.
Neither output is a function of the sum of all changes: these machines belong where epochs are in one order,
at inputs.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.overflow import ShowRow, row_overflow
from differential.columns.packed.parts import Part, each_in
from differential.kernels.history.epochs import latest_changes, possible_changes
from differential.kernels.rows.sort import sort_consolidate
from differential.operators.machine import Machine
from differential.operators.waiting.waiting_rows import WaitingRows
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

__all__ = ["ENTRY_WORDS", "INHERITED", "CheckedMachine", "LatestMachine"]

ENTRY_WORDS: Final = 3
"""Words of an entry behind those of the row: whether there is a value, and the order (2 words)."""

INHERITED: Final = 2
"""In place of whether there is a value: the entry is a change of the current values."""

_NONE: Final = np.empty(0, np.int64)


class LatestMachine(Machine):
    """Takes entries: key, value, whether there is one, order (2 words), time, diff. Returns changes of
    values.
    """

    def __init__(self, kw: int, vw: int, guards: int) -> None:
        self.kw, self.vw = kw, vw
        self.current = Trace(kw, vw, guards)
        self._waiting = WaitingRows(kw + vw + ENTRY_WORDS + 3, guards)
        self._inherited = WaitingRows(kw + vw + 2, guards)
        self._shape = np.array([kw, vw, guards], np.int64)
        self._changes: Int64s | None = None

    def show_rows(self, show: ShowRow) -> None:
        """Set how messages show rows of keys and values."""
        self.current.show = show

    def recv(self, port: int, parts: list[Part]) -> None:
        """Let entries wait for their epochs."""
        for words in each_in(parts):
            self._keep(words)

    def _keep(self, words: Int64s) -> None:
        """Lay entries out so that sorting puts them in their order, and let them wait."""
        kw, vw = self.kw, self.vw
        inherited = words[kw + vw] == INHERITED
        if inherited.any():
            rows = words.compress(inherited, 1)
            self._inherited.add(
                np.ascontiguousarray(np.delete(rows, slice(kw + vw, kw + vw + ENTRY_WORDS), axis=0))
            )
            words = words.compress(~inherited, 1)
        entries = np.empty((words.shape[0] + 1, words.shape[1]), np.int64)
        entries[:kw] = words[:kw]
        entries[kw] = words[-2]
        entries[kw + 1 : kw + 3] = words[kw + vw + 1 : kw + vw + 3]
        entries[kw + 3] = words[kw + vw]
        entries[kw + 4 : -2] = words[kw : kw + vw]
        entries[-2:] = words[-2:]
        self._waiting.add(entries)

    def advance(self, *frontiers: Int64s) -> None:
        """Let `work` return the changes of all epochs that are complete now, sorted and consolidated."""
        (frontier,) = frontiers
        inherited = self._inherited.take_ready(frontier)
        if inherited.shape[1]:  # all of an epoch before that of the first entry
            self.current.insert(inherited)
        ready = self._waiting.take_ready(frontier)
        changes = latest_changes(ready, self.current.lines, self._shape)
        if changes.shape[1]:
            changes = sort_consolidate(changes)
            self.current.insert(changes)
        self.current.set_since(frontier)
        if inherited.shape[1]:
            changes = sort_consolidate(np.concatenate([inherited, changes], axis=1))
        self._changes = changes

    def work(self) -> Int64s | None:
        """Return the changes, all at once."""
        changes, self._changes = self._changes, None
        return changes

    @property
    def traces(self) -> list[Trace]:
        """The trace of the current values."""
        return [self.current]

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch. Entries that wait have their time once more among their words."""
        self._waiting.rebase(by, self.kw)
        self._inherited.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show all words of entries, of inherited changes, and of the current values."""
        self._waiting.symbols(mark)
        self._inherited.symbols(mark)
        self.current.symbols(mark)

    def needs(self) -> Int64s:
        """Return the epochs at which something may still be sent."""
        return self._inherited.times(self._waiting.times(_NONE))


class CheckedMachine(Machine):
    """Takes rows. Returns the same rows with one word more: 0, or 1 for a removal that is refused."""

    def __init__(self, width: int, guards: int) -> None:
        self.there = Trace(width, 0, guards)
        self._guards = guards
        self._waiting = WaitingRows(width + 2, guards)
        self._changes: Int64s | None = None

    def show_rows(self, show: ShowRow) -> None:
        """Set how messages show rows."""
        self.there.show = self._waiting.show = show

    def recv(self, port: int, parts: list[Part]) -> None:
        """Let rows wait for their epoch."""
        self._waiting.take_over(parts)

    def advance(self, *frontiers: Int64s) -> None:
        """Let `work` return the rows of all epochs that are complete now, made or refused."""
        (frontier,) = frontiers
        ready = self._waiting.take_ready(frontier)
        try:
            changes = possible_changes(ready, self.there.lines, self._guards)
        except OverflowError:
            raise row_overflow([ready, self.there.words()], self.there.show) from None
        accepted = changes.compress(changes[-3] == 0, 1)
        if accepted.shape[1]:
            self.there.insert(np.ascontiguousarray(np.delete(accepted, -3, axis=0)))
        self.there.set_since(frontier)
        self._changes = changes

    def work(self) -> Int64s | None:
        """Return the rows, made or refused, all at once."""
        changes, self._changes = self._changes, None
        return changes

    @property
    def traces(self) -> list[Trace]:
        """The trace of the rows that are there."""
        return [self.there]

    def rebase(self, by: Rebase) -> None:
        """Count words of rows that wait from a later epoch."""
        self._waiting.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show all words of rows that wait, and of rows that are there."""
        self._waiting.symbols(mark)
        self.there.symbols(mark)

    def needs(self) -> Int64s:
        """Return the epochs at which something may still be sent."""
        return self._waiting.times(_NONE)
