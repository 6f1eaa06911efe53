"""Rows in several parts, some as words and some packed: they wait until all of them are needed.

    joined     all rows as words, in one array
    in_order   all rows sorted and summed, without unpacking all of them on the way

Both take the parts out of their list, and drop each as soon as it is used up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from differential.columns.packed.block import Block
from differential.kernels.rows.room import room_for
from differential.kernels.rows.sort import PackedRows, sort_blocks, sort_parts, sort_still_packed
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark

__all__ = [
    "PACKED_ROWS",
    "Part",
    "bytes_in",
    "changed",
    "column_of",
    "columns_of",
    "each_in",
    "in_order",
    "joined",
    "packed",
    "rows_in",
    "symbols_in",
    "with_added",
    "words_in",
]

Part: TypeAlias = "Int64s | Block"

PACKED_ROWS: Final = 1 << 16
"""Rows of one block among waiting rows; so many are copied as words at a time, to be packed."""

_PIECE_ROWS: Final = 1 << 14
"""Rows of a block that are unpacked at once on their way: few enough for the second-level cache."""


def rows_in(parts: Sequence[Part]) -> int:
    """Return the number of rows in all parts."""
    return sum(part.rows if isinstance(part, Block) else part.shape[1] for part in parts)


def bytes_in(parts: Sequence[Part]) -> int:
    """Return the bytes of memory that all parts take."""
    return sum(part.bytes if isinstance(part, Block) else part.nbytes for part in parts)


def columns_of(part: Part) -> int:
    """Return the number of words of a row, its time and its diff among them."""
    return part.columns if isinstance(part, Block) else part.shape[0]


def column_of(part: Part, column: int) -> Int64s:
    """Return the words of a column of some rows; a negative `column` counts from behind."""
    if not isinstance(part, Block):
        column_words: Int64s = part[column]
        return column_words
    words: Int64s = np.empty(part.rows, np.int64)
    part.write(column % part.columns, words)
    return words


def changed(part: Part, change: Callable[[Int64s], Int64s]) -> Part:
    """Return the rows that `change` makes of the part's; packed if the part is.

    `change` may write into its argument if the part is packed, or if nobody else holds the part.
    """
    return Block(change(part.words())) if isinstance(part, Block) else change(part)


def with_added(part: Part, columns: Sequence[int], number: int) -> Part:
    """Return the same rows with `number` added to the words of some columns; packed if the part is."""
    words = part.words() if isinstance(part, Block) else part.copy()
    for column in columns:
        words[column] += number
    return Block(words) if isinstance(part, Block) else words


def symbols_in(parts: Sequence[Part], mark: Mark) -> None:
    """Show all words of the rows, without their times and diffs, to `mark`."""
    for part in parts:
        if isinstance(part, Block):
            part.symbols(mark, range(part.columns - 2))
        else:
            mark.words(part[:-2])


def words_in(parts: Sequence[Part]) -> list[Int64s]:
    """Return each part as words."""
    return [part.words() if isinstance(part, Block) else part for part in parts]


def each_in(parts: list[Part]) -> Iterator[Int64s]:
    """Yield each part as words; it leaves the list before it is yielded, the first one first."""
    parts.reverse()
    while parts:
        yield words_in([parts.pop()])[0]


def packed(words: Int64s) -> Iterator[Block]:
    """Yield the rows in blocks."""
    for start in range(0, words.shape[1], PACKED_ROWS):
        yield Block(np.ascontiguousarray(words[:, start : start + PACKED_ROWS]))


def joined(parts: list[Part]) -> Int64s:
    """Return all rows of the parts, at least one, in their order."""
    if len(parts) == 1:
        return words_in([parts.pop()])[0]
    columns = columns_of(parts[0])
    words, stop = room_for(columns, rows_in(parts)), rows_in(parts)
    while parts:
        part = parts.pop()
        start = stop - rows_in([part])
        if isinstance(part, Block):
            for column in range(columns):
                part.write(column, words[column, start:stop])
        else:
            words[:, start:stop] = part
        stop = start
    return words


def in_order(parts: list[Part]) -> PackedRows | Int64s:
    """Return all rows of the parts, at least one, sorted and summed; still packed if they are many, and fit.

    Raises OverflowError if a multiplicity leaves 64 bits; then the rows in question are among the parts.
    """
    plain = [part for part in parts if not isinstance(part, Block)]
    if len(plain) == len(parts):
        parts.clear()
        try:
            return sort_still_packed(plain)
        except OverflowError:
            parts += plain
            raise
    columns = next(part.columns for part in parts if isinstance(part, Block))

    def passing() -> Iterator[Int64s]:
        for part in parts:
            if isinstance(part, Block):
                yield from part.pieces(_PIECE_ROWS)
            else:
                yield np.ascontiguousarray(part)

    del plain
    rows = sort_blocks(passing, columns, rows_in(parts))
    if rows is not None:
        parts.clear()
        return rows
    whole = [joined(parts)]
    try:
        return sort_parts(whole)
    except OverflowError:
        parts += whole
        raise
