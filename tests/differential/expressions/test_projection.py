"""Projections: words that only move, as one gather; they compose."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.expressions.projection import CONSTANT, Projection


@given(st.data())
def test_moves_projections_compose(data: st.DataObject) -> None:
    def draw(width: int) -> Projection:
        sources = data.draw(st.lists(st.integers(CONSTANT, width - 1), min_size=1, max_size=4))
        constants = tuple(9 if source == CONSTANT else 0 for source in sources)
        return Projection(tuple(sources), constants, data.draw(st.sampled_from([1, -1])))

    first = draw(3)
    second = draw(first.width)
    words = np.arange(20, dtype=np.int64).reshape(5, 4)
    assert np.array_equal(first.then(second).apply(words), second.apply(first.apply(words)))
    assert Projection.identity(3).then(first) == first == first.then(Projection.identity(first.width))
    assert Projection.identity(3).apply(words) is words
