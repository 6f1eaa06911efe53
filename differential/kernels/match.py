"""Matching rows that came in with the history of the other side: the work of a join.

Every pair of rows with equal keys makes one row: time = lub of the two times, diff = product of the diffs.
What its words are is said by a projection, `int64[2, words]`: where each comes from, and which one (or the constant).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.memory import read
from differential.kernels.search import locate
from progress._compile import Int64s, kernel
from progress.time_words import word_lub

FROM_DELTA: Final = 0
FROM_TRACE: Final = 1
CONSTANT: Final = 2


@kernel
def match(
    delta: Int64s, start: int, table: Int64s, kw: int, projection: Int64s, guards: int, rows_max: int
) -> tuple[Int64s, int]:
    """Pairs of the rows [start, next) of `delta` with all rows of a trace: (words, next).

    delta        int64[kw + its values + 2, n], sorted
    projection   int64[2, out words]: FROM_DELTA and column, FROM_TRACE and column, or CONSTANT and value
    Ensures: next is n, or as small as it may be with at least `rows_max` pairs made. Not consolidated.
    """
    columns, rows = delta.shape
    runs = table.shape[0]
    trace_time = (table.shape[1] - 3) // 3 - 2
    pairs = 0
    stop = start
    cursors = np.zeros((2, runs), np.int64)
    while stop < rows and pairs < rows_max:
        pairs += locate(table, cursors, delta, stop, kw)
        stop += 1
    words = projection.shape[1]
    out = np.empty((words + 2, pairs), np.int64)
    if pairs == 0:
        return out, stop
    cursors[:] = 0
    made = 0
    for row in range(start, stop):
        locate(table, cursors, delta, row, kw)
        time = delta[columns - 2, row]
        diff = delta[columns - 1, row]
        for run in range(runs):
            for other in range(cursors[0, run], cursors[1, run]):
                for word in range(words):
                    source = projection[0, word]
                    if source == FROM_TRACE:
                        out[word, made] = read(table, run, projection[1, word], other)
                    elif source == FROM_DELTA:
                        out[word, made] = delta[projection[1, word], row]
                    else:
                        out[word, made] = projection[1, word]
                out[words, made] = word_lub(time, read(table, run, trace_time, other), guards)
                out[words + 1, made] = diff * read(table, run, trace_time + 1, other)
                made += 1
    return out, stop
