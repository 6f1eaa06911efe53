"""Rows of one time that wait, in as little memory as they allow.

All of a first load may wait for the end of its epoch, and many of its rows may be equal: ten rows of each key
become one with a count. So parts stay as they came only while they are few. Then they are packed, block by
block, and when many more rows are packed than are summed already, all are summed. The rows are never all
there as words before `take`.

Sums are made by sorting anew, not by merging sorted runs: if the varying bits of a row fit a word, as most
do, a sort costs less than a merge of packed runs.

Laws: the rows that `take` returns add up to those that were added · a part that comes alone is returned as
it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from differential.columns.overflow import ShowRow, row_overflow
from differential.columns.packed.block import Block
from differential.columns.packed.parts import PACKED_ROWS, Part, in_order, packed, symbols_in, words_in
from differential.kernels.rows.sort import PackedRows
from differential.thresholds import PILE_LOOSE_ROWS_MAX, PILE_SUMMED_ROWS_MIN
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark

__all__ = ["Pile"]

_GROWTH: Final = 2
_GROWTH_OF_DIFFERENT: Final = 8
"""All rows are summed when this many times as many have come as are summed already; the second where hardly
any were equal the last time."""


class Pile:
    """Rows of `columns` columns, time and diff last, all of one time."""

    __slots__ = ("_blocks", "_columns", "_loose", "_loose_rows", "_rows", "_sum_at")

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._loose: list[Int64s] = []
        self._loose_rows = 0
        self._blocks: list[Block] = []
        self._rows = 0
        """The number of rows in all blocks."""
        self._sum_at = PILE_SUMMED_ROWS_MIN

    @property
    def rows(self) -> int:
        """The number of rows; fewer than were added if some were equal."""
        return self._loose_rows + self._rows

    def add(self, part: Part, show: ShowRow) -> None:
        """Add a part, which is kept, and not changed. Cost: now and then that of a sort of all rows.

        Raises MultiplicityOverflowError, with the row in the form of `show`, if a sum leaves 64 bits.
        """
        if isinstance(part, Block):
            self._sum_if_due(show)
            self._blocks.append(part)
            self._rows += part.rows
            return
        if self._loose and self._loose_rows + part.shape[1] > PILE_LOOSE_ROWS_MAX:
            self._pack()
            self._sum_if_due(show)
        self._loose.append(part)
        self._loose_rows += part.shape[1]

    def take(self) -> list[Part]:
        """Remove and return all rows, as they wait."""
        parts: list[Part] = [*self._blocks, *self._loose]
        self._blocks, self._rows, self._loose, self._loose_rows = [], 0, [], 0
        return parts

    def rebased(self, move: Callable[[Int64s], Int64s]) -> Pile:
        """Return the same rows, moved by `move`, for words that count from a later epoch."""
        moved = Pile(self._columns)
        moved._loose, moved._loose_rows = list(map(move, self._loose)), self._loose_rows
        moved._blocks = [Block(move(block.words())) for block in self._blocks]
        moved._rows, moved._sum_at = self._rows, self._sum_at
        return moved

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows."""
        symbols_in([*self._loose, *self._blocks], mark)

    def check_invariants(self, time: int) -> None:
        """Assert that all rows are of this time, and counted."""
        assert self._loose_rows == sum(part.shape[1] for part in self._loose)
        assert self._rows == sum(block.rows for block in self._blocks)
        for part in (*self._loose, *(block.words() for block in self._blocks)):
            assert part.shape[1] and (part[-2] == time).all(), time

    def _pack(self) -> None:
        """Pack the parts that are as they came."""
        for part in self._loose:
            self._blocks += packed(part)
        self._rows += self._loose_rows
        self._loose, self._loose_rows = [], 0

    def _sum_if_due(self, show: ShowRow) -> None:
        """Sum all blocks before more rows come, if many more wait than were summed, so that equal rows are
        one.
        """
        if not self._blocks or self._rows < self._sum_at:
            return
        before, parts = self._rows, list[Part](self._blocks)
        self._blocks, self._rows = [], 0
        try:
            summed = in_order(parts)
        except OverflowError:
            raise row_overflow(words_in(parts), show) from None
        if isinstance(summed, PackedRows):
            self._rows = summed.rows
            self._blocks += list(map(Block, summed.drained(PACKED_ROWS)))
        else:
            self._rows = summed.shape[1]
            self._blocks += packed(summed)
        are_different = self._rows > before - before // 4
        growth = _GROWTH_OF_DIFFERENT if are_different else _GROWTH
        self._sum_at = max(PILE_SUMMED_ROWS_MIN, (1 + growth) * self._rows)
