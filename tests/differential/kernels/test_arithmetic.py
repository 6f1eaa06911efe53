"""Columns added, subtracted and multiplied: as Python does it, and every result that does not fit is seen."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_words import WIDE

from differential.kernels.arithmetic import ADD, MULTIPLY, SUBTRACT, combine

LARGE = st.sampled_from([-(2**63), 2**63 - 1, 2**62, -(2**62), 2**31, -1]) | WIDE
OPERATIONS = [(ADD, operator.add), (SUBTRACT, operator.sub), (MULTIPLY, operator.mul)]


@pytest.mark.parametrize(("operation", "exact"), OPERATIONS)
@pytest.mark.parametrize("same", ["neither", "left", "right"])
@given(pairs=st.lists(st.tuples(LARGE, LARGE), min_size=1, max_size=5))
def test_results_are_exact_and_others_are_seen(
    operation: int, exact: Callable[[int, int], int], same: str, pairs: list[tuple[int, int]]
) -> None:
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    left = left[:1] if same == "left" else left
    right = right[:1] if same == "right" else right
    rows = range(len(pairs))
    want = [exact(left[row % len(left)], right[row % len(right)]) for row in rows]
    out = np.empty(len(pairs), np.int64)
    fits = combine(operation, np.array(left), np.array(right), out)
    assert fits == all(-(2**63) <= number < 2**63 for number in want)
    if fits:
        assert out.tolist() == want
