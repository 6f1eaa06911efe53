"""All rows of a trace as they add up, in order, in as little memory as they allow.

A collection of many rows is asked for as a whole by who reads an output, once, and then piece by piece. Its
rows as words, the runs that they come from, and what is sorted would each be as large as all of it; memory
that has never been used costs more than what is done with it. So rows pass through one small block, and stay
packed, a word and a multiplicity each, until a piece is asked for.
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
"""Rows of a block: a few columns of so many stay in the second-level cache."""


class Accumulated:
    """Rows in order, summed, none of multiplicity 0, their time word 0."""

    __slots__ = ("_found", "rows")

    def __init__(self, found: PackedRows | Int64s) -> None:
        self._found = found
        self.rows = found.rows if isinstance(found, PackedRows) else found.shape[1]

    def between(self, first: int, last: int) -> Int64s:
        """The rows from `first` to `last` as words, int64[columns, last - first]."""
        if isinstance(self._found, PackedRows):
            return self._found.unpack(first, last)
        return self._found[:, first:last]

    def all(self) -> Int64s:
        """All rows; the array may be written to."""
        return self.between(0, self.rows)

    def has_negative(self) -> bool:
        """Whether some row is there less than 0 times."""
        if isinstance(self._found, PackedRows):
            return self._found.has_negative()
        return bool((self._found[-1] < 0).any())

    def blocks(self) -> Iterator[Int64s]:
        """All rows, some at a time."""
        for first in range(0, self.rows, BLOCK_ROWS):
            yield self.between(first, min(first + BLOCK_ROWS, self.rows))


def accumulate(blocks: Callable[[], Iterable[Int64s]], columns: int, rows: int) -> Accumulated:
    """What `rows` rows of `columns` columns, of which `blocks` gives some at a time, add up to, whatever
    their times. `blocks` is called up to three times; a block may be gone with the next one.

    Raises OverflowError if a multiplicity leaves 64 bits. Cost: about 40 ns a row if the bits that vary fit a
    word, else 100 and the memory of all rows as words, twice.
    """

    def timeless() -> Iterator[Int64s]:
        for block in blocks():
            block[-2] = 0
            yield block

    found = sort_blocks(timeless, columns, rows) if rows >= MANY_ROWS else None
    if found is not None:
        return Accumulated(found)
    words = np.empty((columns, rows), np.int64)
    at = 0
    for block in timeless():
        words[:, at : at + block.shape[1]] = block
        at += block.shape[1]
    assert at == rows, (at, rows)
    return Accumulated(sort_consolidate(words))
