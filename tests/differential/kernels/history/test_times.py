"""Columns of times: minimal elements, and moving them along a path."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, less_equal, rows_of
from strategies_words import CODES, rows

from differential.kernels.history.times import (
    earlier_time,
    earlier_times,
    latest_counter,
    minimal_times,
    shift_times,
    take_turns,
)


@given(st.sampled_from([1, 2, 3]).flatmap(lambda depth: st.tuples(st.just(depth), rows(0, depth))))
def test_minimal_times_are_an_antichain_below_all(case: tuple[int, list[Row]]) -> None:
    depth, some = case
    guards = CODES[depth].guards
    times = np.array([row[0] for row in some], np.int64)
    minimal = minimal_times(times, guards).tolist()
    assert minimal == sorted(
        {t for t in times.tolist() if not any(s != t and less_equal(s, t, guards) for s in times.tolist())}
    )


@given(st.sampled_from([1, 2, 3]).flatmap(lambda depth: st.tuples(st.just(depth), rows(0, depth))))
def test_earlier_times_are_the_minimal_ones_one_step_back(case: tuple[int, list[Row]]) -> None:
    depth, some = case
    guards = CODES[depth].guards
    times = minimal_times(np.array([row[0] for row in some], np.int64), guards)
    back = np.array([earlier_time(time, guards) for time in times.tolist()], np.int64)
    assert earlier_times(times, guards).tolist() == minimal_times(back, guards).tolist()


@given(st.sampled_from([1, 2, 3]).flatmap(lambda depth: st.tuples(st.just(depth), rows(1, depth))))
def test_latest_counter_is_that_of_the_latest_row(case: tuple[int, list[Row]]) -> None:
    depth, some = case
    code, words = CODES[depth], as_words(some, 3)
    for place, (shift, bits) in enumerate(code.fields):
        counters = [code.unpack(row[1])[place] for row in some]
        assert latest_counter(words, shift, (1 << bits) - 1) == max(counters, default=0)


@given(rows(1))
def test_feedback_adds_one_and_leaving_forgets(some: list[Row]) -> None:
    code, words = CODES[2], as_words(some, 3)
    later = rows_of(shift_times(words, code.valid, code.unit))
    assert later == [(row[0], row[1] + code.unit, row[2]) for row in some]
    left = rows_of(shift_times(words, code.keep_mask(1), 0))
    assert left == [(row[0], code.pack((code.unpack(row[1])[0], 0)), row[2]) for row in some]


@given(rows(1, 1), st.lists(st.integers(-(2**63), 2**63 - 1), min_size=20, max_size=20), st.integers(1, 300))
def test_turns_are_taken_by_the_number_of_bits(some: list[Row], priorities: list[int], spacing: int) -> None:
    code, outer = CODES[2], CODES[2]
    some = [(row[0], outer.pack((index % 3, 0)), row[2]) for index, row in enumerate(some[:20])]
    words = as_words(some, 3)
    first = np.array(priorities[: len(some)], np.int64).reshape(1, -1)
    shift, _ = code.fields[-1]
    found = rows_of(take_turns(np.ascontiguousarray(np.vstack([first, words])), shift, spacing, 10_000))
    turns = [min(max(priority, 0).bit_length() * spacing, 10_000) for priority in priorities]
    assert found == [
        (row[0], code.pack((code.unpack(row[1])[0], turn)), row[2])
        for row, turn in zip(some, turns, strict=False)
    ]
