"""The stretches of large groups that changes touch, read in their order, without reading the other rows.

The rows of a key are sorted by their words in each run. A *stretch* has changed rows, and enough rows before
and behind them; changes that are near each other are in one stretch. Rows whose first `EDGE` words are equal
are a *block*.

    ready    int64[kw + vw + 2, n]: changed rows, each key at one time; sorted, consolidated
    marks    int64[kw + vw + ·, m]: some rows of some keys, sorted; more words behind them say what they mean
    shape    int64[14], see the names below
    rows     int64[vw + 2, m]: the words of a row, its multiplicity before, and by how much it changes;
             ascending within each stretch
    spans    int64[9, stretches]: first row and end; the column of `ready` where its key begins; the last mark
             before it, or -1; the marks within it (first and end; up to the last of the key if the stretch
             ends with its group); the last changed row; 1 if the stretch ends with its group; and the last
             row that may have another answer, if all that is before it and changes has come to the same there

Rows look *back* and *ahead*, so far as `shape` says. A change gives other answers to rows before it, which
look ahead as far as it, and these look back at rows further before; behind it, the other way round. So a
stretch reaches twice in each direction: from its changes to the rows that see them, and from there to what
these see.

Requires: all rows of the table count at the times of the changes. Cost: for each change a search in each run,
and the rows of its stretch; rows that stand together in one run are copied word by word.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.history.closure import key_end
from differential.kernels.history.history import more_rows
from differential.kernels.merging.merge import first_rows
from differential.kernels.rows.memory import HEADER, load, read
from differential.kernels.rows.search import compare_keys, cursors_of, locate
from differential.kernels.sweeps.frames import is_above, is_below
from progress.compiled.kernel import Int64s, kernel

KW: Final = 0
VW: Final = 1
LIMIT: Final = 2
"""The number of rows that are read behind the last change before the last row that may change, at least."""
EDGE: Final = 3
"""Rows whose first so many words are equal are a block."""
FLAG: Final = 4
"""The word that says whether the value of `WORD` is null, or -1."""
WORD: Final = 5
"""The word whose values are read up to `DISTANCE`; -1: there is none."""
WHOLE: Final = 6
"""1: a stretch is the whole group."""
MARKED: Final = 7
"""1: a stretch begins behind a mark, or with its group."""

BACK: Final = 0
AHEAD: Final = 1
NEAR: Final = 8
"""NEAR + BACK, NEAR + AHEAD: the number of rows that a row looks back or ahead, at most."""
BLOCKS: Final = 10
"""The same in whole blocks, beside its own; -1: none, nor its own."""
DISTANCE: Final = 12
"""The same in values of `WORD`."""

_BEHIND: Final = 0
_BLOCKS: Final = 1
_COUNTED: Final = 2
_SIDE: Final = 3


@kernel
def compare_row(
    table: Int64s, at: tuple[int, int], kw_vw: tuple[int, int], rows: Int64s, row: int, first: int
) -> int:
    """Return -1, 0 or 1: how the values of a row of a run, (run, row), compare with those of `rows`, whose
    lines of values begin at `first`.
    """
    kw, vw = kw_vw
    for word in range(vw):
        mine, other = read(table, at[0], kw + word, at[1]), rows[first + word, row]
        if mine != other:
            return -1 if mine < other else 1
    return 0


@kernel
def compare_rows(table: Int64s, one: tuple[int, int], other: tuple[int, int], kw: int, vw: int) -> int:
    """Return -1, 0 or 1: how the values of two rows of runs compare."""
    for word in range(vw):
        a, b = read(table, one[0], kw + word, one[1]), read(table, other[0], kw + word, other[1])
        if a != b:
            return -1 if a < b else 1
    return 0


@kernel
def compare_words(one: Int64s, row: int, first: int, other: Int64s, at: int, begin: int, vw: int) -> int:
    """Return -1, 0 or 1: how `vw` words of a row compare with those of another table's row."""
    for word in range(vw):
        a, b = one[first + word, row], other[begin + word, at]
        if a != b:
            return -1 if a < b else 1
    return 0


@kernel
def find_row(
    table: Int64s,
    run: int,
    span: tuple[int, int],
    kw_vw: tuple[int, int],
    row_of: tuple[Int64s, int, int],
    past: int,
) -> int:
    """Return the first row of the span of a run that is not before a row; if `past` is 1, that behind it.

    row_of   a table, its column, and its line where the values of the row begin
    """
    (rows, row, first), low, high = row_of, span[0], span[1]
    step, end = np.int64(1), span[0]
    while end < span[1] and compare_row(table, (run, end), kw_vw, rows, row, first) < past:
        low = end + 1
        end += step
        step <<= 1
    high = min(end, span[1])
    while low < high:
        middle = (low + high) >> 1
        if compare_row(table, (run, middle), kw_vw, rows, row, first) < past:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def find_mark(
    marks: Int64s, span: tuple[int, int], kw_vw: tuple[int, int], row_of: tuple[Int64s, int, int], past: int
) -> int:
    """Return the first mark of a key, in a span, not before a row; if `past` is 1, the one behind it."""
    (rows, row, first), low, high = row_of, span[0], span[1]
    while low < high:
        middle = (low + high) >> 1
        if compare_words(marks, middle, kw_vw[0], rows, row, first, kw_vw[1]) < past:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def marks_of(marks: Int64s, keys: Int64s, key: int, kw: int) -> tuple[int, int]:
    """Return the marks of a key: the first, and the one behind the last."""
    ends = np.zeros(2, np.int64)
    for side in range(2):
        low, high = np.int64(0), marks.shape[1]
        while low < high:
            middle = (low + high) >> 1
            if compare_keys(marks, middle, keys, key, kw) < side:
                low = middle + 1
            else:
                high = middle
        ends[side] = low
    return ends[0], ends[1]


@kernel
def is_far(
    table: Int64s, at: tuple[int, int], shape: Int64s, row_of: tuple[Int64s, int, int], side: int, before: int
) -> bool:
    """Return True if the value of a row of a run, `before` another one (1) or behind it (0), is too far from
    that for rows to see it that look so far to a side.

    row_of   see `find_row`
    """
    kw, flag, word, (rows, row, first) = shape[KW], shape[FLAG], shape[WORD], row_of
    if word < 0:
        return True
    if flag >= 0 and read(table, at[0], kw + flag, at[1]) != rows[first + flag, row]:
        return True
    value, other = read(table, at[0], kw + word, at[1]), rows[first + word, row]
    if before != 0:
        return is_below(value, other, -shape[DISTANCE + side])
    return is_above(value, other, shape[DISTANCE + side])


@kernel
def go_back(table: Int64s, cursors: Int64s, shape: Int64s, at: Int64s, side: int, first: Int64s) -> None:
    """Move `at` back from the place of a row, as far as rows look to a side; first[:, 0] is that row, and
    then the first one behind `at`.
    """
    kw, vw, rows, blocks = shape[KW], shape[VW], np.int64(0), np.int64(0)
    counted = True
    for word in range(vw):
        first[word, 1] = first[word, 0]
    from_row = (first, np.int64(1), np.int64(0))
    while True:
        last = np.int64(-1)
        for run in range(table.shape[0]):
            if at[run] > cursors[0, run] and (
                last < 0 or compare_rows(table, (last, at[last] - 1), (run, at[run] - 1), kw, vw) < 0
            ):
                last = run
        if last < 0:
            return
        here = (last, at[last] - 1)
        is_new = compare_row(table, here, (kw, shape[EDGE]), first, np.int64(0), np.int64(0)) != 0
        if (
            rows >= shape[NEAR + side]
            and (shape[BLOCKS + side] < 0 or (is_new and blocks >= shape[BLOCKS + side]))
            and is_far(table, here, shape, from_row, side, 1)
        ):
            return
        counted = counted and not is_new
        for word in range(vw):
            first[word, 0] = read(table, here[0], kw + word, here[1])
        total = np.int64(0)
        for run in range(table.shape[0]):
            while (
                at[run] > cursors[0, run]
                and compare_row(table, (run, at[run] - 1), (kw, vw), first, np.int64(0), np.int64(0)) == 0
            ):
                at[run] -= 1
                total += read(table, run, kw + vw + 1, at[run])
        if total > 0:
            rows += 1
            blocks += not counted
            counted = True


@kernel
def begin_stretch(
    table: Int64s,
    cursors: Int64s,
    marked: tuple[Int64s, int, int],
    shape: Int64s,
    ready: Int64s,
    change: int,
    both: tuple[Int64s, Int64s],
) -> int:
    """Set `at` to where the stretch of a change begins; return the last mark before it, or -1.

    both   `at`, and int64[vw, 2] to write rows to
    """
    (marks, low, high), (at, first), kw_vw = marked, both, (shape[KW], shape[VW])
    for run in range(table.shape[0]):
        at[run] = cursors[0, run]
    if shape[WHOLE] != 0:
        return -1
    for run in range(table.shape[0]):
        span = (cursors[0, run], cursors[1, run])
        at[run] = find_row(table, run, span, kw_vw, (ready, change, kw_vw[0]), 0)
    for word in range(kw_vw[1]):
        first[word, 0] = ready[kw_vw[0] + word, change]
    go_back(table, cursors, shape, at, AHEAD, first)
    go_back(table, cursors, shape, at, BACK, first)
    if shape[MARKED] == 0:
        return -1
    mark = find_mark(marks, (low, high), kw_vw, (first, np.int64(0), np.int64(0)), 0) - 1
    for run in range(table.shape[0]):
        span = (cursors[0, run], cursors[1, run])
        at[run] = span[0] if mark < low else find_row(table, run, span, kw_vw, (marks, mark, kw_vw[0]), 1)
    return mark if mark >= low else np.int64(-1)


@kernel
def least_run(table: Int64s, cursors: Int64s, kw_vw: tuple[int, int], at: Int64s, but: int) -> int:
    """Return the run whose next row is the first, other than run `but`; -1 if there is none."""
    first = np.int64(-1)
    for run in range(table.shape[0]):
        if (
            run != but
            and at[run] < cursors[1, run]
            and (first < 0 or compare_rows(table, (run, at[run]), (first, at[first]), kw_vw[0], kw_vw[1]) < 0)
        ):
            first = run
    return first


@kernel
def copy_rows_of(
    table: Int64s, run: int, span: tuple[int, int], kw_vw: tuple[int, int], rows: Int64s, count: int
) -> int:
    """Write the rows of a span of a run behind `count` rows, equal ones as one; return the new count."""
    (first, last), (kw, vw) = span, kw_vw
    for line in range(vw + 1):
        entry = HEADER + 3 * (kw + line + (line == vw))
        address, width, base = table[run, entry], table[run, entry + 1], table[run, entry + 2]
        for row in range(first, last):
            rows[line, count + row - first] = load(address, width, base, row)
    end = count
    for row in range(count, count + last - first):
        if end > count and compare_words(rows, end - 1, np.int64(0), rows, row, np.int64(0), vw) == 0:
            rows[vw, end - 1] += rows[vw, row]
            continue
        if end < row:
            for line in range(vw + 1):
                rows[line, end] = rows[line, row]
        rows[vw + 1, end] = 0
        end += 1
    return end


@kernel
def take_row(
    table: Int64s,
    cursors: Int64s,
    kw_vw: tuple[int, int],
    at: Int64s,
    changed: tuple[Int64s, int, int],
    rows: Int64s,
    count: int,
) -> None:
    """Write the next row as row `count`, from runs and changes, and move `at` over it.

    changed   the changes, the next one, and how that compares with the next row of runs: before (1), equal,
              or behind (-1)
    """
    (kw, vw), (ready, change, order) = kw_vw, changed
    before = np.int64(0)
    if order > 0:
        for word in range(vw):
            rows[word, count] = ready[kw + word, change]
    else:
        first = least_run(table, cursors, kw_vw, at, np.int64(-1))
        for word in range(vw):
            rows[word, count] = read(table, first, kw + word, at[first])
        for run in range(table.shape[0]):
            while (
                at[run] < cursors[1, run]
                and compare_row(table, (run, at[run]), (kw, vw), rows, count, np.int64(0)) == 0
            ):
                before += read(table, run, kw + vw + 1, at[run])
                at[run] += 1
    rows[vw, count] = before
    rows[vw + 1, count] = ready[kw + vw + 1, change] if order >= 0 else np.int64(0)


@kernel
def least_behind(shape: Int64s, side: int) -> int:
    """Return how many rows are read at least behind the last change (BACK), or behind the last row that may
    have another answer.
    """
    return max(shape[NEAR], shape[LIMIT]) if side == BACK else shape[NEAR + side]


@kernel
def is_enough(
    table: Int64s,
    here: tuple[int, int],
    shape: Int64s,
    state: Int64s,
    from_row: tuple[Int64s, int, int],
    last: Int64s,
    row: int,
) -> bool:
    """Return True if no row that looks so far to a side as `state` says sees both row `here` of a run and
    `from_row`; the row before it is row `row` of `last`.
    """
    side = state[_SIDE]
    if shape[WHOLE] != 0 or state[_BEHIND] < least_behind(shape, side):
        return False
    if shape[BLOCKS + side] >= 0:
        if state[_BLOCKS] < shape[BLOCKS + side]:
            return False
        if compare_row(table, here, (shape[KW], shape[EDGE]), last, row, np.int64(0)) == 0:
            return False
    return is_far(table, here, shape, from_row, side, 0)


@kernel
def is_end(
    table: Int64s,
    here: tuple[int, int],
    shape: Int64s,
    state: Int64s,
    changed: tuple[Int64s, int],
    rows: Int64s,
    count: int,
) -> bool:
    """Return True if a stretch may end before row `here` of a run; `changed`: the last change. Note the last
    row that may have another answer as soon as it is known.
    """
    row = count - 1
    if state[_SIDE] == BACK:
        if not is_enough(table, here, shape, state, (changed[0], changed[1], shape[KW]), rows, row):
            return False
        state[8] = row
        begin_side(state, AHEAD)
    return is_enough(table, here, shape, state, (rows, state[8], np.int64(0)), rows, row)


@kernel
def begin_side(state: Int64s, side: int) -> None:
    """Count rows from here on, as far as rows look to a side."""
    state[_BEHIND], state[_BLOCKS], state[_COUNTED], state[_SIDE] = 0, 0, 1, side


@kernel
def take_many(
    table: Int64s,
    cursors: Int64s,
    shape: Int64s,
    at: Int64s,
    run: int,
    next_change: tuple[Int64s, int, int],
    most: int,
    both: tuple[Int64s, int, Int64s],
) -> tuple[Int64s, int]:
    """Write up to `most` rows of a run that come before all others; return the rows, and the new count.

    next_change   the changes, the next one, and their end
    both          the rows, their count, and int64[vw, 2] to write to
    """
    (ready, change, end), (rows, count, scratch), kw_vw = next_change, both, (shape[KW], shape[VW])
    stop = min(cursors[1, run], at[run] + most)
    if change < end:
        stop = find_row(table, run, (at[run], stop), kw_vw, (ready, change, kw_vw[0]), 0)
    other = least_run(table, cursors, kw_vw, at, run)
    if other >= 0:
        for word in range(kw_vw[1]):
            scratch[word, 1] = read(table, other, kw_vw[0] + word, at[other])
        stop = find_row(table, run, (at[run], stop), kw_vw, (scratch, np.int64(1), np.int64(0)), 0)
    # Rows of one value stand together, and are taken together.
    while at[run] < stop < cursors[1, run] and (
        compare_rows(table, (run, stop - 1), (run, stop), kw_vw[0], kw_vw[1]) == 0
    ):
        stop += 1
    if stop > at[run]:
        if count + stop - at[run] > rows.shape[1]:
            rows = more_rows(rows, count + stop - at[run])
        count = copy_rows_of(table, run, (at[run], stop), kw_vw, rows, count)
        at[run] = stop
    return rows, count


@kernel
def count_behind(shape: Int64s, state: Int64s, rows: Int64s, row: int) -> None:
    """Count a row behind the last change, and its block, if it is there."""
    if rows[shape[VW], row] > 0:
        state[_BEHIND] += 1
    if shape[BLOCKS + state[_SIDE]] > 0 and row > 0:
        if compare_words(rows, row - 1, np.int64(0), rows, row, np.int64(0), shape[EDGE]) != 0:
            state[_COUNTED] = 0
        if rows[shape[VW], row] > 0 and state[_COUNTED] == 0:
            state[_BLOCKS] += 1
            state[_COUNTED] = 1


@kernel
def read_stretch(
    table: Int64s,
    cursors: Int64s,
    marked: tuple[Int64s, int, int],
    shape: Int64s,
    changed: tuple[Int64s, int, int],
    walk: tuple[Int64s, Int64s, Int64s, Int64s],
    out: tuple[Int64s, int],
) -> tuple[Int64s, int]:
    """Read the stretch that begins at `at`; return the rows, and their number with it.

    changed   the changes, the first of the stretch, and where those of the key end
    walk      `at`; the same of the next stretch; int64[vw, 2] to write to; and int64[9], in which it returns
              the next change [4], the last changed row [5], 1 if the group ends [6], the next mark [7], the
              last row that may have another answer [8]
    """
    (ready, change, end), (at, ahead, scratch, state), (rows, count) = changed, walk, out
    kw, vw = shape[KW], shape[VW]
    last, rushes = np.int64(-1), False
    state[6], state[7], state[8] = 0, -1, -1
    while True:
        if count + 1 >= rows.shape[1]:
            rows = more_rows(rows, count + 1)
        run = least_run(table, cursors, (kw, vw), at, np.int64(-1))
        if run < 0 and change == end:
            state[6] = 1
            break
        order = np.int64(1) if run < 0 else np.int64(-1)
        if run >= 0 and change < end:
            order = compare_row(table, (run, at[run]), (kw, vw), ready, change, kw)
        if order < 0:
            here = (run, at[run])
            if (
                last >= 0
                and not rushes
                and is_end(table, here, shape, state, (ready, change - 1), rows, count)
            ):
                if change == end:
                    break
                mark = begin_stretch(table, cursors, marked, shape, ready, change, (ahead, scratch))
                for other in range(table.shape[0]):
                    rushes = rushes or ahead[other] < at[other]
                if not rushes:
                    for other in range(table.shape[0]):
                        at[other] = ahead[other]
                    state[7] = mark
                    break
            is_free = shape[WHOLE] != 0 or rushes or last < 0
            side = state[_SIDE]
            most = cursors[1, run] if is_free else least_behind(shape, side) - state[_BEHIND]
            if most > 1 and (shape[BLOCKS + side] <= 0 or is_free):
                was = count
                rows, count = take_many(
                    table, cursors, shape, at, run, (ready, change, end), most, (rows, count, scratch)
                )
                if count > was:
                    for row in range(was, count):
                        state[_BEHIND] += rows[vw, row] > 0
                    continue
        take_row(table, cursors, (kw, vw), at, (ready, change, order), rows, count)
        if order >= 0:
            last, rushes = count, False
            begin_side(state, BACK)
            change += 1
        else:
            count_behind(shape, state, rows, count)
        count += 1
    state[4], state[5] = change, last
    return rows, count


@kernel
def stretch_rows(ready: Int64s, table: Int64s, marks: Int64s, shape: Int64s) -> tuple[Int64s, Int64s]:
    """Return the rows of all stretches, and the spans; see above."""
    kw, vw = shape[KW], shape[VW]
    cursors, at, ahead = (
        cursors_of(table),
        np.zeros(table.shape[0], np.int64),
        np.zeros(table.shape[0], np.int64),
    )
    scratch, state = np.empty((vw, 2), np.int64), np.zeros(9, np.int64)
    rows, spans = np.empty((vw + 2, 2 * ready.shape[1] + 64), np.int64), np.empty((9, 8), np.int64)
    count = number = end = np.int64(0)
    while end < ready.shape[1]:
        key = change = end
        end, _ = key_end(ready, key, kw, kw + vw)
        locate(table, cursors, ready, key, kw)
        low, high = marks_of(marks, ready, key, kw)
        mark = begin_stretch(table, cursors, (marks, low, high), shape, ready, change, (at, scratch))
        while change < end:
            first = count
            rows, count = read_stretch(
                table,
                cursors,
                (marks, low, high),
                shape,
                (ready, change, end),
                (at, ahead, scratch, state),
                (rows, count),
            )
            if number == spans.shape[1]:
                spans = more_rows(spans, number)
            spans[0, number], spans[1, number], spans[2, number] = first, count, key
            spans[3, number], spans[4, number] = mark, mark + 1 if mark >= 0 else low
            spans[5, number] = (
                high
                if state[6] != 0
                else find_mark(marks, (low, high), (kw, vw), (rows, count - 1, np.int64(0)), 1)
            )
            spans[6, number], spans[7, number], spans[8, number] = state[5], state[6], state[8]
            number += 1
            change, mark = state[4], state[7]
    return first_rows(rows, count), first_rows(spans, number)
