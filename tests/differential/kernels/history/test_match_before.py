"""Matching with what is before: every such pair once, projected; in pieces, the same pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, lub, rows_of
from strategies_words import CODES, rows

from differential.kernels.history.match import CONSTANT, FROM_DELTA, FROM_TRACE
from differential.kernels.history.match_before import match_before, note_fewest
from differential.thresholds import PACKED_ROWS_MIN
from differential.trace.trace import Trace

CODE = CODES[2]
GUARDS = CODE.guards
PROJECTION = np.array([[FROM_TRACE, FROM_DELTA, CONSTANT], [2, 1, 7]])
"""Of traces with two values, and rows with one."""


def _pairs(delta: list[Row], until: list[int], history: list[Row], kw: int) -> list[Row]:
    return consolidated(
        (b[2], a[1], 7, lub(a[-2], b[-2], GUARDS), a[-1] * b[-1])
        for a, bound in zip(delta, until, strict=True)
        for b in history
        if a[:kw] == b[:kw] and b[-2] < bound
    )


@given(
    rows(2),
    st.lists(rows(3), max_size=3),
    st.sampled_from([1, 2]),
    st.integers(1, 30),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1),
)
def test_every_pair_with_what_is_before_is_made_once_however_it_is_cut(
    some: list[Row], inserts: list[list[Row]], kw: int, limit: int, bounds: list[tuple[int, int]]
) -> None:
    """By the key of the trace, and by a longer one."""
    trace, held = Trace(1, 2, GUARDS), []
    for insert in inserts:
        trace.insert(as_words(consolidated(insert), 5))
        trace.freeze_head()
        held += consolidated(insert)
    delta = consolidated(some)
    until = [CODE.pack(bounds[number % len(bounds)]) for number in range(len(delta))]
    made: list[Row] = []
    start = 0
    while start < len(delta):
        words, stop = match_before(
            as_words(delta, 4), np.array(until), start, trace.table, kw, PROJECTION, GUARDS, limit
        )
        assert stop > start
        made += rows_of(words)
        start = stop
    assert consolidated(made) == _pairs(delta, until, held, kw)


@pytest.mark.parametrize("latest", [1, 2, 3])
def test_packed_runs_are_skipped_or_taken_as_a_whole_or_looked_through(latest: int) -> None:
    """A run of one time; one of two; and small ones."""
    trace, held = Trace(1, 2, GUARDS), []
    for times in ((1,), (1, 2), (2,)):
        rows = [(n % 50, n, n, CODE.pack((times[n % len(times)], 0)), 1) for n in range(PACKED_ROWS_MIN)]
        trace.insert(as_words(sorted(rows), 5))
        held += rows
    delta = [(key, 0, 0, 1) for key in range(3)]
    until = [CODE.pack((latest, 0))] * 3
    words, stop = match_before(
        as_words(delta, 4), np.array(until), 0, trace.table, 1, PROJECTION, GUARDS, 1 << 30
    )
    assert stop == 3
    assert consolidated(rows_of(words)) == _pairs(delta, until, held, 1)


def test_what_is_looked_at_in_vain_ends_a_piece_too() -> None:
    trace = Trace(1, 0, GUARDS)
    late = CODE.pack((3, 0))
    trace.insert(as_words([(key, late + n, 1) for key in range(4) for n in range(100)], 3))
    delta, until = as_words([(key, 0, 1) for key in range(4)], 3), np.zeros(4, np.int64)
    words, stop = match_before(delta, until, 0, trace.table, 1, np.empty((2, 0), np.int64), GUARDS, 20)
    assert (words.shape[1], stop) == (0, 2)


@given(rows(1), rows(2), rows(2))
def test_noted_is_the_trace_with_the_fewest_rows(
    some: list[Row], first: list[Row], second: list[Row]
) -> None:
    traces = []
    for insert in (first, second):
        traces.append(Trace(1, 1, GUARDS))
        traces[-1].insert(as_words(consolidated(insert), 4))
    delta = [(row[0], -1, -1, *row[1:]) for row in consolidated(some)]
    words = as_words(delta, 5)
    for number, trace in enumerate(traces):
        note_fewest(words, trace.table, 1, 1, number)
    for row in rows_of(words):
        counts = [sum(one[0] == row[0] for one in consolidated(insert)) for insert in (first, second)]
        assert row[1:3] == (min(counts), counts.index(min(counts)))
