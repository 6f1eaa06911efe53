"""Sort rows by (key, value, time), sum equal ones, drop rows that cancel.

Three ways, depending on the rows:

    packed    the varying bits of all columns, with the diff lowest, fit one word: sort those words and
              unpack them again. No row is moved, no index followed.
    indexed   otherwise: a radix argsort column by column, skipping digits that are the same everywhere
    few       up to `INSERTED_ROWS_MAX` rows: insertion sort of the rows themselves

How rows are packed is in `packing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from differential.kernels.overflow import excess, refuse, wide_add
from differential.kernels.rows.packing import (
    SEGMENTS_MAX,
    bit_length,
    pack_rows,
    plan_packing,
    survey,
    unpack_rows,
    varying_bits,
)
from differential.kernels.rows.room import give_back, room_for
from differential.thresholds import INSERTED_ROWS_MAX, MANY_ROWS, WIDE_DIGITS_ROWS_MIN
from progress.compiled.kernel import Int64s, kernel, large_kernel, small_kernel


@kernel
def sort_packed(keys: Int64s, spare: Int64s, low: int, high: int) -> Int64s:
    """Sort by the bits [low, high) of words that are ≥ 0 and have none above; return one of the two arrays.

    Cost: one pass if sorted already; else a pass per 8 or 11 bits.
    """
    rows = keys.shape[0]
    ordered = True
    for row in range(1, rows):
        if keys[row - 1] >> low > keys[row] >> low:
            ordered = False
            break
    if ordered:
        return keys
    digit_bits = 11 if rows >= WIDE_DIGITS_ROWS_MIN else 8
    passes = (high - low + digit_bits - 1) // digit_bits
    digit_bits = (high - low + passes - 1) // passes
    digit_mask = (np.int64(1) << digit_bits) - 1
    counts = np.empty(1 << digit_bits, np.int64)
    source = keys
    target = spare
    for _ in range(passes):
        for digit in range(counts.shape[0]):
            counts[digit] = 0
        for row in range(rows):
            counts[source[row] >> low & digit_mask] += 1
        start = np.int64(0)
        for digit in range(counts.shape[0]):
            count = counts[digit]
            counts[digit] = start
            start += count
        for row in range(rows):
            key = source[row]
            digit = key >> low & digit_mask
            target[counts[digit]] = key
            counts[digit] += 1
        source, target = target, source
        low += digit_bits
    return source


@kernel
def sum_packed(keys: Int64s, sums: Int64s, diff_bits: int, diff_base: int) -> int:
    """Sum equal sorted words in place: `keys` loses the diff's bits, `sums` gets the diffs; return rows left.

    Return -1 - i if the sum that begins at word i leaves 64 bits: from there on the arrays are unchanged.
    """
    size = np.int64(0)
    row = np.int64(0)
    diff_mask = (np.int64(1) << diff_bits) - 1
    while row < keys.shape[0]:
        key = keys[row] >> diff_bits
        first = row
        total = diff_base + (keys[row] & diff_mask)
        high = total >> 63
        row += 1
        while row < keys.shape[0] and keys[row] >> diff_bits == key:
            high, total = wide_add(high, total, diff_base + (keys[row] & diff_mask))
            row += 1
        if excess(high, total) != 0:
            return -1 - first
        if total != 0:
            keys[size] = key
            sums[size] = total
            size += 1
    return size


@kernel
def sort_inserted(words: Int64s) -> Int64s:
    """Do `sort_words` for so few rows that comparing them is faster than planning how to pack them."""
    columns, rows = words.shape
    order = np.empty(rows, np.int64)
    for row in range(rows):
        at = row
        while at > 0 and row_less(words, row, order[at - 1]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = row
    size, at = np.int64(0), np.int64(0)
    sums = np.empty(rows, np.int64)
    while at < rows:
        first = order[at]
        high, total = np.int64(0), np.int64(0)
        while at < rows and same_row(words, first, order[at]):
            high, total = wide_add(high, total, words[columns - 1, order[at]])
            at += 1
        refuse(excess(high, total))
        if total != 0:
            order[size], sums[size] = first, total
            size += 1
    out = np.empty((columns, size), np.int64)
    for row in range(size):
        for column in range(columns - 1):
            out[column, row] = words[column, order[row]]
        out[columns - 1, row] = sums[row]
    return out


@large_kernel
def sort_words(words: Int64s) -> Int64s:
    """Do `sort_consolidate` in one call, for other kernels and for few rows."""
    columns, rows = words.shape
    if rows == 0:
        return words
    if rows <= INSERTED_ROWS_MAX:
        return sort_inserted(words)
    seen = np.empty((4, columns), np.int64)
    plan = np.empty((4, SEGMENTS_MAX * columns), np.int64)
    bases = np.empty(columns, np.int64)
    survey(words, seen, np.int64(1))
    segments, diff_bits, bits = plan_packing(seen, plan, bases)
    if bits > 63:
        return sort_indexed(words, seen)
    keys = np.empty(rows, np.int64)
    spare = np.empty(rows, np.int64)
    pack_rows(words, plan, bases, segments, keys, np.int64(0))
    ordered = sort_packed(keys, spare, diff_bits, bits)
    sums = spare
    if ordered is spare:
        sums = keys
    size = sum_packed(ordered, sums, diff_bits, bases[columns - 1])
    refuse(np.int64(size < 0))
    out = np.empty((columns, size), np.int64)
    unpack_rows(ordered, sums, plan, bases, segments, out)
    return out


def sort_consolidate(words: Int64s) -> Int64s:
    """Return the same updates, sorted and consolidated, in a new array (or `words` itself if it has no rows).

    Raises OverflowError if the multiplicity of a row leaves 64 bits; partial sums may. Requires: words
    int64[≥ 2, n]. Cost: about 20 ns a row if the varying bits fit a word, else 70.
    """
    words = np.ascontiguousarray(words)  # concatenated columns may have the other memory order
    if words.shape[1] < MANY_ROWS:
        return sort_words(words)
    return sort_parts([words])


def sort_parts(parts: list[Int64s]) -> Int64s:
    """Do `sort_consolidate` of several tables together, which are removed from the list and dropped on the
    way.

    Requires: at least one table, all with as many columns, none without rows. When there are many rows, the
    memory of the parts is free again before that of the result is taken. Raises OverflowError, as
    `sort_consolidate`; the rows in question are then among the `parts`.
    """
    return unpacked(sort_still_packed(parts))


def unpacked(rows: PackedRows | Int64s) -> Int64s:
    """Return rows in order as words, whether they are packed or not."""
    return rows.unpack(0, rows.rows) if isinstance(rows, PackedRows) else rows


def sort_still_packed(parts: list[Int64s]) -> PackedRows | Int64s:
    """Do `sort_parts`, and leave the result packed if there are many rows that can be packed."""
    if sum([part.shape[1] for part in parts]) < MANY_ROWS:
        return sort_consolidate(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))
    return sort_many(parts)


class PackedRows:
    """Rows in order, summed, each still as one word and its sum, however many columns it has."""

    __slots__ = ("_bases", "_diff_bits", "_keys", "_plan", "_seen", "_sums", "rows")

    def __init__(
        self, keys: Int64s, sums: Int64s, rows: int, plan: Int64s, bases: Int64s, diff_bits: int, seen: Int64s
    ) -> None:
        """Take the first `rows` words of `keys`, without the bits of the diff, and of `sums`.

        `plan`, one column for each segment, and `bases` are as of `plan_packing`; `seen` as of `survey`.
        """
        self._keys, self._sums, self.rows = keys, sums, rows
        self._plan, self._bases, self._diff_bits = plan, bases, diff_bits
        self._seen = seen

    def ranges(self) -> Int64s:
        """Return bounds of the values of each column, int64[columns, 2]. Requires: there are rows."""
        ranges = np.ascontiguousarray(self._seen[2:].T)
        sums = self._sums[: self.rows]
        ranges[-1] = sums.min(), sums.max()
        return ranges

    def has_negative(self) -> bool:
        """Return True if some row has a negative multiplicity."""
        return bool((self._sums[: self.rows] < 0).any())

    def unpack(self, start: int, stop: int) -> Int64s:
        """Return the rows from `start` to `stop`."""
        assert 0 <= start <= stop <= self.rows
        out = room_for(self._bases.shape[0], stop - start)
        self._write(start, out)
        return out

    def drained(self, rows: int) -> Iterator[Int64s]:
        """Yield all rows, `rows` at a time, in one memory: each block overwrites the last one.

        It gives the packed rows back to the system on the way, so they cannot be read again.
        """
        columns = self._bases.shape[0]
        room = room_for(1, columns * min(rows, self.rows))[0]
        for start in range(0, self.rows, rows):
            stop = min(start + rows, self.rows)
            out = room[: columns * (stop - start)].reshape(columns, stop - start)
            self._write(start, out)
            give_back(self._keys[start:stop])
            give_back(self._sums[start:stop])
            yield out

    def _write(self, start: int, out: Int64s) -> None:
        segments = self._plan.shape[1]
        unpack_rows(self._keys[start:], self._sums[start:], self._plan, self._bases, segments, out)

    def blocks(self, rows: int, columns: int) -> Iterator[Int64s]:
        """Yield all rows, about `rows` at a time, in one memory: to touch fresh pages takes longer than to
        write them.

        Rows that agree in the first `columns` columns come together, unless there are more than `rows` of
        them.
        """
        positions = [position for column, _, _, position in self._plan.T.tolist() if column < columns]
        low = min(positions, default=63) - self._diff_bits
        width = self._bases.shape[0]
        room = room_for(1, width * min(rows, self.rows))[0]
        start = 0
        while start < self.rows:
            stop = min(start + rows, self.rows)
            if stop < self.rows:
                first_of_next = int(self._keys[stop]) >> low << low
                whole = int(np.searchsorted(self._keys[start:stop], first_of_next))
                stop = start + whole if whole else stop
            out = room[: width * (stop - start)].reshape(width, stop - start)
            self._write(start, out)
            yield out
            start = stop


def sort_many(parts: list[Int64s]) -> PackedRows | Int64s:
    """Do `sort_parts`, however many rows there are; return them packed if they can be, otherwise as words."""
    columns = parts[0].shape[0]
    rows = sum(part.shape[1] for part in parts)
    seen = np.empty((4, columns), np.int64)
    for index, part in enumerate(parts):
        survey(part, seen, int(index == 0))
    plan, bases = np.empty((4, SEGMENTS_MAX * columns), np.int64), np.empty(columns, np.int64)
    segments, diff_bits, bits = plan_packing(seen, plan, bases)
    if bits > 63:
        return sort_indexed(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1), seen)
    keys, spare = room_for(2, rows)
    part = parts[0]
    while parts:
        part = parts.pop()
        rows -= part.shape[1]
        pack_rows(part, plan, bases, segments, keys, rows)
    del part
    result = _summed(keys, spare, plan[:, :segments].copy(), bases, (diff_bits, bits), seen)
    if isinstance(result, PackedRows):
        return result
    parts.append(result)
    raise OverflowError("a sum leaves 64 bits")


def sort_blocks(blocks: Callable[[], Iterable[Int64s]], columns: int, rows: int) -> PackedRows | None:
    """Do `sort_many` for rows that come block by block, so that they are never all in memory as words.

    A block may overwrite the one before it. `blocks` is called twice, and yields the same `rows` rows, at
    least one, in blocks none of which is empty. Return None if the bits that vary do not fit a word. Raises
    OverflowError, as `sort_consolidate`.
    """
    seen = np.empty((4, columns), np.int64)
    for index, block in enumerate(blocks()):
        survey(block, seen, int(index == 0))
    plan, bases = np.empty((4, SEGMENTS_MAX * columns), np.int64), np.empty(columns, np.int64)
    segments, diff_bits, bits = plan_packing(seen, plan, bases)
    if bits > 63:
        return None
    keys, spare = room_for(2, rows)
    at = 0
    for block in blocks():
        pack_rows(block, plan, bases, segments, keys, at)
        at += block.shape[1]
    assert at == rows, (at, rows)
    result = _summed(keys, spare, plan[:, :segments].copy(), bases, (diff_bits, bits), seen)
    if isinstance(result, PackedRows):
        return result
    raise OverflowError("a sum leaves 64 bits")


def _summed(
    keys: Int64s, spare: Int64s, plan: Int64s, bases: Int64s, bits: tuple[int, int], seen: Int64s
) -> PackedRows | Int64s:
    """Return packed rows in order and summed; or, as words, the rows whose sum leaves 64 bits.

    `bits`: number of bits of the diff, and in all.
    """
    if sort_packed(keys, spare, *bits).ctypes.data == spare.ctypes.data:
        keys, spare = spare, keys
    size = sum_packed(keys, spare, bits[0], int(bases[-1]))
    if size < 0:
        return _unsummed(keys[-1 - size :], bits[0], plan, bases, plan.shape[1])
    return PackedRows(keys, spare, size, plan, bases, bits[0], seen)


def _unsummed(keys: Int64s, diff_bits: int, plan: Int64s, bases: Int64s, segments: int) -> Int64s:
    """Return the rows of packed words that are equal to the first but for the diff."""
    keys = keys[keys >> diff_bits == keys[0] >> diff_bits]
    out = np.empty((bases.shape[0], keys.shape[0]), np.int64)
    diffs = (keys & ((1 << diff_bits) - 1)) + bases[-1]
    unpack_rows(keys >> diff_bits, diffs, plan, bases, segments, out)
    return out


@small_kernel
def same_row(words: Int64s, a: int, b: int) -> bool:
    """Return True if rows `a` and `b` differ in their diff only."""
    for column in range(words.shape[0] - 1):
        if words[column, a] != words[column, b]:
            return False
    return True


@small_kernel
def row_less(words: Int64s, a: int, b: int) -> bool:
    """Return True if row `a` sorts before row `b`."""
    for column in range(words.shape[0] - 1):
        if words[column, a] != words[column, b]:
            return words[column, a] < words[column, b]
    return False


@kernel
def are_modest(values: Int64s, bound: int) -> bool:
    """Return True if all of `values` int64[n] are less than `bound`, and more than -`bound`."""
    is_so = True
    for row in range(values.shape[0]):
        is_so &= -bound < values[row] < bound
    return is_so


@kernel
def is_consolidated(words: Int64s) -> bool:
    """Return True if the rows are in order, each once, and none with a diff of 0.

    Cost: a pass up to the first row that is out of order or has a diff of 0.
    """
    for row in range(words.shape[1]):
        if words[words.shape[0] - 1, row] == 0 or (row > 0 and not row_less(words, row - 1, row)):
            return False
    return True


@kernel
def sorted_order(words: Int64s, seen: Int64s) -> Int64s:
    """Return the rows' numbers in sorted order. Cost: two passes per 8 or 11 varying bits."""
    columns, rows = words.shape
    order = np.empty(rows, np.int64)
    for row in range(rows):
        order[row] = row
    spare = np.empty(rows, np.int64)
    digit_bits = 11 if rows >= WIDE_DIGITS_ROWS_MIN else 8
    digit_mask = (np.int64(1) << digit_bits) - 1
    counts = np.empty(1 << digit_bits, np.int64)
    for column in range(columns - 2, -1, -1):
        base, mask = varying_bits(seen, column)
        for shift in range(0, bit_length(mask), digit_bits):
            if mask >> shift & digit_mask == 0:
                continue
            for digit in range(counts.shape[0]):
                counts[digit] = 0
            for row in range(rows):
                counts[(words[column, row] - base) >> shift & digit_mask] += 1
            start = np.int64(0)
            for digit in range(counts.shape[0]):
                count = counts[digit]
                counts[digit] = start
                start += count
            for row in range(rows):
                index = order[row]
                digit = (words[column, index] - base) >> shift & digit_mask
                spare[counts[digit]] = index
                counts[digit] += 1
            order, spare = spare, order
    return order


@kernel
def sort_indexed(words: Int64s, seen: Int64s) -> Int64s:
    """Do `sort_consolidate` for rows of any content."""
    columns, rows = words.shape
    order = sorted_order(words, seen)
    size = np.int64(0)
    row = np.int64(0)
    sums = np.empty(rows, np.int64)
    excesses = np.int64(0)
    while row < rows:
        first = order[row]
        total = words[columns - 1, first]
        high = total >> 63
        row += 1
        while row < rows and same_row(words, first, order[row]):
            high, total = wide_add(high, total, words[columns - 1, order[row]])
            row += 1
        excesses |= excess(high, total)
        if total != 0:
            order[size] = first
            sums[size] = total
            size += 1
    refuse(excesses)
    out = np.empty((columns, size), np.int64)
    for column in range(columns - 1):
        for row in range(size):
            out[column, row] = words[column, order[row]]
    for row in range(size):
        out[columns - 1, row] = sums[row]
    return out
