"""What do rows add to the sums of their groups? A step of a chain: rows of keys and values become rows of
keys and components (`kernels/sums/components.py`), as few as there can be, in order.

Rows are put in the order of their keys first, so that those of one key add up before anything is written.
Many rows are one word each while they are sorted, and are unpacked again a block at a time, which stays in
the processor's cache: all at once they would take twice the memory or more, and as long to write as to sort.
Rows that come packed are never all there as words, nor is what is made of them.
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
"""Unpacked at a time: a mebibyte of rows of four words."""


_PIECE_ROWS: Final = 1 << 14
"""Of packed rows so many are words at once, before they are sorted."""

_PACKED_ROWS: Final = 1 << 16
"""So many rows of what is made are a block, or somewhat more."""


@dataclass(frozen=True)
class AccumulateTransform:
    """The components of each row, summed; `makers` are the columns of the table of `components_of`."""

    key_words: int
    makers: tuple[tuple[int, int, int, int], ...]
    schema_out: Schema

    def describe(self) -> str:
        """That it is one; which components they are belongs to the stage behind it."""
        return "components"

    def compile(self) -> Callable[[Int64s], Int64s | None]:
        """The step over words, time and diff last; None for no rows."""
        makers = np.array(self.makers, np.int64).T.copy()

        def accumulate(words: Int64s) -> Int64s | None:
            try:
                blocks = (components_of(rows, self.key_words, makers) for rows in self._blocks(words))
                made = _together(block for block in blocks if block.shape[1])  # in one all rows may cancel
                if made is None:
                    return None
                if not is_consolidated(made):
                    made = sort_consolidate(made)
            except OverflowError:
                raise component_overflow(words[-1]) from None
            return made if made.shape[1] else None

        return accumulate

    def packed(self, blocks: Sequence[Block]) -> list[Block] | None:
        """What the step makes of packed rows, time and diff last, in order and packed, too; none for no rows.
        None if that has to be done with words: for few rows, or without a key, or if rows do not fit a word
        each, or a sum leaves 64 bits, of which the function of `compile` says whose.
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
        """The rows in the order of their keys, in one or more pieces; as they are if there is no key."""
        if not self.key_words:
            yield words
            return
        words = np.ascontiguousarray(words)  # columns put beside each other may come out in the other order
        rows = sort_consolidate(words) if words.shape[1] < MANY_ROWS else sort_many([words])
        if isinstance(rows, PackedRows):
            yield from rows.blocks(_BLOCK_ROWS, self.key_words)
        else:
            yield rows


def _together(parts: Iterator[Int64s]) -> Int64s | None:
    """All rows in one array; None of no part. Many are packed while more are made: of several parts there
    would be twice the memory of all.
    """
    first = next(parts, None)
    second = None if first is None else next(parts, None)
    if first is None or second is None:
        return first
    blocks = [Block(first), Block(second)]
    del first, second
    blocks += map(Block, parts)
    made = room_for(blocks[0].columns, sum(block.rows for block in blocks))
    start = 0
    for block in blocks:
        stop = start + block.rows
        for column in range(made.shape[0]):
            block.write(column, made[column, start:stop])
        start = stop
    return made


def _packed_in_order(parts: Iterable[Int64s]) -> list[Block]:
    """All rows in blocks, in order; equal ones of two parts are summed."""
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
    blocks.clear()  # each goes as soon as its rows are words
    return list(packed(sort_consolidate(joined(joining))))
