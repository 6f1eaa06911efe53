"""All rows of some keys of a trace, out of its runs: rows that are to move elsewhere."""

from __future__ import annotations

import numpy as np

from differential.kernels.rows.memory import HEADER, ROWS, load
from differential.kernels.rows.search import cursors_of, locate
from progress.compiled.kernel import Int64s, kernel


@kernel
def rows_of_keys(table: Int64s, keys: Int64s, kw: int) -> Int64s:
    """Return the rows whose first `kw` words are a column of `keys`, as they are stored: neither sorted nor
    summed.

    Requires: keys ascend, each once. Cost: two searches for each key and run, and a pass over the result.
    """
    columns = (table.shape[1] - HEADER) // 3
    cursors = cursors_of(table)
    total = np.int64(0)
    for at in range(keys.shape[1]):
        total += locate(table, cursors, keys, at, kw)
    out = np.empty((columns, total), np.int64)
    cursors = cursors_of(table)
    out_rows = np.int64(0)
    for at in range(keys.shape[1]):
        locate(table, cursors, keys, at, kw)
        for run in range(table.shape[0]):
            if table[run, ROWS] == 0:
                continue
            first, count = cursors[0, run], cursors[1, run] - cursors[0, run]
            for column in range(columns):
                entry = HEADER + 3 * column
                address, width, base = table[run, entry], table[run, entry + 1], table[run, entry + 2]
                for row in range(count):
                    out[column, out_rows + row] = load(address, width, base, first + row)
            out_rows += count
    return out
