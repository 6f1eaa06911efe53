"""The summary of keys: bounds that hold, and no heavy key that is missed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.skew.planning.candidates import KeySummary
from timely.errors import MisuseError

EPOCHS = st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 50)), max_size=20), max_size=6)


@given(st.integers(1, 12), EPOCHS, st.integers(1, 60))
def test_counts_are_right_up_to_the_error_and_no_heavy_key_is_missed(
    capacity: int, epochs: list[list[tuple[int, int]]], rows: int
) -> None:
    summary, true = KeySummary(capacity), Counter[int]()
    for epoch in epochs:
        columns = np.array(epoch, np.int64).reshape(len(epoch), 2)
        summary = summary.fed(columns[:, 0], columns[:, 1])
        for key, count in epoch:
            true[key] += count
    counted = dict(zip(summary.keys.tolist(), summary.counts.tolist(), strict=True))
    assert len(counted) <= capacity
    assert summary.keys.tolist() == sorted(counted)
    for key, count in true.items():
        assert counted.get(key, 0) <= count <= counted.get(key, 0) + summary.error
    assert summary.error * (capacity + 1) <= true.total()
    if rows > summary.error:
        assert {key for key, count in true.items() if count >= rows} <= set(summary.at_least(rows).tolist())


def test_with_counters_for_all_keys_counts_are_exact() -> None:
    summary = KeySummary(3).fed(np.array([5, 2, 5]), np.array([1, 1, 1])).fed(np.array([9]), np.array([4]))
    assert summary.keys.tolist() == [2, 5, 9]
    assert summary.counts.tolist() == [1, 2, 4]
    assert summary.error == 0
    assert summary.at_least(2).tolist() == [5, 9]


def test_a_summary_without_counters_is_refused() -> None:
    with pytest.raises(MisuseError, match="a counter at least, not 0"):
        KeySummary(0)
