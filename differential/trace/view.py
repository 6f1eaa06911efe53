"""A reader's view of a trace at one moment, retained for later work.

A reader's view is the first lines of the trace's table, and costs nothing as long as it is used before an
insert or a merge: within one activation. An operator that goes on in a later activation *pins* the view.
Pinning copies the lines, and the head, which changes in place; runs and pieces of the tail are immutable, and
are shared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from differential.kernels.rows.memory import HEADER, describe_words
from differential.kernels.rows.sort import sort_consolidate
from differential.trace.run import Run
from differential.trace.tail import TailPiece
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark


class View:
    """A pinned view: `table`, and the memory that its lines name."""

    __slots__ = ("__weakref__", "_head", "_pieces", "_runs", "table")

    def __init__(self, lines: Int64s, runs: Sequence[Run], head: Int64s, pieces: Sequence[TailPiece]) -> None:
        """`lines` are those of `runs`, of the head, whose words are `head`, and of `pieces`."""
        assert len(lines) == len(runs) + 1 + len(pieces)
        assert lines.shape[1] == HEADER + 3 * head.shape[0]
        self.table = lines.copy()
        self._runs = tuple(runs)
        self._head = head.copy()
        self._pieces = tuple(pieces)
        if head.shape[1]:
            describe_words(self._head, head.shape[1], self.table, len(runs))

    def __deepcopy__(self, memo: dict[int, object]) -> View:
        """Return the view itself: it never changes."""
        return self

    def rebased(self, by: Rebase, guards: int) -> View:
        """Return the view with words that count from a later epoch, as one run. Cost: a sort of all rows.

        Raises OverflowError if a multiplicity leaves 64 bits.
        """
        parts = [*(run.words() for run in self._runs), self._head, *(piece.words for piece in self._pieces)]
        words = np.ascontiguousarray(np.concatenate(parts, axis=1))
        words[-2] = by.early(words[-2])
        words = sort_consolidate(words)
        runs = [Run.from_words(words, guards)] if words.shape[1] else []
        lines = np.zeros((len(runs) + 1, self.table.shape[1]), np.int64)
        for number, run in enumerate(runs):
            lines[number] = run.line
        return View(lines, runs, np.empty((words.shape[0], 0), np.int64), ())

    def symbols(self, mark: Mark) -> None:
        """Mark all words of keys and values."""
        for run in self._runs:
            run.symbols(mark)
        mark.words(self._head[:-2])
        for piece in self._pieces:
            mark.words(piece.words[:-2])

    def bytes_besides(self, counted: set[int]) -> int:
        """Return the memory that it holds, without runs and pieces whose `id` is in `counted`.

        Add the ids of the other runs and pieces to `counted`.
        """
        held = self._head.nbytes
        for part, size in (
            *((run, run.bytes) for run in self._runs),
            *((piece, piece.words.nbytes) for piece in self._pieces),
        ):
            if id(part) not in counted:
                counted.add(id(part))
                held += size
        return held
