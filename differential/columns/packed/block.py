"""Rows by columns of as few bytes as their values need: offsets of 0 to 4 bytes from the smallest, or eight.

    reserve   memory for rows whose columns stay within some ranges, and the line that describes it to kernels
    Block     some rows in the order in which they came: written once, and read as a whole

What keeps rows in order, and finds them, is a run (`trace/run.py`). A column in which all rows have the same
value takes nothing.
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

__all__ = ["BLOCK_ROWS", "WIDTHS", "Block", "PackedColumn", "reserve"]

_SPARE_BYTES: Final = 1
"""Behind the values of a column: who reads those of three bytes reads four (`kernels/rows/memory.py`)."""

WIDTHS: Final = (1, 2, 3, 4)
"""Bytes of a column, if not none or eight."""

BLOCK_ROWS: Final = 1 << 17
"""Of many rows so many are a block: few enough for the processor's caches, enough for memory that is given
back to the system when it is dropped (`MAPPED_BYTES_MIN` of `thresholds.py`)."""


def reserve(rows: int, ranges: Int64s) -> tuple[Int64s, Int64s]:
    """A line (with 0 rows) and memory for up to `rows` rows whose columns stay within `ranges`.

    Memory that is never written costs nothing where it is mapped for the first time.
    """
    columns = ranges.shape[0]
    line = np.zeros(HEADER + 3 * columns, np.int64)
    size = 0
    for column in range(columns):
        low, high = int(ranges[column, 0]), int(ranges[column, 1])
        span = high - low
        width = 0 if span == 0 else next((w for w in WIDTHS if span >> (8 * w) == 0), 8)
        at = HEADER + 3 * column
        line[at] = size
        line[at + 1] = width
        line[at + 2] = 0 if width == 8 else low
        size += (rows * width + 63) // 64 * 64
    memory = mapped_bytes(size + 8)
    line[HEADER::3] += memory.ctypes.data
    return line, memory


class PackedColumn(NamedTuple):
    """Where the values of a column lie in some bytes, how many bytes each has, and what is added to them."""

    at: int
    width: int
    base: int


class Block:
    """The rows of `words`, int64[columns, n], at least one."""

    __slots__ = ("_line", "_memory")

    _memory: Int64s | NDArray[np.uint8]

    def __init__(self, words: Int64s) -> None:
        columns, rows = words.shape
        seen = np.empty((4, columns), np.int64)
        survey(words, seen, 1)
        self._line, self._memory = reserve(rows, seen[2:].T)
        self._line[ROWS] = rows
        encode_words(words, self._line.reshape(1, -1), 0)

    def __deepcopy__(self, memo: dict[int, object]) -> Block:
        """Itself: it never changes."""
        return self

    def between(self, start: int, stop: int) -> Block:
        """The rows from `start` to `stop`, at least one, in the same memory."""
        assert 0 <= start < stop <= self.rows
        made = Block.__new__(Block)
        made._line, made._memory = self._line.copy(), self._memory
        made._line[ROWS] = stop - start
        made._line[HEADER::3] += start * made._line[HEADER + 1 :: 3]
        return made

    def with_columns(self, sources: Sequence[int], same: Sequence[int]) -> Block:
        """The same rows of other columns: each is column `source` of this one, or, where that is negative,
        the word of `same` in all rows. It takes no memory but for its description.
        """
        made = Block.__new__(Block)
        line = self._line
        entries = [
            (0, 0, word) if source < 0 else line[HEADER + 3 * source : HEADER + 3 * source + 3].tolist()
            for source, word in zip(sources, same, strict=True)
        ]
        made._line = np.concatenate([line[:HEADER], np.array(entries, np.int64).reshape(-1)])
        made._memory = self._memory
        return made

    @classmethod
    def within(cls, rows: int, columns: Sequence[PackedColumn], memory: memoryview) -> Block:
        """Rows that lie in `memory`, which nobody writes to any more, as `lying` says it of others. Raises
        ValueError for columns of which anything would be read outside of it.
        """
        made = cls.__new__(cls)
        made._memory = np.frombuffer(memory, np.uint8)
        start, size = made._memory.ctypes.data, made._memory.shape[0]
        made._line = np.zeros(HEADER + 3 * len(columns), np.int64)
        made._line[ROWS] = rows
        if rows < 1:
            raise ValueError(f"{rows} rows")
        for number, (at, width, base) in enumerate(columns):
            if width not in (0, *WIDTHS, 8):
                raise ValueError(f"{width} bytes for a value")
            if width and not 0 <= at <= size - rows * width - _SPARE_BYTES:
                raise ValueError(f"{rows} values of {width} bytes from byte {at} on in {size}")
            made._line[HEADER + 3 * number : HEADER + 3 * number + 3] = (
                start + at if width else 0,
                width,
                base,
            )
        return made

    def lying(self) -> tuple[list[PackedColumn], memoryview]:
        """Where the columns lie, and the memory in which they do: as little as there is of it in one piece.
        Both are what `within` takes.
        """
        found = [PackedColumn(*entry) for entry in self._line[HEADER:].reshape(-1, 3).tolist()]
        ends = [(column.at, column.at + self.rows * column.width) for column in found if column.width]
        if not ends:
            return [column._replace(at=0) for column in found], memoryview(bytes(_SPARE_BYTES))
        first, last = min(start for start, _ in ends), max(stop for _, stop in ends)
        begins = self._memory.ctypes.data
        memory = self._memory.view(np.uint8)[first - begins : last - begins + _SPARE_BYTES]
        return [column._replace(at=column.at - first if column.width else 0) for column in found], memory.data

    @property
    def rows(self) -> int:
        """How many."""
        return int(self._line[ROWS])

    @property
    def columns(self) -> int:
        """How many words a row has."""
        return int(self._line.shape[0] - HEADER) // 3

    @property
    def bytes(self) -> int:
        """Memory that the rows take."""
        size: int = self._memory.nbytes
        return size

    def compared(self) -> object:
        """The rows; not where they lie."""
        return self.words()

    def write(self, column: int, words: Int64s) -> None:
        """Write a column into `words`, int64[n], C-contiguous."""
        decode_column(self._line.reshape(1, -1), 0, column, 0, self.rows, words.reshape(1, -1), 0)

    def words(self) -> Int64s:
        """All rows."""
        words = room_for(self.columns, self.rows)
        for column in range(self.columns):
            self.write(column, words[column])
        return words

    def only(self, column: int) -> int | None:
        """The word that all rows have in a column, which may count from behind; None if they may differ."""
        width, base = self._line[HEADER:].reshape(-1, 3)[column, 1:].tolist()
        return None if width else int(base)

    def pieces(self, rows: int) -> Iterator[Int64s]:
        """All rows as words, `rows` at a time, all in the same memory: a piece is gone with the next one."""
        columns, table = self.columns, self._line.reshape(1, -1)
        room: Int64s = np.empty(columns * min(rows, self.rows), np.int64)
        for start in range(0, self.rows, rows):
            found = min(rows, self.rows - start)
            piece = room[: columns * found].reshape(columns, found)
            for column in range(columns):
                decode_column(table, 0, column, start, found, piece, column)
            yield piece

    def symbols(self, mark: Mark, columns: Iterable[int]) -> None:
        """Show the words of these columns."""
        words: Int64s = np.empty(self.rows, np.int64)
        for column in columns:
            self.write(column, words)
            mark.words(words)
