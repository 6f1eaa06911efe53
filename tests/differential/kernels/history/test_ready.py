"""Which rows are complete, and what the others hold open."""

from __future__ import annotations

import random
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, beyond, less_equal, rows_of
from strategies_words import CODES, frontiers, rows

from differential.kernels.history.ready import (
    bound_of_rows,
    lower_bounds,
    merge_pending,
    split_ready,
    work_at_once,
)
from differential.thresholds import SORTED_TIMES_MIN

GUARDS = CODES[2].guards


@given(rows(1), frontiers(2))
def test_ready_is_what_is_not_beyond_the_frontier(
    some: list[Row], frontier: np.typing.NDArray[np.int64]
) -> None:
    ready, later = split_ready(as_words(some, 3), 1, frontier, GUARDS)
    assert rows_of(ready) == [row for row in some if not beyond(row[1], frontier, GUARDS)]
    assert rows_of(later) == [row for row in some if beyond(row[1], frontier, GUARDS)]


@given(rows(1), frontiers(2))
def test_bounds_are_the_minimal_times(some: list[Row], bounds: np.typing.NDArray[np.int64]) -> None:
    times = {row[1] for row in some} | set(bounds.tolist())
    minimal = sorted(t for t in times if not any(s != t and less_equal(s, t, GUARDS) for s in times))
    assert lower_bounds(as_words(some, 3), 1, bounds, GUARDS).tolist() == minimal


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_bounds_of_few_times_are_the_minimal_ones_whichever_row_comes_first_or_last(depth: int) -> None:
    """The one that is before all others is found in another way: no row of those may be left out there."""
    code = CODES[depth]
    first = code.pack((7,) * depth)
    some = [code.pack((7, *time)) for time in product((7, 8), repeat=depth - 1)] + [first + code.unit]
    for times in (times for count in range(4) for times in product(some, repeat=count)):
        wanted = {t for t in times if not any(s != t and less_equal(s, t, code.guards) for s in times)}
        found = lower_bounds(np.array([times], np.int64), 0, np.empty(0, np.int64), code.guards)
        assert found.tolist() == sorted(wanted)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_bounds_of_very_many_times_are_the_same_as_added_a_few_at_a_time(
    depth: int, is_sorted: bool, seed: int
) -> None:
    """Many are found by sorting; some are incomparable to all others, some are not."""
    many = SORTED_TIMES_MIN
    rng = random.Random(f"{seed} {depth}")
    code = CODES[depth]
    tops = [rng.randrange(2 * many) for _ in range(3 * many)]
    times = [
        code.pack((*[top] * (depth > 0), *[2 * many - top + rng.randint(0, 1)] * (depth - 1))) for top in tops
    ]
    if is_sorted:
        times.sort()
    at_once = lower_bounds(np.array([times]), 0, np.empty(0, np.int64), code.guards)
    antichain: list[int] = []
    for time in sorted(times):
        if not beyond(time, np.array(antichain[-1:], np.int64), code.guards):
            antichain.append(time)
    assert at_once.tolist() == antichain and (depth == 1 or len(antichain) > many)
    more = lower_bounds(np.array([times[:50]]), 0, at_once, code.guards)
    assert more.tolist() == antichain
    later = np.array([[time + code.unit for time in times], [1] * len(times)])
    numbers = bound_of_rows(later, 0, at_once, code.guards)
    assert all(
        less_equal(antichain[number], time, code.guards)
        for number, time in zip(numbers.tolist(), later[0].tolist(), strict=True)
    )


@given(rows(1), rows(1))
def test_every_row_has_a_bound_before_it(some: list[Row], others: list[Row]) -> None:
    words = as_words(some, 3)
    bounds = lower_bounds(words, 1, np.unique(as_words(others, 3)[1])[:1].copy(), GUARDS)
    numbers = bound_of_rows(words, 1, bounds, GUARDS)
    assert all(
        less_equal(int(bounds[number]), row[1], GUARDS)
        for number, row in zip(numbers.tolist(), some, strict=True)
    )


@given(rows(1), rows(1))
def test_pending_sets_are_united(one: list[Row], other: list[Row]) -> None:
    sets = [sorted({row[:2] for row in some}) for some in (one, other)]
    united = merge_pending(as_words(sets[0], 2), as_words(sets[1], 2))
    assert rows_of(united) == sorted({*sets[0], *sets[1]})


@given(rows(2), st.integers(0, 2))
def test_work_at_once_is_rows_by_times_of_each_key_where_they_change(some: list[Row], key_words: int) -> None:
    some = sorted(some)
    wanted = 0
    for key in {row[:key_words] for row in some}:
        times = [row[2] for row in some if row[:key_words] == key]
        wanted += len(times) * (1 + sum(a != b for a, b in pairwise(times)))
    assert work_at_once(as_words(some, 4), key_words, 2) == wanted
