"""Merging runs piece by piece, times advanced: what accumulates later is what accumulated before.

Large merges, and what a trace makes of them, are in `test_merging.py` and `test_trace.py`.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, accumulated, as_words, consolidated, less_equal, rows_of
from strategies_words import CODES, frontiers, rows

from differential.kernels.merging.merge_runs import sort_times
from differential.trace.merging import Merging
from differential.trace.run import Run
from progress.times.word_order import word_advance

GUARDS = CODES[2].guards


@given(
    rows(2).filter(consolidated), rows(2).filter(consolidated), frontiers(2).filter(len), st.integers(1, 9)
)
def test_pieces_make_what_one_sort_of_the_advanced_rows_makes(
    one: list[Row], other: list[Row], since: np.typing.NDArray[np.int64], budget: int
) -> None:
    runs = [Run.from_words(as_words(consolidated(some), 4), GUARDS, packed=True) for some in (one, other)]
    merge = Merging(runs[0], runs[1], since, GUARDS)
    while not merge.is_done:
        assert merge.work(budget) > 0
    result = merge.result()
    merged = [] if result is None else rows_of(result.words())
    moved = [(*row[:2], int(word_advance(row[2], since, GUARDS)), row[3]) for row in one + other]
    assert merged == consolidated(moved)
    for time in [CODES[2].pack((a, b)) for a in range(5) for b in range(5)]:
        if any(less_equal(int(bound), time, GUARDS) for bound in since):
            assert accumulated(merged, time, GUARDS) == accumulated(one + other, time, GUARDS)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([-1, 1])), max_size=60))
def test_times_of_a_group_are_sorted_and_summed(pairs: list[tuple[int, int]]) -> None:
    times, diffs = np.array([0, *(t for t, _ in pairs)]), np.array([9, *(d for _, d in pairs)])
    count = sort_times(times, diffs, 1, len(pairs))
    kept = list(zip(times[1 : 1 + count].tolist(), diffs[1 : 1 + count].tolist(), strict=True))
    assert kept == consolidated(pairs)
    assert (times[0], diffs[0]) == (0, 9)
