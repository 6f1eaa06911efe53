"""Rows of one time that wait, in as little memory as they allow.

What waits for the end of an epoch may be all of a first load, and much of it may be the same: ten rows of
each key are counted as one. So parts are kept as they come only while they are few; then they are packed,
block by block, and when there are many more of these than are summed already, all are summed. Nowhere are all
rows there as words before they are asked for.

Sums are made by sorting anew, not by merging what is in order: of rows whose varying bits fit a word, as most
do, a sort costs less than a merge of packed runs.

Laws: what `take` gives adds up to what was added · a part that comes alone is given back as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from differential.columns.overflow import ShowRow, row_overflow
from differential.columns.packed.block import Block
from differential.columns.packed.parts import PACKED_ROWS, Part, in_order, packed, words_in
from differential.kernels.rows.sort import PackedRows
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark

__all__ = ["LOOSE_ROWS_MAX", "SUMMED_ROWS_MIN", "Pile"]

LOOSE_ROWS_MAX: Final = 1 << 17
"""So many rows of several parts are kept as they come."""

SUMMED_ROWS_MIN: Final = 1 << 18
"""Fewer rows are summed once, when they are asked for."""

_GROWTH: Final = 2
_GROWTH_OF_DIFFERENT: Final = 8
"""So many times as many rows as are summed come before all are summed; the latter where the last time hardly
any were equal."""


class Pile:
    """Rows of `columns` columns, time and diff last, all of one time."""

    __slots__ = ("_blocks", "_columns", "_loose", "_loose_rows", "_rows", "_sum_at")

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._loose: list[Int64s] = []
        self._loose_rows = 0
        self._blocks: list[Block] = []
        self._rows = 0
        """Of all blocks."""
        self._sum_at = SUMMED_ROWS_MIN

    @property
    def rows(self) -> int:
        """How many rows there are; fewer than were added, if some were equal."""
        return self._loose_rows + self._rows

    def add(self, part: Part, show: ShowRow) -> None:
        """One part more; it is kept, and not changed. Cost: now and then that of a sort of all rows.

        Raises MultiplicityOverflowError, with the row as `show` says it, if a sum leaves 64 bits.
        """
        if isinstance(part, Block):
            self._sum_if_due(show)
            self._blocks.append(part)
            self._rows += part.rows
            return
        if self._loose and self._loose_rows + part.shape[1] > LOOSE_ROWS_MAX:
            self._pack()
            self._sum_if_due(show)
        self._loose.append(part)
        self._loose_rows += part.shape[1]

    def take(self) -> list[Part]:
        """All rows, as they wait; nothing is left."""
        parts: list[Part] = [*self._blocks, *self._loose]
        self._blocks, self._rows, self._loose, self._loose_rows = [], 0, [], 0
        return parts

    def rebased(self, move: Callable[[Int64s], Int64s]) -> Pile:
        """The same rows as `move` gives them, for words that count from a later epoch."""
        moved = Pile(self._columns)
        moved._loose, moved._loose_rows = list(map(move, self._loose)), self._loose_rows
        moved._blocks = [Block(move(block.words())) for block in self._blocks]
        moved._rows, moved._sum_at = self._rows, self._sum_at
        return moved

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows."""
        for part in self._loose:
            mark.words(part[:-2])
        for block in self._blocks:
            block.symbols(mark, range(self._columns - 2))

    def check_invariants(self, time: int) -> None:
        """Assert that all rows are of this time, and counted."""
        assert self._loose_rows == sum(part.shape[1] for part in self._loose)
        assert self._rows == sum(block.rows for block in self._blocks)
        for part in (*self._loose, *(block.words() for block in self._blocks)):
            assert part.shape[1] and (part[-2] == time).all(), time

    def _pack(self) -> None:
        """Pack what is as it came."""
        for part in self._loose:
            self._blocks += packed(part)
        self._rows += self._loose_rows
        self._loose, self._loose_rows = [], 0

    def _sum_if_due(self, show: ShowRow) -> None:
        """More comes: sum all blocks, if there are many more than were summed, so that equal rows are one."""
        if not self._blocks or self._rows < self._sum_at:
            return
        before, parts = self._rows, list[Part](self._blocks)
        self._blocks, self._rows = [], 0
        try:
            found = in_order(parts)
        except OverflowError:
            raise row_overflow(words_in(parts), show) from None
        if isinstance(found, PackedRows):
            self._rows = found.rows
            self._blocks += list(map(Block, found.drained(PACKED_ROWS)))
        else:
            self._rows = found.shape[1]
            self._blocks += packed(found)
        are_different = self._rows > before - before // 4
        growth = _GROWTH_OF_DIFFERENT if are_different else _GROWTH
        self._sum_at = max(SUMMED_ROWS_MIN, (1 + growth) * self._rows)
