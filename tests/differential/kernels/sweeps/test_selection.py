"""selection.py: the value at a place of several sorted runs, whatever their differences are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sweeps.selection import BLOCK_ROWS, value_at, weight
from differential.trace.run import Run
from differential.trace.trace import Trace

GUARDS = 1 << 62
pieces = st.lists(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 3)), min_size=1, max_size=9), min_size=1, max_size=4
)


@given(pieces, st.integers(0, 60))
def test_value_at_a_place_is_that_of_one_sorted_list(runs: list[list[tuple[int, int]]], place: int) -> None:
    trace = Trace(0, 1, GUARDS)
    for time, rows in enumerate(runs):
        words = np.array([(value, time, count) for value, count in rows], np.int64).T.copy()
        trace.insert_run(Run.from_words(sort_consolidate(words), GUARDS))
    sums, starts = trace.sums(BLOCK_ROWS)
    parts = np.array([np.zeros(len(trace.lines)), trace.lines[:, 0]], np.int64)
    every = sorted(value for rows in runs for value, count in rows for _ in range(count))
    wanted = (every[place], True) if place < len(every) else (0, False)
    assert value_at(trace.lines, 0, parts, place, sums, starts) == wanted


def test_weights_of_blocks_are_those_of_their_rows() -> None:
    diffs = np.arange(1, 5 * BLOCK_ROWS + 8) % 7 + 1
    words = np.array([np.arange(diffs.shape[0]), np.zeros(diffs.shape[0]), diffs], np.int64)
    for packed in (False, True):
        run = Run.from_words(words.copy(), GUARDS, packed)
        sums = run.sums(BLOCK_ROWS)
        for rows in (
            (0, 0),
            (3, 5),
            (0, diffs.shape[0]),
            (BLOCK_ROWS, 3 * BLOCK_ROWS),
            (7, 4 * BLOCK_ROWS + 9),
        ):
            wanted = int(diffs[slice(*rows)].sum())
            assert weight(run.line.reshape(1, -1), (0, 2), rows, sums, 0) == wanted
            assert weight(run.line.reshape(1, -1), (0, 2), rows, sums, -1) == wanted
    assert Run.from_words(np.array([[1, 2], [0, 0], [4, 4]], np.int64), GUARDS).sums(BLOCK_ROWS).size == 0
