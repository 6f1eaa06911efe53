"""The history of one key, gathered from all runs of a trace, and the corrections that make it right.

    rows   int64[words + 2, room]: value words, time, diff; sorted by value, then time, once consolidated

Times are advanced to a `floor`, a time that is ≤ every time of interest: for those it changes nothing, and
most times of a long history become equal. A run whose lub is ≤ `floor` is all at `floor`; its times are not
read.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.closure import is_minimal
from differential.kernels.merging.merge import compare_rows, copy_rows
from differential.kernels.overflow import SMALL_BITS, excess, magnitude, refuse, wide_add
from differential.kernels.rows.memory import HEADER, LUB, load
from differential.kernels.rows.search import locate
from differential.kernels.rows.sort import sort_words
from differential.thresholds import INSERTED_ROWS_MAX
from progress.compiled.kernel import Int64s, kernel
from progress.times.word_order import word_is_beyond, word_less_equal, word_lub

LARGEST: Final = 4
"""Where `state` has the or-ed magnitudes of all diffs that were read for a key."""


@kernel
def more_rows(rows: Int64s, count: int) -> Int64s:
    """Return a copy with room for more than twice as many rows as `count`."""
    larger = np.empty((rows.shape[0], 2 * count + 8), np.int64)
    copy_rows(rows, rows.shape[1], larger)
    return larger


@kernel
def read_run(
    table: Int64s,
    run: int,
    span: tuple[int, int],
    kw: int,
    floor_guards: tuple[int, int],
    rows: Int64s,
    count: int,
) -> int:
    """Read the rows of `span` (the first, and the one after the last) of a run behind `count` rows.

    Times are advanced to the floor. Return the or-ed magnitudes of the diffs. Requires: room.

    `gathered` contains the same loop: with calls of this function, and of the one behind them there, counts
    and sums of rows in unshared traces were 5 to 7 % slower.
    """
    words = rows.shape[0] - 2
    floor, guards = floor_guards
    first, size = span[0], span[1] - span[0]
    early = word_less_equal(table[run, LUB], floor, guards)
    for word in range(words + 2):
        at = HEADER + 3 * (kw + word)
        address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
        if word != words:
            for row in range(size):
                rows[word, count + row] = load(address, width, base, first + row)
        elif early:
            for row in range(size):
                rows[word, count + row] = floor
        else:
            for row in range(size):
                rows[word, count + row] = word_lub(load(address, width, base, first + row), floor, guards)
    if width < 4:
        return magnitude(base)  # a diff differs from it by at most 2²⁴, which does not matter
    largest = np.int64(0)
    for row in range(count, count + size):
        largest |= magnitude(rows[words + 1, row])
    return largest


@kernel
def gathered(
    table: Int64s, cursors: Int64s, keys: Int64s, key: int, kw: int, state: Int64s, guards: int, rows: Int64s
) -> Int64s:
    """Read all rows of a key, times advanced to the floor state[1]; return `rows`, or a larger one.

    The number of rows goes to state[2], the or-ed magnitudes of their diffs to state[LARGEST]. Neighbours
    that have become equal are summed on the way, which for an early run leaves one row per value; not if a
    diff is so large that the sum might wrap. Ensures: room for twice as many and four; nothing about order.
    """
    words = rows.shape[0] - 2
    floor = state[1]
    size = locate(table, cursors, keys, key, kw)
    if 2 * size + 4 > rows.shape[1]:
        rows = more_rows(rows, 2 * size + 4)
    count = np.int64(0)
    largest = np.int64(0)
    for run in range(table.shape[0]):
        if cursors[1, run] == cursors[0, run]:
            continue
        early = word_less_equal(table[run, LUB], floor, guards)
        size = cursors[1, run] - cursors[0, run]
        for word in range(words + 2):
            at = HEADER + 3 * (kw + word)
            address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
            if word != words:
                for row in range(size):
                    rows[word, count + row] = load(address, width, base, cursors[0, run] + row)
            elif early:
                for row in range(size):
                    rows[word, count + row] = floor
            else:
                for row in range(size):
                    rows[word, count + row] = word_lub(
                        load(address, width, base, cursors[0, run] + row), floor, guards
                    )
        if width >= 4:
            for row in range(count, count + size):
                largest |= magnitude(rows[words + 1, row])
        else:
            largest |= magnitude(base)  # a diff differs from it by at most 2²⁴, which does not matter
        if largest >> SMALL_BITS == 0:
            count = sum_neighbours(rows, count, count + size)
        else:
            count += size
    state[2] = count
    state[LARGEST] = largest
    return rows


@kernel
def gathered_complete(
    table: Int64s,
    cursors: Int64s,
    keys: Int64s,
    where: tuple[int, int, int],
    state: Int64s,
    frontier: Int64s,
    exact: int,
    rows: Int64s,
) -> Int64s:
    """Do `gathered`, without rows beyond the frontier where they can be told; where: key, kw, guards.

    exact   the first line from which on no time was ever advanced; -1: no row of the table is beyond
    In earlier lines a row may be beyond the frontier because it was advanced. Such a row is complete, and its
    lub with a ready time has to stay pending. Rows that are not complete do no harm: they count at no ready
    time, and the pending times that they add are processed in vain.
    """
    key, kw, guards = where
    size = locate(table, cursors, keys, key, kw)
    if 2 * size + 4 > rows.shape[1]:
        rows = more_rows(rows, 2 * size + 4)
    count = np.int64(0)
    largest = np.int64(0)
    for run in range(table.shape[0]):
        if cursors[1, run] == cursors[0, run]:
            continue
        span = (cursors[0, run], cursors[1, run])
        largest |= read_run(table, run, span, kw, (state[1], guards), rows, count)
        stop = count + span[1] - span[0]
        if 0 <= exact <= run and not word_less_equal(table[run, LUB], state[1], guards):
            stop = without_beyond(table, run, span[0], frontier, guards, rows, count, stop)
        count = sum_neighbours(rows, count, stop) if largest >> SMALL_BITS == 0 else stop
    state[2] = count
    state[LARGEST] = largest
    return rows


@kernel
def without_beyond(
    table: Int64s, run: int, first: int, frontier: Int64s, guards: int, rows: Int64s, start: int, stop: int
) -> int:
    """Drop those of the rows [start, stop), read from row `first` of a run on, that are beyond the frontier.

    Their times in the run count. Return the new end.
    """
    at = table.shape[1] - 6
    address, width, base = table[run, at], table[run, at + 1], table[run, at + 2]
    end = start
    for row in range(start, stop):
        if not word_is_beyond(load(address, width, base, first + row - start), frontier, guards):
            if end != row:
                for column in range(rows.shape[0]):
                    rows[column, end] = rows[column, row]
            end += 1
    return end


@kernel
def sum_neighbours(rows: Int64s, start: int, stop: int) -> int:
    """Sum neighbours among the rows [start, stop) that are equal but for the diff; return the new end.

    Requires: small diffs.
    """
    columns = rows.shape[0]
    end = start
    for row in range(start, stop):
        same = end > start
        for column in range(columns - 1):
            same = same and rows[column, row] == rows[column, end - 1]
        if same:
            rows[columns - 1, end - 1] += rows[columns - 1, row]
            end -= rows[columns - 1, end - 1] == 0
        else:
            for column in range(columns):
                rows[column, end] = rows[column, row]
            end += 1
    return end


@kernel
def with_new(
    ready: Int64s, start: int, stop: int, kw: int, state: Int64s, guards: int, rows: Int64s
) -> Int64s:
    """Append the new rows [start, stop) to those that `gathered` left, and their magnitudes to its own."""
    words = rows.shape[0] - 2
    count = state[2]
    if 2 * (count + stop - start) + 4 > rows.shape[1]:
        rows = more_rows(rows, 2 * (count + stop - start) + 4)
    for row in range(start, stop):
        for word in range(words):
            rows[word, count] = ready[kw + word, row]
        rows[words, count] = word_lub(ready[kw + words, row], state[1], guards)
        rows[words + 1, count] = ready[kw + words + 1, row]
        state[LARGEST] |= magnitude(ready[kw + words + 1, row])
        count += 1
    state[2] = count
    return rows


@kernel
def compare_with(rows: Int64s, at: int, row: Int64s, columns: int) -> int:
    """Return -1, 0 or 1: how row `at` compares with `row` in the first `columns` columns."""
    for column in range(columns):
        if rows[column, at] != row[column]:
            return -1 if rows[column, at] < row[column] else 1
    return 0


@kernel
def consolidate_key(rows: Int64s, state: Int64s) -> int:
    """Do `consolidate_rows` for the state[2] rows of a key; raise OverflowError if a row at a time leaves 64
    bits.
    """
    if state[LARGEST] >> SMALL_BITS == 0:
        return consolidate_rows(rows, state[2])
    return consolidate_many(rows, state[2])


@kernel
def consolidate_many(rows: Int64s, count: int) -> int:
    """Do `consolidate_rows` for many rows, or large diffs."""
    some = np.empty((rows.shape[0], count), np.int64)
    copy_rows(rows, count, some)
    consolidated = sort_words(some)
    copy_rows(consolidated, consolidated.shape[1], rows)
    return consolidated.shape[1]


@kernel
def check_key(rows: Int64s, count: int, times: Int64s, state: Int64s, guards: int) -> None:
    """Raise OverflowError if at one of the state[0] times a value has a multiplicity that leaves 64 bits.

    Cost: nothing unless a diff is large. After it `multiplicity` is right although it adds in one word.
    """
    if state[LARGEST] >> SMALL_BITS == 0:
        return
    words = rows.shape[0] - 2
    for index in range(state[0]):
        high, low = np.int64(0), np.int64(0)
        for row in range(count):
            for word in range(words):
                if row > 0 and rows[word, row] != rows[word, row - 1]:
                    refuse(excess(high, low))
                    high, low = np.int64(0), np.int64(0)
                    break
            if word_less_equal(rows[words, row], times[0, index], guards):
                high, low = wide_add(high, low, rows[words + 1, row])
        refuse(excess(high, low))


@kernel
def consolidate_rows(rows: Int64s, count: int) -> int:
    """Sort the first `count` rows and sum equal ones, in place; return how many are left.

    Cost: O(count) if many. Requires: small diffs; one column of room behind them, which is overwritten.
    """
    columns = rows.shape[0]
    if count > INSERTED_ROWS_MAX:
        return consolidate_many(rows, count)
    size = min(count, np.int64(1))
    for new in range(1, count):
        size = put_row(rows, size, rows, new)
    if size == 1 and rows[columns - 1, 0] == 0:
        size = np.int64(0)
    return size


@kernel
def put_row(rows: Int64s, count: int, source: Int64s, index: int) -> int:
    """Add row `index` of `source` to sorted consolidated rows; return their new number.

    Requires: small diffs; room for two more rows, which is overwritten. `source` may be the same array.
    """
    columns = rows.shape[0]
    spare = rows.shape[1] - 1
    at = count
    order = -1
    while at > 0:
        order = compare_rows(rows, at - 1, source, index, columns - 1)
        if order <= 0:
            break
        at -= 1
    if at > 0 and order == 0:
        rows[columns - 1, at - 1] += source[columns - 1, index]
        if rows[columns - 1, at - 1] == 0:
            for column in range(columns):
                for later in range(at, count):
                    rows[column, later - 1] = rows[column, later]
            return count - 1
        return count
    if at == count:
        for column in range(columns):
            rows[column, at] = source[column, index]
        return count + 1
    for column in range(columns):
        rows[column, spare] = source[column, index]  # the moving rows may overwrite it
        for later in range(count, at, -1):
            rows[column, later] = rows[column, later - 1]
        rows[column, at] = rows[column, spare]
    return count + 1


@kernel
def multiplicity(rows: Int64s, count: int, at: int, time: int, guards: int) -> tuple[int, int]:
    """Return (sum of the diffs at times ≤ `time`, next row) of the value that begins at row `at`.

    Requires: the sum fits 64 bits (small diffs, or `check_key`).
    """
    words = rows.shape[0] - 2
    total = np.int64(0)
    row = at
    while row < count:
        for word in range(words):
            if rows[word, row] != rows[word, at]:
                return total, row
        if word_less_equal(rows[words, row], time, guards):
            total += rows[words + 1, row]
        row += 1
    return total, row


@kernel
def correct(
    rows: Int64s, count: int, answer: Int64s, present: bool, guards: int, out: Int64s, end: int
) -> int:
    """Append to `out` the corrections after which the rows accumulate to the answer at its time.

    That is `answer` once if `present`, else no row.
    answer   int64[words + 2]: value words and time; the last is free for use
    out      int64[words + 2, room]: the corrections are appended from row `end` on; return their end
    Requires: room for as many more rows as there are different values, and one more.
    """
    words = rows.shape[0] - 2
    time = answer[words]
    at = np.int64(0)
    is_there = False
    while at < count:
        total, after = multiplicity(rows, count, at, time, guards)
        if present and not is_there and compare_with(rows, at, answer, words) == 0:
            is_there = True
            total -= 1
        if total != 0:
            for word in range(words):
                out[word, end] = rows[word, at]
            out[words, end] = time
            out[words + 1, end] = -total
            end += 1
        at = after
    if present and not is_there:
        for word in range(words):
            out[word, end] = answer[word]
        out[words, end] = time
        out[words + 1, end] = 1
        end += 1
    return end


@kernel
def put_rows(rows: Int64s, count: int, source: Int64s, start: int, stop: int) -> int:
    """Do `put_row` for the rows [start, stop) of `source`; return the new number of rows."""
    for index in range(start, stop):
        count = put_row(rows, count, source, index)
    return count


@kernel
def appended(out: Int64s, end: int, keys: Int64s, key: int, kw: int, rows: Int64s, count: int) -> Int64s:
    """Write (key, row) for the first `count` rows to `out`, from row `end` on; return it or a larger copy."""
    if end + count > out.shape[1]:
        out = more_rows(out, end + count)
    for column in range(kw):
        for row in range(count):
            out[column, end + row] = keys[column, key]
    for column in range(rows.shape[0]):
        for row in range(count):
            out[kw + column, end + row] = rows[column, row]
    return out


@kernel
def pended_times(
    times: Int64s,
    state: Int64s,
    frontier: Int64s,
    guards: int,
    pended: Int64s,
    keys: Int64s,
    key: int,
    kw: int,
) -> Int64s:
    """Append (key, time) for the minimal times beyond the frontier to the state[3] rows of `pended`."""
    for index in range(state[0]):
        if word_is_beyond(times[0, index], frontier, guards) and is_minimal(times, index, frontier, guards):
            at = state[3]
            if at == pended.shape[1]:
                pended = more_rows(pended, at)
            for column in range(kw):
                pended[column, at] = keys[column, key]
            pended[kw, at] = times[0, index]
            state[3] = at + 1
    return pended
