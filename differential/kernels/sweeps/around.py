"""The rows of a large group around those that change, in their order, without reading the others.

The rows of a key are sorted by their words in each run. A *stretch* has changed rows, and on either side the
next `width` rows that are there and do not change; changes that are nearer to each other are in one stretch.

    ready    int64[kw + vw + 2, n]: changed rows of one time, sorted, consolidated
    result   int64[vw + 4, m]: the words of a row, its multiplicity before, by how much it changes, the number
             of its stretch, and the number of the row of `ready` where its key begins. Rows ascend in each
             stretch.

Requires: all rows of the table count at the time of the changes. Cost: for each change a search in each run,
and the rows of its stretch.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.closure import key_end
from differential.kernels.history.history import more_rows
from differential.kernels.merging.merge import first_rows
from differential.kernels.rows.memory import read
from differential.kernels.rows.search import cursors_of, locate
from progress.compiled.kernel import Int64s, kernel


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
def begin_at(
    table: Int64s, cursors: Int64s, kw_vw: tuple[int, int], ready: Int64s, row: int, at: Int64s
) -> None:
    """Set `at` to the first row of the key in each run that is not before a changed row."""
    for run in range(table.shape[0]):
        low, high = cursors[0, run], cursors[1, run]
        while low < high:
            middle = (low + high) >> 1
            if compare_row(table, (run, middle), kw_vw, ready, row, kw_vw[0]) < 0:
                low = middle + 1
            else:
                high = middle
        at[run] = low


@kernel
def go_back(table: Int64s, cursors: Int64s, kw_vw: tuple[int, int], at: Int64s, width: int) -> None:
    """Move `at` back over the last `width` rows that are there, and those between that are not."""
    kw, vw = kw_vw
    diffs = kw + vw + 1
    found = np.int64(0)
    while found < width:
        last = np.int64(-1)
        for run in range(table.shape[0]):
            if at[run] > cursors[0, run] and (
                last < 0 or compare_rows(table, (last, at[last] - 1), (run, at[run] - 1), kw, vw) < 0
            ):
                last = run
        if last < 0:
            return
        row, total = at[last] - 1, np.int64(0)
        for run in range(table.shape[0]):
            while (
                at[run] > cursors[0, run]
                and compare_rows(table, (last, row), (run, at[run] - 1), kw, vw) == 0
            ):
                at[run] -= 1
                total += read(table, run, diffs, at[run])
        found += total > 0


@kernel
def next_row(
    table: Int64s,
    cursors: Int64s,
    kw_vw: tuple[int, int],
    at: Int64s,
    changed: tuple[Int64s, int, int],
    out: tuple[Int64s, int],
) -> int:
    """Write the next row, from runs or among the changes [at, end), and move on. Return -1 if there is none,
    1 if it changes, else 0.
    """
    (kw, vw), (ready, next_change, end), (rows, row) = kw_vw, changed, out
    first = np.int64(-1)
    for run in range(table.shape[0]):
        if at[run] < cursors[1, run] and (
            first < 0 or compare_rows(table, (run, at[run]), (first, at[first]), kw, vw) < 0
        ):
            first = run
    order = np.int64(1)
    if first >= 0 and next_change < end:
        order = compare_row(table, (first, at[first]), kw_vw, ready, next_change, kw)
    elif first >= 0:
        order = np.int64(-1)
    elif next_change >= end:
        return -1
    before = np.int64(0)
    for word in range(vw):
        rows[word, row] = (
            ready[kw + word, next_change] if order > 0 else read(table, first, kw + word, at[first])
        )
    if order <= 0:
        for run in range(table.shape[0]):
            while (
                at[run] < cursors[1, run] and compare_row(table, (run, at[run]), (kw, vw), rows, row, 0) == 0
            ):
                before += read(table, run, kw + vw + 1, at[run])
                at[run] += 1
    rows[vw, row] = before
    rows[vw + 1, row] = ready[kw + vw + 1, next_change] if order >= 0 else np.int64(0)
    return 1 if order >= 0 else 0


@kernel
def rows_around(ready: Int64s, table: Int64s, kw: int, vw: int, width: int) -> Int64s:
    """Return the rows of all stretches; see above."""
    cursors, at = cursors_of(table), np.zeros(table.shape[0], np.int64)
    out = np.empty((vw + 4, 4 * ready.shape[1] * (width + 1) + 8), np.int64)
    count = number = end = np.int64(0)
    while end < ready.shape[1]:
        key = end
        end, _ = key_end(ready, key, kw, kw + vw)
        locate(table, cursors, ready, key, kw)
        change = key
        while change < end:
            begin_at(table, cursors, (kw, vw), ready, change, at)
            go_back(table, cursors, (kw, vw), at, width)
            behind = np.int64(0)
            seen = False
            while not seen or behind < width:
                if count == out.shape[1]:
                    out = more_rows(out, count)
                kind = next_row(table, cursors, (kw, vw), at, (ready, change, end), (out, count))
                if kind < 0:
                    break
                if kind == 1:
                    change += 1
                    behind = np.int64(0)
                    seen = True
                elif seen:
                    behind += out[vw, count] > 0
                out[vw + 2, count], out[vw + 3, count] = number, key
                count += 1
            number += 1
    return first_rows(out, count)
