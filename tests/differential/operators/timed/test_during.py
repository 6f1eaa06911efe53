"""during.py: rows come and leave at epochs that they name; updates are on time or late.

law_*    what is accumulated, at every time, against the plain definition
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, accumulated, rows_of

from differential.operators.timed.during import DuringVertex, OnTimeVertex, during_rows, on_time_rows
from progress.times.anchor import EPOCH_MAX

SHIFT = 8
"""Epochs above a counter of up to 7, with a guard bit between them."""

GUARDS = (1 << (SHIFT + 5)) | (1 << 4)

bounds = st.one_of(st.none(), st.integers(-2, 9))
words_ = st.tuples(
    st.integers(0, 1), bounds, bounds, st.integers(0, 7), st.integers(0, 3), st.sampled_from([-1, 2])
)


def _times() -> list[int]:
    return [(epoch << SHIFT) + counter for epoch in range(12) for counter in range(4)]


def _flagged(value: int | None) -> tuple[int, int]:
    return (0, 0) if value is None else (1, value)


@given(st.lists(words_, max_size=6))
def test_law_a_row_is_there_from_its_first_epoch_to_before_its_last(rows: list[Row]) -> None:
    given_rows = [
        (row, *_flagged(start), *_flagged(stop), (epoch << SHIFT) + counter, diff)
        for row, start, stop, epoch, counter, diff in rows
    ]
    words = np.array(given_rows, np.int64).reshape(-1, 7).T.copy()
    before = words.copy()
    for anchor in (0, 3):
        # Rows whose words count from there say the same; nothing is before it.
        counted = words.copy()
        counted[-2] -= anchor << SHIFT
        found, found_epochs = during_rows(counted, (SHIFT, anchor), (2, 2))
        made_words, epochs = during_rows(words, (SHIFT, 0), (2, 2))
        assert np.array_equal(made_words, found) and np.array_equal(epochs, found_epochs)
    assert np.array_equal(words, before)
    made_words[-2] += epochs << SHIFT
    made = rows_of(made_words)
    there = [
        (max(start or 0, epoch), EPOCH_MAX + 1 if stop is None else max(stop, epoch))
        for _, start, stop, epoch, *_ in rows
    ]
    sent = sum(1 + (stop <= EPOCH_MAX) for start, stop in there if start < stop)
    assert len(made) == sent, "what would leave in the epoch in which it comes is not sent"
    for time in _times():
        now = time >> SHIFT
        wanted: dict[Row, int] = {}
        for row, start, stop, epoch, counter, diff in rows:
            has_come = epoch <= now and counter <= time & 15
            if has_come and (start is None or start <= now) and (stop is None or now < stop):
                wanted[row,] = wanted.get((row,), 0) + diff
        assert accumulated(made, time, GUARDS) == {row: diff for row, diff in wanted.items() if diff}


@given(st.lists(words_, max_size=6))
def test_law_what_is_on_time_and_what_is_late_are_together_what_comes(rows: list[Row]) -> None:
    given_rows = [
        (row, *_flagged(bound), (epoch << SHIFT) + counter, diff)
        for row, bound, _, epoch, counter, diff in rows
    ]
    words = np.array(given_rows, np.int64).reshape(-1, 5).T.copy()
    on_time, late = (rows_of(on_time_rows(words, (SHIFT, 0), 2, is_late)) for is_late in (False, True))
    counted = words.copy()
    counted[-2] -= 5 << SHIFT
    again = rows_of(on_time_rows(counted, (SHIFT, 5), 2, True))
    assert [(row, time + (5 << SHIFT), diff) for row, time, diff in again] == late
    wanted = [(row, (epoch << SHIFT) + counter, diff) for row, _, _, epoch, counter, diff in rows]
    assert sorted(on_time + late) == sorted(wanted)
    is_late = [bound is not None and epoch > bound for _, bound, _, epoch, _, _ in rows]
    assert late == [row for row, after in zip(wanted, is_late, strict=True) if after]


def test_vertices_keep_nothing() -> None:
    assert DuringVertex((1, 2)).traces() == OnTimeVertex(1, late=True, words=2).traces() == []
