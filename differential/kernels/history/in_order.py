"""Going through the values of a key in order, across all runs at once, and no further than necessary.

Runs are sorted by the words of rows, and the order of values is that of the words, except for *symbols*,
whose words are hashes. A symbol that takes part in the order stands behind words that are its first bytes
(`operators/ordered/layout.py`), so its own rank matters only among values that are equal up to there:

    level d   the words from the symbol of level d - 1 (not included) up to that of level d; the last level
              ends with the value
    block     the rows, in every run, that are equal in all words of a level. Their symbols are visited by
              *rank*, which is the order of the values that they stand for. A single symbol needs no rank.

Rows are never read to find the end of a block or symbol: galloping skips them. So going through n values
costs n searches in each run, and in a block as many as it has different symbols.

    cursors   int64[4·levels, runs]: for each level the first row left of a run and the row after the last,
              and the first of the block and the row after its last
    levels    int64[2, levels]: the word of the level's symbol, and 1, or -1 if its order is reversed; in
              the last column the number of words of a value
    ranks     int64[2, m]: symbols, ascending, and the rank of each
    waiting   int64[2, room]: a stack of symbols that are still to be visited, level by level; and the
              symbols whose rank was needed and is missing
    marks     int64[levels + 3]: the level, number of waiting symbols, number of missing ranks, and for each
              level where the stack began
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.history import more_rows
from differential.kernels.rows.memory import read
from differential.kernels.rows.search import first_from
from differential.kernels.rows.sort import sort_words
from progress.compiled.kernel import Int64s, kernel, small_kernel

VALUE: Final = 0
SYMBOLS: Final = 1
NOTHING: Final = 2
"""What `next_step` finds: a value, a block whose symbols are to be put in order, no value any more."""


@small_kernel
def begin(cursors: Int64s, located: Int64s, marks: Int64s) -> None:
    """Begin with all rows of a key, whose bounds are in `located` int64[2, runs]."""
    for run in range(located.shape[1]):
        cursors[0, run] = located[0, run]
        cursors[1, run] = located[1, run]
    marks[0], marks[1], marks[3] = 0, 0, 0


@small_kernel
def least_head(
    lines: Int64s, cursors: Int64s, level: int, kw: int, span: tuple[int, int], value: Int64s
) -> bool:
    """Write the least words [span[0], span[1]) among the cursors of a level into `value`.

    Return False if no row is left.
    """
    has_row = False
    for run in range(lines.shape[0]):
        row = cursors[4 * level, run]
        if row == cursors[4 * level + 1, run]:
            continue
        smaller = not has_row
        for word in range(span[0], span[1]):
            mine = read(lines, run, kw + word, row)
            if smaller:
                value[word] = mine
            elif mine != value[word]:
                if mine > value[word]:
                    break
                smaller = True
                value[word] = mine
        has_row = True
    return has_row


@small_kernel
def enter_block(
    lines: Int64s, cursors: Int64s, level: int, kw: int, span: tuple[int, int], value: Int64s
) -> None:
    """Make the rows with these words the block of a level, and move its cursors past them.

    Requires: no row at a cursor has lesser words, so the block begins at the cursor, or has none of its run.
    """
    for run in range(lines.shape[0]):
        first, last = cursors[4 * level, run], cursors[4 * level + 1, run]
        for word in range(span[0], span[1]):
            if first < last:
                if read(lines, run, kw + word, first) != value[word]:
                    last = first
                elif last - first > 1:
                    last = first_from(lines, run, kw + word, first + 1, last, value[word], np.int64(1))
        cursors[4 * level + 2, run] = first
        cursors[4 * level + 3, run] = last
        cursors[4 * level, run] = last


@small_kernel
def enter_symbol(lines: Int64s, cursors: Int64s, level: int, column: int, symbol: int) -> None:
    """Let the next level begin with the rows of the block that have this symbol in `column`."""
    for run in range(lines.shape[0]):
        first, last = cursors[4 * level + 2, run], cursors[4 * level + 3, run]
        first = first_from(lines, run, column, first, last, symbol, np.int64(0))
        cursors[4 * level + 4, run] = first
        cursors[4 * level + 5, run] = first_from(lines, run, column, first, last, symbol, np.int64(1))


@kernel
def symbols_of(lines: Int64s, cursors: Int64s, level: int, column: int) -> Int64s:
    """Return the different symbols of a block: int64[3, n], in the second line, ascending."""
    symbols = np.empty((3, 8), np.int64)
    count = np.int64(0)
    for run in range(lines.shape[0]):
        row, last = cursors[4 * level + 2, run], cursors[4 * level + 3, run]
        while row < last:
            symbol = read(lines, run, column, row)
            if count == symbols.shape[1]:
                symbols = more_rows(symbols, count)
            symbols[0, count], symbols[1, count], symbols[2, count] = 0, symbol, 1
            count += 1
            row = first_from(lines, run, column, row, last, symbol, np.int64(1))
    few = np.empty((3, count), np.int64)
    for line in range(3):
        for index in range(count):
            few[line, index] = symbols[line, index]
    return few if count == 1 else sort_words(few)


@kernel
def rank_of(ranks: Int64s, symbol: int) -> int:
    """Return the rank of a symbol, ≥ 0; -1 if it is not in `ranks`."""
    low, high = np.int64(0), ranks.shape[1]
    while low < high:
        middle = (low + high) >> 1
        if ranks[0, middle] < symbol:
            low = middle + 1
        else:
            high = middle
    return ranks[1, low] if low < ranks.shape[1] and ranks[0, low] == symbol else np.int64(-1)


@kernel
def with_symbols(
    source: tuple[Int64s, Int64s, Int64s, int], cursors: Int64s, waiting: Int64s, marks: Int64s
) -> Int64s:
    """Put the symbols of the block at hand on the stack, the first in order on top.

    Return the stack, or a larger copy.
    """
    lines, levels, ranks, kw = source
    level = marks[0]
    symbols = symbols_of(lines, cursors, level, kw + levels[0, level])
    count = symbols.shape[1]
    if count > 1:
        for index in range(count):
            rank = rank_of(ranks, symbols[1, index])
            if rank < 0:
                if marks[2] == waiting.shape[1]:
                    waiting = more_rows(waiting, marks[2])
                waiting[1, marks[2]] = symbols[1, index]
                marks[2] += 1
            symbols[0, index] = levels[1, level] * rank
        symbols = sort_words(symbols)
    if marks[1] + count > waiting.shape[1]:
        waiting = more_rows(waiting, marks[1] + count)
    for index in range(count):
        waiting[0, marks[1] + index] = symbols[1, count - 1 - index]
    marks[1] += count
    return waiting


@small_kernel
def next_step(
    source: tuple[Int64s, Int64s, Int64s, int],
    cursors: Int64s,
    waiting: Int64s,
    marks: Int64s,
    value: Int64s,
) -> int:
    """Go on to the next value in order; return VALUE, SYMBOLS or NOTHING.

    The rows of a value are the block of the last level. After SYMBOLS the caller calls `with_symbols`, and
    then this function again: so it makes no array, and can be a part of the loop that calls it.

    source   lines, levels, ranks, and the number of key words of a row
    value    int64[words]: gets the value
    """
    lines, levels, _, kw = source
    last = levels.shape[1] - 1
    while marks[0] >= 0:
        level = marks[0]
        start = levels[0, level - 1] + 1 if level > 0 else np.int64(0)
        stop = levels[0, level]
        if level < last and marks[1] > marks[3 + level]:
            marks[1] -= 1
            value[stop] = waiting[0, marks[1]]
            enter_symbol(lines, cursors, level, kw + stop, value[stop])
            marks[0] = level + 1
            marks[3 + level + 1] = marks[1]
        elif not least_head(lines, cursors, level, kw, (start, stop), value):
            marks[0] = level - 1
        else:
            enter_block(lines, cursors, level, kw, (start, stop), value)
            return VALUE if level == last else SYMBOLS
    return NOTHING
