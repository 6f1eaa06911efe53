"""The changes of one epoch, kept for readers: few as words, many packed (`columns/packed/block.py`).

They are kept until readers forget them. Those of a first load are the whole collection once more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from differential.columns.packed.block import BLOCK_ROWS, Block
from differential.columns.schema import Schema
from differential.columns.update_batch import PackedBatch, UpdateBatch
from differential.kernels.rows.room import room_for
from differential.thresholds import PACKED_ROWS_MIN, SET_TIMES_MAX
from differential.trace.run import Run
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark
from timely.wire.batch import Batch

__all__ = ["TEXT_ROWS", "KeptChanges", "by_time"]

TEXT_ROWS = 256
"""A batch of rows with texts has so many: each text that a log does not have yet takes 6 µs."""


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

    @property
    def size_bytes(self) -> int:
        """The bytes of the rows."""
        if self._run is not None:
            return int(self._run.bytes)
        return sum(block.bytes for block in self._blocks) if self._words is None else int(self._words.nbytes)

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

    def batches(self, schema: Schema) -> Iterator[Batch]:
        """Yield the rows as batches, whose times say nothing; many are packed, one block at a time, and fewer
        if they have texts.
        """
        if self.rows < PACKED_ROWS_MIN:
            yield UpdateBatch(np.ascontiguousarray(self.words()), schema.symbol_words)
            return
        rows = TEXT_ROWS if schema.symbol_words else BLOCK_ROWS
        for start in range(0, self.rows, rows):
            words = self.between(start, min(start + rows, self.rows))
            block = Block(np.ascontiguousarray(np.concatenate([words[:-2], words[-1:]])))
            yield PackedBatch((block,), self._columns - 2, 0, None, schema.symbol_words)

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows."""
        if self._words is not None:
            mark.words(self._words[:-2])
        if self._run is not None:
            self._run.symbols(mark)
        for block in self._blocks:
            block.symbols(mark, range(self._columns - 2))


def by_time(words: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Yield the rows of each time, times ascending, rows in their order. Cost: one sort, however many times
    there are.
    """
    times = words[-2]
    # Fast path: for few rows Python is done before numpy begins.
    different = len(set(times.tolist())) if times.shape[0] <= SET_TIMES_MAX else 0
    if different == 1 or (different == 0 and (times == times[0]).all()):
        yield int(times[0]), words
        return
    order = np.argsort(times, kind="stable")
    ordered = np.ascontiguousarray(words[:, order])
    starts = np.flatnonzero(np.diff(ordered[-2], prepend=ordered[-2, 0] - 1)).tolist()
    for start, stop in zip(starts, [*starts[1:], ordered.shape[1]], strict=True):
        yield int(ordered[-2, start]), np.ascontiguousarray(ordered[:, start:stop])
