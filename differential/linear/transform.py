"""A chain of linear operators as what a connector runs.

If the chain only moves words, `projection` says how, and the stage in front may write its rows in that layout
at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from differential.columns.packed.block import Block
from differential.expressions.projection import Projection
from differential.linear.chain import LinearChain
from differential.linear.short import Short, short_of
from timely.wire.batch import Batch

from ..columns.update_batch import PackedBatch, UpdateBatch, words_of
from ..columns.worker_symbols import SYMBOLS

__all__ = ["LinearTransform"]


class LinearTransform:
    """Update batch in, update batch or nothing out."""

    def __init__(self, chain: LinearChain) -> None:
        self._function = chain.compile(SYMBOLS)
        self._symbol_words = chain.schema_out.symbol_words
        self._accumulation = chain.as_accumulation(SYMBOLS)
        self.projection: Projection | None = chain.as_projection(SYMBOLS)
        self.short: Short | None = short_of(chain.steps, chain.schema_in, SYMBOLS)
        """The same for kernels, if there is such a form."""

    @classmethod
    def of(cls, chain: LinearChain) -> LinearTransform | None:
        """The transform of `chain`; None if the chain changes nothing."""
        projection = chain.as_projection(SYMBOLS)
        if projection is not None and projection.is_identity(chain.schema_in.width):
            return None
        return cls(chain)

    def __call__(self, batch: Batch) -> Batch | None:
        """The rows of `batch` after the chain. Many that are packed, and only moved, stay packed; what very
        many add up to is packed, too.
        """
        if isinstance(batch, PackedBatch) and (moves := self.projection) is not None:
            moved = batch.projected(moves.sources, moves.constants, moves.sign, self._symbol_words)
            if moved is not None:
                return moved
        if isinstance(batch, PackedBatch) and self._accumulation is not None:
            moves, step = self._accumulation
            # Symbols are said of what comes out.
            going = batch.projected(moves.sources, moves.constants, moves.sign, ())
            made = None if going is None else step.packed(going.packed())
            if made is not None:
                return self._as_packed(made, batch)
        words = self._function(words_of(batch))
        return None if words is None else UpdateBatch(words, self._symbol_words)

    def _as_packed(self, blocks: Sequence[Block], batch: PackedBatch) -> PackedBatch | None:
        """Rows with time and diff, of the time of `batch`, in which they are still."""
        if not blocks:
            return None
        width = blocks[0].columns - 2
        sources = [*range(width), width + 1]
        kept = tuple(block.with_columns(sources, [0] * len(sources)) for block in blocks)
        return PackedBatch(kept, width, batch.only_time(), None, self._symbol_words, batch.moved)
