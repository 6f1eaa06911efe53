"""Rows that wait for their epoch, packed.

An inserted table becomes pieces, and each piece enters the dataflow as one batch. A piece is made block by
block (`columns/packed/block.py`): a block's words are packed before the next ones take their place. So the
whole table never exists as words. Time and diff take no memory: the time is not known yet, and the diff is
mostly the same in all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from differential.columns.packed.block import BLOCK_ROWS, Block
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.columns.update_batch import PackedBatch
from differential.expressions.projection import TRAILING_WORDS
from differential.kernels.rows.room import room_for
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark
from timely.operators.inputs.folded import Folded

__all__ = ["PIECE_WORDS", "FoldedRows", "folded"]

PIECE_WORDS: Final = 1 << 23
"""Words of a piece, 64 MiB if a stage unpacks them all at once; sorting them takes half as much again.
Smaller pieces cost more merging than they save."""


class FoldedRows(Folded):
    """One piece: rows of `width` words."""

    __slots__ = ("_blocks", "_diff", "_rows", "_symbol_words", "_width")

    def __init__(
        self, blocks: Sequence[Block], width: int, diff: int | None, symbol_words: tuple[int, ...]
    ) -> None:
        """`blocks`: rows without their time, and without their diff if `diff` is that of all rows."""
        self._blocks = tuple(blocks)
        self._width = width
        self._diff = diff
        self._symbol_words = symbol_words
        self._rows = sum(block.rows for block in blocks)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    @property
    def size_bytes(self) -> int:
        """The memory that they take."""
        return sum(block.bytes for block in self._blocks)

    def unfolded(self, word: int) -> PackedBatch:
        """Return the rows as a batch at the time `word`."""
        return PackedBatch(self._blocks, self._width, word, self._diff, self._symbol_words)

    def with_next(self, other: Folded) -> FoldedRows | None:
        """Return one piece with the rows of both, mostly parts of one insertion; None if it would be too
        large, or their diffs differ.
        """
        assert isinstance(other, FoldedRows) and other._width == self._width, "rows of one input"
        if (
            self._diff != other._diff
            or (self._rows + other._rows) * (self._width + TRAILING_WORDS) > PIECE_WORDS
        ):
            return None
        return FoldedRows((*self._blocks, *other._blocks), self._width, self._diff, self._symbol_words)

    def symbols(self, mark: Mark) -> None:
        """Show all words of the columns that have symbols."""
        for block in self._blocks:
            block.symbols(mark, self._symbol_words)


def folded(
    schema: Schema, table: pa.Table, diff: int | Int64s, symbols: SymbolTable, input_name: str
) -> Iterator[FoldedRows]:
    """Yield the rows of `table`, each `diff` times, in pieces. Raises SchemaError before the first of them,
    as `Schema.conform` does.
    """
    width = schema.width
    parts = schema.in_parts(table, symbols, input_name)
    same = diff if isinstance(diff, int) else None
    columns = width if isinstance(diff, int) else width + 1
    piece_blocks = max(1, PIECE_WORDS // (width + TRAILING_WORDS) // BLOCK_ROWS)
    room = room_for(1, columns * min(BLOCK_ROWS, table.num_rows))[0]
    blocks: list[Block] = []
    for start in range(0, table.num_rows, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, table.num_rows - start)
        words = room[: columns * rows].reshape(columns, rows)
        parts.write(words, start)
        if not isinstance(diff, int):
            words[width] = diff[start : start + rows]
        blocks.append(Block(words))
        if len(blocks) == piece_blocks:
            yield FoldedRows(blocks, width, same, schema.symbol_words)
            blocks = []
    if blocks:
        yield FoldedRows(blocks, width, same, schema.symbol_words)
