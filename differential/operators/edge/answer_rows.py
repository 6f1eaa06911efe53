"""All rows of an output at one moment, for a log: they stay, while the output goes on.

Nothing is summed up here. A fold sums rows anyway, in a process of its own, and summing up takes as long as
all rows together; these are yielded as they lie in runs and arrays, a few thousand at a time. Runs and arrays
never change: the trace makes others in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from differential.columns.packed.block import Block
from differential.columns.schema import Schema
from differential.columns.update_batch import PackedBatch, UpdateBatch
from differential.operators.edge.kept_changes import TEXT_ROWS, KeptChanges
from differential.thresholds import PACKED_ROWS_MIN
from differential.trace.run import Run
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark
from timely.wire.batch import Batch

__all__ = ["AnswerRows", "negated"]

_WORDS = 1 << 16
"""A batch has about so many words: packing them takes a fraction of a millisecond."""


class AnswerRows:
    """Rows that add up to a collection.

    Args:
        schema: of the rows.
        runs, arrays: of all rows, time and diff last.
        later: changes that count the other way round.
    """

    def __init__(
        self, schema: Schema, runs: Sequence[Run], arrays: Sequence[Int64s], later: Sequence[KeptChanges]
    ) -> None:
        self._schema = schema
        self._packed: list[tuple[Run | KeptChanges, bool]] = [(run, False) for run in runs]
        """With each whether its changes count the other way round."""
        self._packed += [(changes, True) for changes in later]
        self._arrays = arrays
        columns = schema.width + 2
        self._rows = TEXT_ROWS if schema.symbol_words else max(1, _WORDS // columns)

    def batches(self) -> Iterator[Batch]:
        """Yield all rows; their times say nothing."""
        for part, is_later in self._packed:
            for first in range(0, part.rows, self._rows):
                words = part.between(first, min(first + self._rows, part.rows))
                yield self._batch(negated(words) if is_later else words)
        for array in self._arrays:
            for first in range(0, array.shape[1], self._rows):
                yield self._batch(array[:, first : first + self._rows])

    def _batch(self, words: Int64s) -> Batch:
        if words.shape[1] < PACKED_ROWS_MIN:
            return UpdateBatch(np.ascontiguousarray(words), self._schema.symbol_words)
        block = Block(np.concatenate([words[:-2], words[-1:]]))
        return PackedBatch((block,), self._schema.width, 0, None, self._schema.symbol_words)

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows."""
        for part, _ in self._packed:
            part.symbols(mark)
        for array in self._arrays:
            mark.words(array[:-2])


def negated(words: Int64s) -> Int64s:
    """Return the rows with opposite multiplicities."""
    other = words.copy()
    np.negative(other[-1], out=other[-1])
    return other
