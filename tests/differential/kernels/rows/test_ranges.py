"""ranges.py: the rows of some keys, out of all runs and the head, and no others."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.kernels.rows.ranges import rows_of_keys
from differential.kernels.rows.sort import sort_consolidate
from differential.trace.trace import Trace

Row = tuple[int, int, int, int]
_rows = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3), st.sampled_from([-1, 1, 2]))


@given(st.lists(st.lists(_rows, max_size=8), max_size=4), st.sets(st.integers(-1, 6)), st.booleans())
def test_rows_of_keys_are_those_that_a_trace_has(
    batches: list[list[Row]], keys: set[int], freezes: bool
) -> None:
    trace = Trace(1, 1, 0)
    for batch in batches:
        trace.insert(sort_consolidate(np.array(batch, np.int64).reshape(-1, 4).T.copy()))
        if freezes:
            trace.freeze_head()
    wanted: Counter[tuple[int, int, int]] = Counter()
    for *row, diff in trace.words().T.tolist():
        if row[0] in keys:
            wanted[tuple(row)] += diff
    found: Counter[tuple[int, int, int]] = Counter()
    for *row, diff in rows_of_keys(trace.table, np.array([sorted(keys)], np.int64), 1).T.tolist():
        found[tuple(row)] += diff
    assert found == wanted


def test_rows_of_keys_are_found_in_runs_with_directories() -> None:
    words = np.array([np.repeat(np.arange(5_000), 4), np.tile(np.arange(4), 5_000)])
    rows = np.vstack([words, np.zeros((1, 20_000), np.int64), np.ones((1, 20_000), np.int64)])
    trace = Trace(1, 1, 0)
    trace.insert(sort_consolidate(rows))
    found = rows_of_keys(trace.table, np.array([[0, 7, 4_999, 5_000]]), 1)
    assert found[:2].T.tolist() == [[key, value] for key in (0, 7, 4_999) for value in range(4)]
