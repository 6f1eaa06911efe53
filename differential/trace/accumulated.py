"""All rows of a trace, summed up and in order, in as little memory as they allow.

A reader of an output asks for a collection of many rows as a whole, once, and then fetches it piece by piece.
The rows as words, the runs that they come from, and the sorted result would each be as large as all of it;
memory that has never been used costs more than the work on it. So rows pass through one small block, and stay
packed, a word and a multiplicity each, until a piece is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from differential.kernels.rows.sort import PackedRows, sort_blocks, sort_consolidate
from differential.thresholds import MANY_ROWS
from progress.compiled.arrays import Int64s

__all__ = ["BLOCK_ROWS", "Accumulated", "accumulate"]

BLOCK_ROWS: Final = 1 << 14
"""Rows of a block: a few columns of this length stay in the second-level cache."""


class Accumulated:
    """Rows in order, summed up, none of multiplicity 0, their time word 0."""

    __slots__ = ("_content", "rows")

    def __init__(self, content: PackedRows | Int64s) -> None:
        self._content = content
        self.rows = content.rows if isinstance(content, PackedRows) else content.shape[1]

    def between(self, first: int, last: int) -> Int64s:
        """Return the rows from `first` to `last` as words, int64[columns, last - first]."""
        if isinstance(self._content, PackedRows):
            return self._content.unpack(first, last)
        return self._content[:, first:last]

    def all(self) -> Int64s:
        """Return all rows; the array may be written to."""
        return self.between(0, self.rows)

    def has_negative(self) -> bool:
        """Return True if some row has a negative multiplicity."""
        if isinstance(self._content, PackedRows):
            return self._content.has_negative()
        return bool((self._content[-1] < 0).any())

    def blocks(self) -> Iterator[Int64s]:
        """Yield all rows, `BLOCK_ROWS` at a time."""
        for first in range(0, self.rows, BLOCK_ROWS):
            yield self.between(first, min(first + BLOCK_ROWS, self.rows))


def accumulate(blocks: Callable[[], Iterable[Int64s]], columns: int, rows: int) -> Accumulated:
    """Sum up `rows` rows of `columns` columns, whatever their times; `blocks` yields them, some at a time.

    `blocks` is called up to three times. It may overwrite a block when it yields the next one; the time words
    of each block are set to 0. Raises OverflowError if a multiplicity leaves 64 bits. Cost: about 40 ns a row
    if the bits that vary fit a word, else 100 and the memory of all rows as words, twice.
    """

    def timeless() -> Iterator[Int64s]:
        for block in blocks():
            block[-2] = 0
            yield block

    packed = sort_blocks(timeless, columns, rows) if rows >= MANY_ROWS else None
    if packed is not None:
        return Accumulated(packed)
    words = np.empty((columns, rows), np.int64)
    at = 0
    for block in timeless():
        words[:, at : at + block.shape[1]] = block
        at += block.shape[1]
    assert at == rows, (at, rows)
    return Accumulated(sort_consolidate(words))
