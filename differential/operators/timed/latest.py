"""Inputs that keep the last value of each key, and inputs that refuse removals of what is not there.

An upsert input's clients say what the value of a key is, or that it has none. What was said waits until
its epoch is complete; then, key by key, the last that was said counts, and becomes a removal of the value
of before and an insertion of the new one, or nothing if they are the same:

    at every complete epoch e:   the collection at e = for each key the value that was said last at an
                                 epoch ≤ e

The input of a new version of a dataflow *inherits* at first: the changes of the values that the old one
keeps, as they are. When it is told anything itself nothing is inherited any more.

A checked input's clients insert and remove rows. Epoch by epoch, a removal of what is not there is not
made and is put out as a refused row instead:

    there(e) = max(there(e - 1) + said(e), 0)        refused(e) = max(-(there(e - 1) + said(e)), 0)

for each row, with all that is said of it in an epoch taken together. Both keep what they have put out, by
key, at the worker of the key; work is a search for each key that something was said of. Neither is a
function of what its clients have said in sum: they belong where epochs are in one order, at inputs.
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

__all__ = ["INHERITED", "SAID_WORDS", "CheckedMachine", "LatestMachine"]

SAID_WORDS: Final = 3
"""Words behind those of a row that comes to an upsert input: whether there is a value, and its place in
the order (2 words)."""

INHERITED: Final = 2
"""In place of whether there is a value: a change of the current values."""

_NONE: Final = np.empty(0, np.int64)


class LatestMachine(Machine):
    """Rows of key, value, whether there is one, order (2 words), time, diff in; changes of the values out."""

    def __init__(self, kw: int, vw: int, guards: int) -> None:
        self.kw, self.vw = kw, vw
        self.current = Trace(kw, vw, guards)
        self._waiting = WaitingRows(kw + vw + SAID_WORDS + 3, guards)
        self._inherited = WaitingRows(kw + vw + 2, guards)
        self._shape = np.array([kw, vw, guards], np.int64)
        self._changes: Int64s | None = None

    def show_rows(self, show: ShowRow) -> None:
        """How messages show rows of keys and values."""
        self.current.show = show

    def recv(self, port: int, parts: list[Part]) -> None:
        """Let values and deletions wait for their epochs."""
        for words in each_in(parts):
            self._keep(words)

    def _keep(self, words: Int64s) -> None:
        """Lay out what was said so that sorting puts it in order."""
        kw, vw = self.kw, self.vw
        inherited = words[kw + vw] == INHERITED
        if inherited.any():
            rows = words.compress(inherited, 1)
            self._inherited.add(
                np.ascontiguousarray(np.delete(rows, slice(kw + vw, kw + vw + SAID_WORDS), axis=0))
            )
            words = words.compress(~inherited, 1)
        said = np.empty((words.shape[0] + 1, words.shape[1]), np.int64)
        said[:kw] = words[:kw]
        said[kw] = words[-2]
        said[kw + 1 : kw + 3] = words[kw + vw + 1 : kw + vw + 3]
        said[kw + 3] = words[kw + vw]
        said[kw + 4 : -2] = words[kw : kw + vw]
        said[-2:] = words[-2:]
        self._waiting.add(said)

    def advance(self, *frontiers: Int64s) -> None:
        """Find the changes of all epochs that are complete now, sorted and consolidated."""
        (frontier,) = frontiers
        inherited = self._inherited.take_ready(frontier)
        if inherited.shape[1]:  # all of it before the first epoch of which anything is said
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
        """The current values."""
        return [self.current]

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch: of what waits, where the epoch is once more among the words."""
        self._waiting.rebase(by, self.kw)
        self._inherited.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show all words of what was said, of what is inherited, and of the current values."""
        self._waiting.symbols(mark)
        self._inherited.symbols(mark)
        self.current.symbols(mark)

    def needs(self) -> Int64s:
        """Return the epochs at which something may still be sent."""
        return self._inherited.times(self._waiting.times(_NONE))


class CheckedMachine(Machine):
    """Rows in; the same rows and 0, or, for removals that are refused, 1 out."""

    def __init__(self, width: int, guards: int) -> None:
        self.there = Trace(width, 0, guards)
        self._guards = guards
        self._waiting = WaitingRows(width + 2, guards)
        self._changes: Int64s | None = None

    def show_rows(self, show: ShowRow) -> None:
        """How messages show rows."""
        self.there.show = self._waiting.show = show

    def recv(self, port: int, parts: list[Part]) -> None:
        """Let rows wait for their epoch."""
        self._waiting.take_over(parts)

    def advance(self, *frontiers: Int64s) -> None:
        """Find what becomes of the rows of all epochs that are complete now."""
        (frontier,) = frontiers
        ready = self._waiting.take_ready(frontier)
        try:
            changes = possible_changes(ready, self.there.lines, self._guards)
        except OverflowError:
            raise row_overflow([ready, self.there.words()], self.there.show) from None
        made = changes.compress(changes[-3] == 0, 1)
        if made.shape[1]:
            self.there.insert(np.ascontiguousarray(np.delete(made, -3, axis=0)))
        self.there.set_since(frontier)
        self._changes = changes

    def work(self) -> Int64s | None:
        """Return what has become of the rows, all at once."""
        changes, self._changes = self._changes, None
        return changes

    @property
    def traces(self) -> list[Trace]:
        """The rows that are there."""
        return [self.there]

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch: of what waits."""
        self._waiting.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show all words of what was said, and of what is there."""
        self._waiting.symbols(mark)
        self.there.symbols(mark)

    def needs(self) -> Int64s:
        """Return the epochs at which something may still be sent."""
        return self._waiting.times(_NONE)
