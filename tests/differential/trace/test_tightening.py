"""What merging has made is made as narrow as it can be, in pieces, and stays what it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, rows_of
from strategies_words import CODES, Int64s, rows

from differential.columns.packed.block import reserve
from differential.kernels.rows.columns import encode_words
from differential.kernels.rows.memory import LUB, ROWS
from differential.trace import tightening
from differential.trace.merging import Merging
from differential.trace.run import Run
from differential.trace.tightening import Tightening

GUARDS = CODES[2].guards
WIDE_RANGES = [[0, 1 << 20], [-8, 1 << 20], [0, 1 << 40], [-300, 300]]

narrow = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.integers(-8, 99), st.integers(0, 1 << 40), st.integers(-300, 300)),
    min_size=1,
    max_size=60,
)


@given(narrow, st.integers(1, 9), st.sampled_from([0, 1 << 30]), st.integers(0, 60))
@example([(0, 0, at << 31, 300 - at) for at in range(300)], 9, 0, 15)  # too little would be saved
def test_rows_stay_and_ranges_of_time_and_difference_are_those_of_the_rows(
    some: list[Row], budget: int, saved_min: int, cancelled: int
) -> None:
    """What is given back is gone: nothing of it is read any more."""
    words = as_words(some, 4)
    line, memory = reserve(len(some) + cancelled, np.array(WIDE_RANGES))
    line[ROWS], line[LUB] = len(some), 77
    encode_words(words, line.reshape(1, -1), 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tightening, "_SAVED_BYTES_MIN", saved_min)
        given_back: list[int] = []
        patch.setattr(tightening, "give_back", lambda part: (given_back.append(part.nbytes), part.fill(-1)))
        made = Tightening(line, np.array(WIDE_RANGES), memory, len(some))
        while not made.is_done:
            assert 0 <= made.work(budget) <= budget
    assert made.ranges.tolist() == [
        *WIDE_RANGES[:2],
        *[[min(row[at] for row in some), max(row[at] for row in some)] for at in (2, 3)],
    ]
    run = Run(made.line, made.ranges, made.memory, b"")
    assert (rows_of(run.words()), int(run.line[LUB])) == (some, 77)
    if saved_min == 0:
        tight = reserve(len(some), made.ranges)[1].nbytes
        assert made.memory.nbytes == (
            tight if 8 * (memory.nbytes - tight) >= memory.nbytes else memory.nbytes
        )
    else:
        assert made.memory is memory
    assert sorted(given_back) == given_back and len(given_back) == (0 if made.memory is memory else 3)
    if given_back:
        assert given_back[-1] >= (3 + 3 + 8) * len(some), "all but the last column"


@given(rows(2).filter(len), rows(2).filter(len), st.integers(1, 20))
def test_a_merge_in_any_pieces_is_the_same(older: list[Row], newer: list[Row], budget: int) -> None:
    runs = [consolidated(some) for some in (older, newer)]
    if not all(runs):
        return
    merge = Merging(
        *(Run.from_words(as_words(some, 4), GUARDS, packed=True) for some in runs),
        np.zeros(1, np.int64),
        GUARDS,
    )
    while not merge.is_done:
        merge.work(budget)
    found, wanted = merge.result(), consolidated(older + newer)
    assert (rows_of(found.words()) if found else []) == wanted
    if found:
        diffs = [row[3] for row in wanted]
        assert found.ranges[-1].tolist() == [min(diffs), max(diffs)]


def test_what_is_merged_again_and_again_stays_as_narrow_as_it_is() -> None:
    """Room is made for sums of four times what differences are; these must not add up from merge to merge."""
    rng = np.random.default_rng(5)
    run, sizes = _run_of(rng), []
    for _ in range(6):
        merge = Merging(run, _run_of(rng), np.full(1, 3), GUARDS)
        while not merge.is_done:
            merge.work(10_000)
        found = merge.result()
        assert found is not None
        run = found
        sizes.append(run.memory.nbytes / run.rows)
    assert max(sizes) < 8, "three bytes for the key, as many for the value, one for the difference"


def _run_of(rng: np.random.Generator) -> Run:
    words: Int64s = np.empty((4, 9000), np.int64)
    words[:2] = rng.integers(0, 1 << 20, (2, 9000))
    words[2:] = [[3], [1]]
    words = words[:, np.lexsort(words[1::-1])]
    return Run.from_words(np.ascontiguousarray(words), GUARDS)
