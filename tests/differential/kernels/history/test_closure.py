"""Interesting times: all lubs of seeds with a history, as far as they are ready, and the minimal others.

closed_*     against the closure by definition
marks_*      what an added time inherits
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import beyond, closure_of, less_equal, lub
from strategies_words import CODES, frontiers

from differential.kernels.history.closure import close_with, closed_with, is_minimal, key_end, with_seeds

Int64s = np.typing.NDArray[np.int64]
NOTHING = np.empty(0, np.int64)


def _times(depth: int) -> st.SearchStrategy[list[int]]:
    time = st.tuples(*[st.integers(0, 3)] * depth).map(CODES[depth].pack)
    return st.lists(time, min_size=1, max_size=5)


CASES = st.sampled_from([1, 2, 3]).flatmap(
    lambda depth: st.tuples(st.just(CODES[depth].guards), _times(depth), _times(depth), frontiers(depth))
)


def _close(guards: int, seeds: list[int], history: list[int], frontier: Int64s) -> tuple[Int64s, Int64s]:
    times, state = np.empty((3, 2), np.int64), np.zeros(4, np.int64)
    words = np.array([[0] * len(seeds), seeds, [1] * len(seeds)])
    times = with_seeds(words, 0, len(seeds), 1, times, state, frontier, guards)
    rows = np.array([history, [1] * len(history)])
    times = closed_with(rows, len(history), 0, times, state, frontier, guards)
    return times, state


@given(CASES)
def test_closed_without_a_frontier_are_all_lubs_with_a_seed(
    case: tuple[int, list[int], list[int], Int64s],
) -> None:
    guards, seeds, history, _ = case
    times, state = _close(guards, seeds, history, NOTHING)
    want = {
        time
        for time in closure_of(seeds + history, guards)
        if any(less_equal(seed, time, guards) for seed in seeds)
    }
    assert times[0, : state[0]].tolist() == sorted(want)
    assert all(less_equal(int(state[1]), seed, guards) for seed in seeds)


@given(CASES)
def test_closed_every_lub_is_ready_and_found_or_after_a_pending_one(
    case: tuple[int, list[int], list[int], Int64s],
) -> None:
    guards, seeds, history, frontier = case
    seeds = [seed for seed in seeds if not beyond(seed, frontier, guards)]
    if not seeds:
        return
    times, state = _close(guards, seeds, history, frontier)
    found = times[0, : state[0]].tolist()
    assert found == sorted(set(found))
    pending = [
        time
        for index, time in enumerate(found)
        if beyond(time, frontier, guards) and is_minimal(times, index, frontier, guards)
    ]
    everything, _ = _close(guards, seeds, history, NOTHING)
    for time in everything[0].tolist()[: len(closure_of(seeds + history, guards))]:
        if time in closure_of(seeds + history, guards) and any(less_equal(s, time, guards) for s in seeds):
            assert time in found or any(less_equal(p, time, guards) for p in pending)
            assert beyond(time, frontier, guards) or time in found


@given(CASES)
def test_marks_come_from_the_latest_earlier_time(case: tuple[int, list[int], list[int], Int64s]) -> None:
    guards, seeds, history, _ = case
    times, state = _close(guards, seeds, history, NOTHING)
    count = int(state[0])
    times = np.concatenate([times[:, :count], np.empty((3, count + 3), np.int64)], axis=1)
    times[1, :count] = np.arange(count)
    before = times[0, :count].tolist()
    base = lub(history[0], before[-1], guards) | (1 if guards == CODES[1].guards else 0)
    count = close_with(times, count, base, NOTHING, guards)
    for time, mark in zip(times[0, :count].tolist(), times[1, :count].tolist(), strict=True):
        earlier = [index for index, old in enumerate(before) if less_equal(old, time, guards)]
        assert mark == earlier[-1]
        assert all(less_equal(before[index], before[mark], guards) for index in earlier)


def test_a_key_ends_where_the_next_begins() -> None:
    words = np.array([[1, 1, 2, 2, 2], [5, 5, 5, 6, 5], [1, 1, 1, 1, 1]])
    assert key_end(words, 0, 1, 1) == (2, True)
    assert key_end(words, 2, 1, 1) == (5, False)
    assert key_end(words, 0, 0, 1) == (5, False)
