"""Bounded pieces of an output: the request to a log, and its reply.

A reader that takes an output in pieces asks for each by the number of its first row. The log keeps no
account of readers: the rows of a complete epoch, and those of the collection as of one, have one order, so
another task in another process can ask for the same piece again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

__all__ = ["Cut", "PieceRequest", "rows_of_a_piece"]


@dataclass(frozen=True)
class PieceRequest:
    """A request for rows from `first` on of the changes of `start` ≤ epoch < `stop`, or, with `start` below
    0, of the collection as of `stop` - 1; only the rows of share `part` of `parts`, and only the columns
    `columns`.
    """

    start: int
    stop: int
    first: int
    part: int
    parts: int
    columns: tuple[str, ...]

    @property
    def is_snapshot(self) -> bool:
        """True if the request is for the collection, and not for changes."""
        return self.start < 0


class Cut(NamedTuple):
    """A piece: its rows, the number of the first row behind it, the number of all rows, and whether the
    collection holds some row less than 0 times.
    """

    table: pa.Table
    next: int
    rows: int
    is_negative: bool


def rows_of_a_piece(bytes_max: int, words: int) -> int:
    """Return the number of rows of a piece, at `words` words a row, before its texts are known."""
    return max(1, bytes_max // (8 * max(1, words)))
