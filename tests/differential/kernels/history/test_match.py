"""Matching: every pair once, projected; in pieces, the same pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, lub, rows_of
from strategies_words import CODES, rows

from differential.kernels.history.match import CONSTANT, FROM_DELTA, FROM_TRACE, PIECE_KEYS, match
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s

GUARDS = CODES[2].guards


def _projection(kw: int) -> Int64s:
    """The value of the trace, the last word of the key, a constant."""
    return np.array([[FROM_TRACE, FROM_DELTA, CONSTANT], [kw, kw - 1, 7]])


def _pairs(delta: list[Row], history: list[Row], kw: int = 1) -> list[Row]:
    return consolidated(
        (b[kw], a[kw - 1], 7, lub(a[-2], b[-2], GUARDS), a[-1] * b[-1])
        for a in delta
        for b in history
        if a[:kw] == b[:kw]
    )


@pytest.mark.parametrize("kw", [1, 2])
@given(data=st.data())
def test_every_pair_is_made_once_however_it_is_cut(kw: int, data: st.DataObject) -> None:
    trace, held = Trace(kw, 1, GUARDS), []
    for insert in data.draw(st.lists(rows(kw + 1), max_size=3)):
        trace.insert(as_words(consolidated(insert), kw + 3))
        trace.freeze_head()
        held += consolidated(insert)
    delta, limit = consolidated(data.draw(rows(kw))), data.draw(st.integers(1, 30))
    made: list[Row] = []
    start = 0
    while start < len(delta):
        words, stop = match(as_words(delta, kw + 2), start, trace.table, kw, _projection(kw), GUARDS, limit)
        assert stop > start
        made += rows_of(words)
        start = stop
    assert consolidated(made) == _pairs(delta, held, kw)


@pytest.mark.parametrize("count", [3_000, PIECE_KEYS + 1, 2 * PIECE_KEYS + 100])
def test_pieces_of_many_keys_make_the_same_pairs(count: int) -> None:
    rng = np.random.default_rng(count)
    delta = [(key, 1, 1) for key in range(count)]
    held = consolidated([(int(key), int(value), 2, 1) for key, value in rng.integers(0, count, (count, 2))])
    trace = Trace(1, 1, GUARDS)
    trace.insert(as_words(held, 4))
    made: list[Row] = []
    stops = [0]
    while stops[-1] < count:
        words, stop = match(as_words(delta, 3), stops[-1], trace.table, 1, _projection(1), GUARDS, 1 << 40)
        made += rows_of(words)
        stops.append(stop)
    assert stops == [*range(0, count, PIECE_KEYS), count]
    assert consolidated(made) == _pairs_by_key(delta, held)


def _pairs_by_key(delta: list[Row], held: list[Row]) -> list[Row]:
    """`_pairs` of many rows, of which those of `delta` have different keys."""
    rows = {row[0]: row for row in delta}
    return consolidated(row for b in held for row in _pairs([rows[b[0]]], [b]))
