"""A run is an immutable, sorted, consolidated piece of a trace.

    rows(run) = { (key, value, time, diff) }, no two of the same key, value and time, no diff of zero

Large runs are *packed*: a column becomes unsigned offsets from its smallest value, of 0 to 4 bytes or eight,
so that a row of small integers takes about ten bytes instead of 32. Small runs stay words. Kernels read both
through a line of the run table (`kernels/rows/memory.py`); the run owns the memory that its line points into.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from differential.columns.packed.block import BLOCK_ROWS, reserve
from differential.kernels.rows.columns import (
    column_ranges,
    decode_column,
    decode_words,
    encode_column,
    encode_words,
)
from differential.kernels.rows.memory import (
    BUCKETS,
    DIRECTORY,
    HEADER,
    LOW,
    LUB,
    ROWS,
    SHIFT,
    describe_words,
)
from differential.kernels.rows.room import mapped_bytes, room_for
from differential.kernels.rows.search import fill_directory
from differential.kernels.rows.sort import PackedRows
from differential.thresholds import DIRECTORY_ROWS_MIN, PACKED_ROWS_MIN
from progress.compiled.arrays import Int64s
from progress.times.word_order import word_lub
from timely.dictionaries import Mark

BUCKET_ROWS: Final = 4
"""Rows in a bucket of a directory, two to four; a directory with many keys costs one or two bytes a row."""

SHOWN_ROWS: Final = 1 << 16
"""Number of rows of a column that `symbols` unpacks at once."""


class Run:
    """A sorted piece of a trace: `line` for kernels, `ranges` of its columns, and the memory behind them.

    line     int64[3 + 3·columns], a line of the run table
    rows     number of rows
    ranges   int64[columns, 2]: bounds of each column's values (not always tight)
    """

    __slots__ = ("_sums", "_total", "bytes", "compacted", "directory", "line", "memory", "ranges", "rows")

    def __init__(self, line: Int64s, ranges: Int64s, memory: Int64s, compacted: bytes) -> None:
        self.line = line
        self.rows: int = line.item(ROWS)
        self.ranges = ranges
        self.memory = memory
        self.bytes = memory.nbytes
        self.compacted = compacted  # the `since` to which its times were advanced, b"" for none
        self._total: int | None = None
        self._sums: Int64s | None = None
        self.directory = None if self.rows < DIRECTORY_ROWS_MIN else self._build_directory()

    def __deepcopy__(self, memo: dict[int, object]) -> Run:
        """Return the run itself: it never changes."""
        return self

    @classmethod
    def from_words(cls, words: Int64s, guards: int, packed: bool | None = None) -> Run:
        """Return a run of sorted consolidated rows, at least one; it holds `words` itself unless it packs
        them.
        """
        columns, rows = words.shape
        assert rows > 0
        ranges = np.empty((columns, 2), np.int64)
        lub = column_ranges(words, ranges, guards)
        if packed is None:
            packed = rows >= PACKED_ROWS_MIN
        if packed:
            line, memory = reserve(rows, ranges)
            line[ROWS] = rows
            encode_words(words, line.reshape(1, -1), 0)
        else:
            memory = words
            line = np.zeros(HEADER + 3 * columns, np.int64)
            describe_words(words, rows, line.reshape(1, -1), 0)
        line[LUB] = lub
        return cls(line, ranges, memory, b"")

    @classmethod
    def from_sorted(cls, packed: PackedRows, guards: int) -> Run:
        """Return a packed run of at least PACKED_ROWS_MIN sorted rows.

        The rows are never all in memory as words, and `packed` is emptied on the way.
        """
        assert packed.rows >= PACKED_ROWS_MIN
        ranges = packed.ranges()
        line, memory = reserve(packed.rows, ranges)
        line[ROWS] = packed.rows
        lub, is_one_time = int(ranges[-2, 0]), ranges[-2, 0] == ranges[-2, 1]
        table, seen = line.reshape(1, -1), np.empty_like(ranges)
        start = 0
        for words in packed.drained(BLOCK_ROWS):
            for column in range(words.shape[0]):
                encode_column(words, column, words.shape[1], table, 0, start)
            start += words.shape[1]
            if not is_one_time:
                lub = int(word_lub(lub, column_ranges(words, seen, guards), guards))
        line[LUB] = lub
        return cls(line, ranges, memory, b"")

    @property
    def only_time(self) -> int | None:
        """The time of all rows; None if there may be several."""
        low, high = self.ranges[-2].tolist()
        return int(low) if low == high else None

    def _build_directory(self) -> npt.NDArray[np.uint32]:
        """Build the directory of `kernels/rows/search.py`, and enter it in the line."""
        low, high = int(self.ranges[0, 0]), int(self.ranges[0, 1])
        assert self.rows < 1 << 32
        shift, buckets = directory_shape(low, high, self.rows)
        directory = mapped_bytes(4 * (buckets + 1)).view(np.uint32)[: buckets + 1]
        line = self.line
        line[DIRECTORY], line[SHIFT], line[LOW], line[BUCKETS] = directory.ctypes.data, shift, low, buckets
        fill_directory(line.reshape(1, -1), 0)
        self.bytes += directory.nbytes
        return directory

    @property
    def total(self) -> int:
        """The sum of all differences, modulo 2⁶⁴. Cost: one pass over the differences, at the first use."""
        if self._total is None:
            table, last = self.line.reshape(1, -1), self.ranges.shape[0] - 1
            diffs: Int64s = np.empty((1, self.rows), np.int64)
            decode_column(table, 0, last, 0, self.rows, diffs, 0)
            self._total = int(diffs.sum())
        return self._total

    def sums(self, rows: int) -> Int64s:
        """Return the sums of the differences of the first 0, `rows`, 2 · `rows`, … rows, modulo 2⁶⁴; none if
        all differences are equal.

        They are computed at the first call, which says how many rows it is from then on.
        """
        if self._sums is None:
            low, high = self.ranges[-1].tolist()
            self._sums = np.empty(0, np.int64) if low == high else self._sums_of(rows)
            self.bytes += self._sums.nbytes
        return self._sums

    def _sums_of(self, rows: int) -> Int64s:
        sums: Int64s = np.zeros(self.rows // rows + 1, np.int64)
        table, last = self.line.reshape(1, -1), self.ranges.shape[0] - 1
        block: Int64s = np.empty((1, rows), np.int64)
        for at in range(1, sums.shape[0]):
            decode_column(table, 0, last, (at - 1) * rows, rows, block, 0)
            sums[at] = sums[at - 1] + block.sum()
        return sums

    def words(self) -> Int64s:
        """Return all rows, as words."""
        return decode_words(self.line.reshape(1, -1), 0, self.ranges.shape[0])

    def between(self, start: int, stop: int) -> Int64s:
        """Return the rows from `start` to `stop`, as words."""
        columns, table = self.ranges.shape[0], self.line.reshape(1, -1)
        words = room_for(columns, stop - start)
        for column in range(columns):
            decode_column(table, 0, column, start, stop - start, words, column)
        return words

    def blocks(self, rows: int) -> Iterator[Int64s]:
        """Yield all rows as words, `rows` at a time, in one memory: each block overwrites the last one."""
        columns, table = self.ranges.shape[0], self.line.reshape(1, -1)
        block: Int64s = np.empty((columns, min(rows, self.rows)), np.int64)
        for start in range(0, self.rows, rows):
            size = min(rows, self.rows - start)
            for column in range(columns):
                decode_column(table, 0, column, start, size, block, column)
            yield block[:, :size] if size == block.shape[1] else np.ascontiguousarray(block[:, :size])

    def symbols(self, mark: Mark) -> None:
        """Mark all words of keys and values, except in columns whose range contains no symbol."""
        table = self.line.reshape(1, -1)
        words: Int64s = np.empty((1, min(self.rows, SHOWN_ROWS)), np.int64)
        for column in range(self.ranges.shape[0] - 2):
            low, high = int(self.ranges[column, 0]), int(self.ranges[column, 1])
            if not mark.has_between(low, high):
                continue
            if low == high:
                mark.words(self.ranges[column, :1])
                continue
            for start in range(0, self.rows, SHOWN_ROWS):
                rows = min(self.rows - start, SHOWN_ROWS)
                decode_column(table, 0, column, start, rows, words, 0)
                mark.words(words[:, :rows])


def directory_shape(low: int, high: int, rows: int) -> tuple[int, int]:
    """Return (number of bits by which first words are shifted, number of buckets).

    The shift is for at least one bucket: for none, words at both ends of their range would be shifted by 64,
    which no processor does.
    """
    bucket_count = max(1, rows // BUCKET_ROWS)
    shift = max(0, (high - low).bit_length() - bucket_count.bit_length())
    return shift, ((high - low) >> shift) + 1
