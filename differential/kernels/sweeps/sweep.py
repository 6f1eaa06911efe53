"""Going through the rows of groups in order of a time: sessions, and the nearest row of another kind.

    rows      int64[vw + 1, n]: value words, multiplicity; sorted within each group
    bounds    int64[2, g]: the first row of a group, and the one after its last
    result    int64[words + 2, m]: words of the answer, multiplicity, number of the group

Rows whose multiplicity is not positive count as absent. Cost: O(words) for each row, and each answer.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.history.history import more_rows
from differential.kernels.merging.merge import first_rows
from differential.kernels.overflow import wrapped_subtract
from progress.compiled.kernel import Int64s, kernel


@kernel
def put_session(
    out: Int64s, out_rows: int, rows: Int64s, span: tuple[int, int], session: tuple[int, int], group: int
) -> tuple[Int64s, int]:
    """Append the present rows of `span`, a session, with its start and end."""
    vw = rows.shape[0] - 1
    for row in range(span[0], span[1]):
        if rows[vw, row] <= 0:
            continue
        if out_rows == out.shape[1]:
            out = more_rows(out, out_rows)
        for word in range(vw):
            out[word, out_rows] = rows[word, row]
        out[vw, out_rows], out[vw + 1, out_rows] = session[0], session[1]
        out[vw + 2, out_rows], out[vw + 3, out_rows] = rows[vw, row], group
        out_rows += 1
    return out, out_rows


@kernel
def session_answers(rows: Int64s, bounds: Int64s, options: Int64s) -> Int64s:
    """Return each row with the start and the end of its session.

    The first two value words of a row are its time and the time up to which it lasts. Rows that overlap are
    in one session, and a row that begins where another ends is not.
    """
    vw = rows.shape[0] - 1
    out = np.empty((vw + 4, rows.shape[1] + options.shape[0] + 1), np.int64)
    out_rows = np.int64(0)
    for group in range(bounds.shape[1]):
        first = np.int64(-1)
        begin, end = np.int64(0), np.int64(0)
        for row in range(bounds[0, group], bounds[1, group]):
            if rows[vw, row] <= 0:
                continue
            if first >= 0 and rows[0, row] >= end:
                out, out_rows = put_session(out, out_rows, rows, (first, row), (begin, end), group)
                first = np.int64(-1)
            if first < 0:
                first, begin, end = row, rows[0, row], rows[1, row]
            end = max(end, rows[1, row])
        if first >= 0:
            out, out_rows = put_session(out, out_rows, rows, (first, bounds[1, group]), (begin, end), group)
    return first_rows(out, out_rows)


@kernel
def nearest_answers(rows: Int64s, bounds: Int64s, options: Int64s) -> Int64s:
    """Return each left row with the nearest right row: of those at its time or before, or after.

    rows       0 for left rows, 1 for right ones; time, words of left rows, words of right rows
    options    1 if a right row at the same time is near, else 0; 1 to search after the row, 0 before;
               tolerance, or -1; 1 if rows without a near row are left out; the number of an answer's words
               from the left row; and for each word of an answer its position in a row
    """
    vw, words, lefts = rows.shape[0] - 1, options.shape[0] - 5, options[4]
    out = np.empty((words + 2, rows.shape[1] + 1), np.int64)
    out_rows = np.int64(0)
    for group in range(bounds.shape[1]):
        start, stop = bounds[0, group], bounds[1, group]
        middle = first_right(rows, start, stop)
        forward = options[1] != 0
        nearest, right = np.int64(-1), stop - 1 if forward else middle
        for step in range(middle - start):
            row = middle - 1 - step if forward else start + step
            if rows[vw, row] <= 0:
                continue
            while middle <= right < stop:
                is_past = rows[1, right] < rows[1, row] if forward else rows[1, right] > rows[1, row]
                if is_past or (rows[1, right] == rows[1, row] and options[0] == 0):
                    break
                if rows[vw, right] > 0:
                    nearest = right
                right += -1 if forward else 1
            has_near = nearest >= 0
            if has_near and options[2] >= 0:
                earlier, later = (row, nearest) if forward else (nearest, row)
                apart = wrapped_subtract(rows[1, later], rows[1, earlier])
                has_near = 0 <= apart <= options[2]  # below 0: so far apart that the difference wraps
            if not has_near and options[3] != 0:
                continue
            for word in range(words):
                source = options[5 + word]
                if word < lefts:
                    out[word, out_rows] = rows[source, row]
                else:
                    out[word, out_rows] = rows[source, nearest] if has_near else np.int64(0)
            out[words, out_rows], out[words + 1, out_rows] = rows[vw, row], group
            out_rows += 1
    return first_rows(out, out_rows)


@kernel
def first_right(rows: Int64s, start: int, stop: int) -> int:
    """Return the first right row in [start, stop); `stop` if there is none."""
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if rows[0, middle] != 0:
            high = middle
        else:
            low = middle + 1
    return low
