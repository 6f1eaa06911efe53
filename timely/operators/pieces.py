"""Bounded pieces of an output: what is asked of a log, and what it gives.

A reader that takes an output in pieces asks for them by the number of their first row. Who makes them keeps
no account of him: the rows of a complete epoch, and those of the collection as of one, have one order, so the
same piece can be asked for again, by another task in another process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

__all__ = ["Cut", "Wanted", "rows_of_a_piece"]


@dataclass(frozen=True)
class Wanted:
    """Rows from `first` on of the changes of `start` ≤ epoch < `stop`, or, with `start` below 0, of the
    collection as of `stop` - 1; of these only the share `part` of `parts`, and the columns `columns`.
    """

    start: int
    stop: int
    first: int
    part: int
    parts: int
    columns: tuple[str, ...]

    @property
    def is_snapshot(self) -> bool:
        """Whether the collection is asked for, and not what has changed."""
        return self.start < 0


class Cut(NamedTuple):
    """A piece: its rows, the number of the first one behind it, how many there are in all, and whether the
    collection holds some row less than 0 times.
    """

    table: pa.Table
    next: int
    rows: int
    is_negative: bool


def rows_of_a_piece(bytes_max: int, words: int) -> int:
    """How many rows of so many words a piece has, before its texts are known."""
    return max(1, bytes_max // (8 * max(1, words)))
