"""Matching: every pair once, projected; in pieces, the same pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, lub, rows_of
from strategies_words import CODES, rows

from differential.kernels.history.match import CONSTANT, FROM_DELTA, FROM_TRACE, REMEMBERED_KEYS, match
from differential.trace.trace import Trace

GUARDS = CODES[2].guards
PROJECTION = np.array([[FROM_TRACE, FROM_DELTA, CONSTANT], [1, 0, 7]])


def _pairs(delta: list[Row], history: list[Row]) -> list[Row]:
    return consolidated(
        (b[1], a[0], 7, lub(a[-2], b[-2], GUARDS), a[-1] * b[-1])
        for a in delta
        for b in history
        if a[0] == b[0]
    )


@given(rows(1), st.lists(rows(2), max_size=3), st.integers(1, 30))
def test_every_pair_is_made_once_however_it_is_cut(
    some: list[Row], inserts: list[list[Row]], limit: int
) -> None:
    trace, held = Trace(1, 1, GUARDS), []
    for insert in inserts:
        trace.insert(as_words(consolidated(insert), 4))
        trace.freeze_head()
        held += consolidated(insert)
    delta = consolidated(some)
    made: list[Row] = []
    start = 0
    while start < len(delta):
        words, stop = match(as_words(delta, 3), start, trace.table, 1, PROJECTION, GUARDS, limit)
        assert stop > start
        made += rows_of(words)
        start = stop
    assert consolidated(made) == _pairs(delta, held)


@pytest.mark.parametrize("count", [REMEMBERED_KEYS - 1, REMEMBERED_KEYS + 1, 3000])
def test_many_rows_take_the_other_way_to_the_same_pairs(count: int) -> None:
    rng = np.random.default_rng(count)
    delta = consolidated([(int(key), 1, 1) for key in rng.integers(0, count, count)])
    held = consolidated([(int(key), int(value), 2, 1) for key, value in rng.integers(0, count, (count, 2))])
    trace = Trace(1, 1, GUARDS)
    trace.insert(as_words(held, 4))
    words, stop = match(as_words(delta, 3), 0, trace.table, 1, PROJECTION, GUARDS, 1 << 40)
    assert stop == len(delta)
    assert consolidated(rows_of(words)) == _pairs(delta, held)
