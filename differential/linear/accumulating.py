"""What do rows add to the sums of their groups? A step from rows of keys and values to rows of keys and
components (`kernels/sums/components.py`), as few as possible, in order.

The step sorts rows by their keys first, so that rows of one key add up before anything is written. While it
sorts many rows, each is one word. It unpacks them one block at a time, which stays in the processor's cache:
all rows at once would take twice the memory or more, and as long to write as to sort. If rows come packed,
neither they nor the results are ever unpacked all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.overflow import component_overflow
from differential.columns.packed.block import Block
from differential.columns.packed.parts import Part, joined, packed
from differential.columns.schema import Schema
from differential.kernels.rows.room import room_for
from differential.kernels.rows.sort import (
    PackedRows,
    is_consolidated,
    sort_blocks,
    sort_consolidate,
    sort_many,
)
from differential.kernels.sums.components import components_of
from differential.thresholds import MANY_ROWS

__all__ = ["AccumulateTransform"]

_BLOCK_ROWS: Final = 1 << 15
"""Rows that are unpacked at a time: a mebibyte of rows of four words."""


_PIECE_ROWS: Final = 1 << 14
"""Packed rows that are unpacked at a time, before they are sorted."""

_PACKED_ROWS: Final = 1 << 16
"""Rows of a block of results, or somewhat more."""


@dataclass(frozen=True)
class AccumulateTransform:
    """The components of each row, summed; `makers` are the columns of the table of `components_of`."""

    key_words: int
    makers: tuple[tuple[int, int, int, int], ...]
    schema_out: Schema

    def describe(self) -> str:
        """Return its name; the stage behind it describes which components they are."""
        return "components"

    def compile(self) -> Callable[[Int64s], Int64s | None]:
        """Return the step over words, time and diff last; it returns None for no rows."""
        makers = np.array(self.makers, np.int64).T.copy()

        def accumulate(words: Int64s) -> Int64s | None:
            try:
                blocks = (components_of(rows, self.key_words, makers) for rows in self._blocks(words))
                rows_out = _together(
                    block for block in blocks if block.shape[1]
                )  # rows of one may all cancel
                if rows_out is None:
                    return None
                if not is_consolidated(rows_out):
                    rows_out = sort_consolidate(rows_out)
            except OverflowError:
                raise component_overflow(words[-1]) from None
            return rows_out if rows_out.shape[1] else None

        return accumulate

    def packed(self, blocks: Sequence[Block]) -> list[Block] | None:
        """Return the results for packed rows, time and diff last, in order and packed, too; [] for no rows.

        Returns None if the step must run on words: for few rows, without a key, if rows do not fit one word
        each, or if a sum leaves 64 bits. Then the function of `compile` finds out whose sum it is.
        """
        count, columns = sum(block.rows for block in blocks), blocks[0].columns
        if not self.key_words or count < MANY_ROWS:
            return None

        def passing() -> Iterator[Int64s]:
            for block in blocks:
                yield from block.pieces(_PIECE_ROWS)

        makers = np.array(self.makers, np.int64).T.copy()
        try:
            rows = sort_blocks(passing, columns, count)
            if rows is None:
                return None
            pieces = rows.blocks(_BLOCK_ROWS, self.key_words)
            return _packed_in_order(components_of(piece, self.key_words, makers) for piece in pieces)
        except OverflowError:
            return None

    def _blocks(self, words: Int64s) -> Iterator[Int64s]:
        """Yield the rows in the order of their keys, in one or more pieces; unsorted if there is no key."""
        if not self.key_words:
            yield words
            return
        words = np.ascontiguousarray(words)  # arrays that were concatenated may be in Fortran order
        rows = sort_consolidate(words) if words.shape[1] < MANY_ROWS else sort_many([words])
        if isinstance(rows, PackedRows):
            yield from rows.blocks(_BLOCK_ROWS, self.key_words)
        else:
            yield rows


def _together(parts: Iterator[Int64s]) -> Int64s | None:
    """Return all rows in one array; None if there is no part.

    Several parts are packed while more are made: unpacked they would take twice the memory in the end.
    """
    first = next(parts, None)
    second = None if first is None else next(parts, None)
    if first is None or second is None:
        return first
    blocks = [Block(first), Block(second)]
    del first, second
    blocks += map(Block, parts)
    rows_out = room_for(blocks[0].columns, sum(block.rows for block in blocks))
    start = 0
    for block in blocks:
        stop = start + block.rows
        for column in range(rows_out.shape[0]):
            block.write(column, rows_out[column, start:stop])
        start = stop
    return rows_out


def _packed_in_order(parts: Iterable[Int64s]) -> list[Block]:
    """Return all rows in blocks, in order; equal rows of two parts are summed."""
    blocks: list[Block] = []
    waiting: list[Int64s] = []
    rows, last, are_in_order = 0, None, True
    for part in parts:
        if not part.shape[1]:  # all its rows have cancelled
            continue
        first = tuple(part[:-1, 0].tolist())
        are_in_order &= is_consolidated(part) and (last is None or last < first)
        last = tuple(part[:-1, -1].tolist())
        waiting.append(part)
        rows += part.shape[1]
        if rows >= _PACKED_ROWS:
            blocks.append(Block(np.concatenate(waiting, axis=1)))
            waiting, rows = [], 0
    if waiting:
        blocks.append(Block(np.concatenate(waiting, axis=1)))
    if are_in_order:
        return blocks
    joining: list[Part] = [*blocks]
    blocks.clear()  # so that each block goes as soon as it is unpacked
    return list(packed(sort_consolidate(joined(joining))))
