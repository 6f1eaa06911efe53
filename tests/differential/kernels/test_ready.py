"""Which rows are complete, and what the others hold open."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from reference.words import Row, as_words, beyond, less_equal, rows_of
from strategies_words import CODES, frontiers, rows

from differential.kernels.ready import lower_bounds, merge_pending, split_ready

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


@given(rows(1), rows(1))
def test_pending_sets_are_united(one: list[Row], other: list[Row]) -> None:
    sets = [sorted({row[:2] for row in some}) for some in (one, other)]
    united = merge_pending(as_words(sets[0], 2), as_words(sets[1], 2))
    assert rows_of(united) == sorted({*sets[0], *sets[1]})
