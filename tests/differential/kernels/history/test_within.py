"""Rows and bounds: each row once for each of the bounds that it lies between; in pieces, the same rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, lub, rows_of
from strategies_words import CODES, rows

from differential.kernels.history.match import CONSTANT, FROM_DELTA, FROM_TRACE
from differential.kernels.history.within import LEAST, MOST, match_bounds, match_steps, steps_of
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s

CODE = CODES[2]
GUARDS = CODE.guards
WORDS = st.sampled_from([LEAST, LEAST + 1, -3, -1, 0, 1, 2, 3, 4, MOST - 1, MOST])
TIMES = st.builds(lambda e, i: CODE.pack((e, i)), st.integers(0, 2), st.integers(0, 2))
DIFFS = st.sampled_from([-2, -1, 1, 1, 3])
BOUND = st.builds(
    lambda low, high, time, diff: (min(low, high), max(low, high), time, diff), WORDS, WORDS, TIMES, DIFFS
)
PROBES = [LEAST, LEAST + 1, *range(-4, 7), MOST - 1, MOST]


def sums(bounds: Int64s) -> Counter[tuple[int, int]]:
    """By time and word, what all bounds add up to."""
    found: Counter[tuple[int, int]] = Counter()
    for low, high, time, diff in bounds.T.tolist():
        for word in PROBES:
            if low <= word <= high:
                found[time, word] += diff
    return Counter({key: value for key, value in found.items() if value})


@given(st.lists(BOUND, max_size=6))
@example([(LEAST, 2, 0, -1), (LEAST, 4, 0, 1)])
def test_steps_add_up_to_the_same_and_do_not_overlap(some: list[Row]) -> None:
    bounds = as_words(consolidated(some), 4)
    steps = steps_of(bounds)
    assert sums(steps) == sums(bounds) and (steps[3] != 0).all() and (steps[0] <= steps[1]).all()
    by_time: dict[int, int] = {}
    for low, high, time, _ in steps.T.tolist():
        assert time not in by_time or by_time[time] < low
        by_time[time] = high


def test_steps_of_huge_multiplicities_are_the_bounds() -> None:
    bounds = np.array([[0, 1], [5, 6], [0, 0], [MOST, MOST]])
    assert steps_of(bounds) is bounds


def trace_of(vw: int, inserts: list[list[Row]]) -> Trace:
    trace = Trace(1, vw, GUARDS)
    for insert in inserts:
        trace.insert(as_words(consolidated(insert), vw + 3))
        trace.freeze_head()
    return trace


@given(rows(2), st.lists(st.lists(BOUND, max_size=4), max_size=3), st.integers(1, 9))
def test_rows_meet_the_bounds_that_came_before(some: list[Row], inserts: list[list[Row]], limit: int) -> None:
    trace = trace_of(1, inserts)
    delta = consolidated(some)
    projection = np.array([[FROM_DELTA, CONSTANT, FROM_DELTA], [1, 7, 0]])
    made: list[Row] = []
    start = 0
    while start < len(delta):
        words, stop = match_bounds(as_words(delta, 4), start, trace.table, projection, GUARDS, limit)
        assert stop > start
        made += rows_of(words)
        start = stop
    assert consolidated(made) == consolidated(
        (row[1], 7, row[0], lub(row[-2], bound[-2], GUARDS), row[-1] * bound[-1])
        for row in delta
        for insert in inserts
        for bound in consolidated(insert)
        if bound[0] <= row[0] <= bound[1]
    )


@given(st.lists(BOUND, max_size=5), st.lists(rows(2), max_size=3), st.integers(1, 9))
def test_bounds_meet_the_rows_that_came_before(some: list[Row], inserts: list[list[Row]], limit: int) -> None:
    trace = trace_of(1, inserts)
    bounds = consolidated(some)
    steps = np.ascontiguousarray(steps_of(as_words(bounds, 4)))
    projection = np.array([[FROM_TRACE, FROM_TRACE], [1, 0]])
    made: list[Row] = []
    start = 0
    while start < steps.shape[1]:
        words, stop = match_steps(steps, start, trace.table, projection, GUARDS, limit)
        assert stop > start
        made += rows_of(words)
        start = stop
    assert consolidated(made) == consolidated(
        (row[1], row[0], lub(row[-2], bound[-2], GUARDS), row[-1] * bound[-1])
        for bound in bounds
        for insert in inserts
        for row in consolidated(insert)
        if bound[0] <= row[0] <= bound[1]
    )
