"""Rows by columns of as few bytes as their values need: offsets of 0 to 4 bytes from the smallest, or eight.

    reserve   memory for rows whose columns stay within ranges, and the line that describes it to kernels
    Block     some rows in the order in which they came: written once, and read as a whole

A run (`trace/run.py`) keeps rows in order and finds them; a block does not. A column in which all rows
have the same value takes no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from differential.kernels.rows.columns import decode_column, encode_words
from differential.kernels.rows.memory import HEADER, ROWS
from differential.kernels.rows.packing import survey
from differential.kernels.rows.room import mapped_bytes, room_for
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark

__all__ = ["BLOCK_ROWS", "WIDTHS", "Block", "PackedColumn", "reserve", "reserved_bytes"]

_SPARE_BYTES: Final = 1
"""Bytes behind the values: a reader of three-byte values reads four (`kernels/rows/memory.py`)."""

WIDTHS: Final = (1, 2, 3, 4)
"""Bytes of a value, if not none or eight."""

BLOCK_ROWS: Final = 1 << 17
"""Rows of a block where there are many.

They are few enough for the processor's caches, and enough for memory that goes back to the system when it is
dropped (`MAPPED_BYTES_MIN` of `thresholds.py`).
"""


def reserve(rows: int, ranges: Int64s) -> tuple[Int64s, Int64s]:
    """Return a line (with 0 rows) and memory for up to `rows` rows whose columns stay within `ranges`.

    Mapped memory that is never written costs nothing.
    """
    entries, size = _laid_out(rows, ranges)
    memory = mapped_bytes(size)
    line: Int64s = np.array(entries, np.int64)
    line[HEADER::3] += memory.ctypes.data
    return line, memory


def reserved_bytes(rows: int, ranges: Int64s) -> int:
    """Return the size of the memory that `reserve` would return, as far as it does not round it up to
    pages.
    """
    return (_laid_out(rows, ranges)[1] + 7) // 8 * 8


def _laid_out(rows: int, ranges: Int64s) -> tuple[list[int], int]:
    """Return a line whose addresses count from the beginning of the memory, and the bytes of the memory."""
    entries, size = [0] * HEADER, 0
    for low, high in ranges.tolist():
        width = (int(high - low).bit_length() + 7) // 8
        width = width if width <= WIDTHS[-1] else 8
        entries += size, width, 0 if width == 8 else low
        size += (rows * width + 63) // 64 * 64
    return entries, size + 8


class PackedColumn(NamedTuple):
    """The column's place in some bytes: where its values begin, bytes of each, and what is added to them."""

    at: int
    width: int
    base: int


class Block:
    """The rows of `words`, int64[columns, n], at least one."""

    __slots__ = ("_line", "_memory")

    _memory: Int64s | NDArray[np.uint8]

    def __init__(self, words: Int64s) -> None:
        columns, rows = words.shape
        extremes = np.empty((4, columns), np.int64)
        survey(words, extremes, 1)
        self._line, self._memory = reserve(rows, extremes[2:].T)
        self._line[ROWS] = rows
        encode_words(words, self._line.reshape(1, -1), 0)

    def __deepcopy__(self, memo: dict[int, object]) -> Block:
        """Itself: it never changes."""
        return self

    def between(self, start: int, stop: int) -> Block:
        """Return the rows from `start` to `stop`, at least one, in the same memory."""
        assert 0 <= start < stop <= self.rows
        block = Block.__new__(Block)
        block._line, block._memory = self._line.copy(), self._memory
        block._line[ROWS] = stop - start
        block._line[HEADER::3] += start * block._line[HEADER + 1 :: 3]
        return block

    def with_columns(self, sources: Sequence[int], same: Sequence[int]) -> Block:
        """Return the same rows with other columns; only the description takes memory.

        Each is column `source` of this block; where `source` is negative, all rows have the word of `same`.
        """
        block = Block.__new__(Block)
        line = self._line
        entries = [
            (0, 0, word) if source < 0 else line[HEADER + 3 * source : HEADER + 3 * source + 3].tolist()
            for source, word in zip(sources, same, strict=True)
        ]
        block._line = np.concatenate([line[:HEADER], np.array(entries, np.int64).reshape(-1)])
        block._memory = self._memory
        return block

    @classmethod
    def within(cls, rows: int, columns: Sequence[PackedColumn], memory: memoryview) -> Block:
        """Return a block of rows that lie in `memory` as `lying` describes them.

        Nothing may write to that memory any more. Raises ValueError for columns that would be read beyond it.
        """
        block = cls.__new__(cls)
        block._memory = np.frombuffer(memory, np.uint8)
        start, size = block._memory.ctypes.data, block._memory.shape[0]
        block._line = np.zeros(HEADER + 3 * len(columns), np.int64)
        block._line[ROWS] = rows
        if rows < 1:
            raise ValueError(f"{rows} rows")
        for number, (at, width, base) in enumerate(columns):
            if width not in (0, *WIDTHS, 8):
                raise ValueError(f"{width} bytes for a value")
            if width and not 0 <= at <= size - rows * width - _SPARE_BYTES:
                raise ValueError(f"{rows} values of {width} bytes from byte {at} on in {size}")
            block._line[HEADER + 3 * number : HEADER + 3 * number + 3] = (
                start + at if width else 0,
                width,
                base,
            )
        return block

    def lying(self) -> tuple[list[PackedColumn], memoryview]:
        """Return where the columns lie, and the least memory that holds them all; `within` takes both."""
        columns = [PackedColumn(*entry) for entry in self._line[HEADER:].reshape(-1, 3).tolist()]
        ends = [(column.at, column.at + self.rows * column.width) for column in columns if column.width]
        if not ends:
            return [column._replace(at=0) for column in columns], memoryview(bytes(_SPARE_BYTES))
        first, last = min(start for start, _ in ends), max(stop for _, stop in ends)
        begins = self._memory.ctypes.data
        memory = self._memory.view(np.uint8)[first - begins : last - begins + _SPARE_BYTES]
        return [
            column._replace(at=column.at - first if column.width else 0) for column in columns
        ], memory.data

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._line[ROWS])

    @property
    def columns(self) -> int:
        """Words of a row."""
        return int(self._line.shape[0] - HEADER) // 3

    @property
    def bytes(self) -> int:
        """Bytes of memory behind the rows."""
        size: int = self._memory.nbytes
        return size

    def compared(self) -> object:
        """Return what is compared of a block: its rows, wherever they lie."""
        return self.words()

    def write(self, column: int, words: Int64s) -> None:
        """Write a column into `words`, int64[n], C-contiguous."""
        decode_column(self._line.reshape(1, -1), 0, column, 0, self.rows, words.reshape(1, -1), 0)

    def words(self) -> Int64s:
        """Return all rows as words."""
        words = room_for(self.columns, self.rows)
        for column in range(self.columns):
            self.write(column, words[column])
        return words

    def only(self, column: int) -> int | None:
        """Return the word that all rows have in a column (from behind if < 0); None if they may differ."""
        width, base = self._line[HEADER:].reshape(-1, 3)[column, 1:].tolist()
        return None if width else int(base)

    def pieces(self, rows: int) -> Iterator[Int64s]:
        """Yield all rows as words, `rows` at a time; each piece overwrites the one before."""
        columns, table = self.columns, self._line.reshape(1, -1)
        room: Int64s = np.empty(columns * min(rows, self.rows), np.int64)
        for start in range(0, self.rows, rows):
            size = min(rows, self.rows - start)
            piece = room[: columns * size].reshape(columns, size)
            for column in range(columns):
                decode_column(table, 0, column, start, size, piece, column)
            yield piece

    def symbols(self, mark: Mark, columns: Iterable[int]) -> None:
        """Show the words of these columns to `mark`."""
        words: Int64s = np.empty(self.rows, np.int64)
        for column in columns:
            self.write(column, words)
            mark.words(words)
