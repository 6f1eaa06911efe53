"""The changes of one epoch, kept for readers: few as words, many packed (`columns/packed/block.py`).

They are kept until readers forget them. Those of a first load are the whole collection once more.
"""

from __future__ import annotations

import numpy as np

from differential.columns.packed.block import BLOCK_ROWS, Block
from differential.kernels.rows.room import room_for
from differential.thresholds import PACKED_ROWS_MIN
from differential.trace.run import Run
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark

__all__ = ["KeptChanges"]


class KeptChanges:
    """The rows of the changes, at least one, time and diff last, in their order. The array is not changed.

    The rows may be those of a run, which the output's trace holds, too, until it has merged it with others.
    """

    __slots__ = ("_blocks", "_columns", "_run", "_words", "rows")

    def __init__(self, changes: Int64s | Run) -> None:
        self._words: Int64s | None = None
        self._run: Run | None = None
        self._blocks: list[Block] = []
        if isinstance(changes, Run):
            self._columns, self.rows, self._run = changes.ranges.shape[0], changes.rows, changes
            return
        self._columns, self.rows = changes.shape
        if self.rows < PACKED_ROWS_MIN:
            self._words = changes
            return
        for start in range(0, self.rows, BLOCK_ROWS):
            self._blocks.append(Block(np.ascontiguousarray(changes[:, start : start + BLOCK_ROWS])))

    def __deepcopy__(self, memo: dict[int, object]) -> KeptChanges:
        """Itself: it never changes."""
        return self

    def words(self) -> Int64s:
        """Return all rows. Do not write to them: few rows are the array that came."""
        return self.between(0, self.rows) if self._words is None else self._words

    def between(self, first: int, last: int) -> Int64s:
        """Return the rows from `first` to `last`, in an array of their own."""
        if self._words is not None:
            return self._words[:, first:last].copy()
        if self._run is not None:
            return self._run.between(first, last)
        out = room_for(self._columns, last - first)
        for number in range(first // BLOCK_ROWS, -(-last // BLOCK_ROWS)):
            start = number * BLOCK_ROWS
            block = self._blocks[number]
            begin, end = max(first - start, 0), min(last - start, block.rows)
            out[:, start + begin - first : start + end - first] = block.words()[:, begin:end]
        return out

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows."""
        if self._words is not None:
            mark.words(self._words[:-2])
        if self._run is not None:
            self._run.symbols(mark)
        for block in self._blocks:
            block.symbols(mark, range(self._columns - 2))
