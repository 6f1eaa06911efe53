"""wide_integers.py: what no one-word batch asks. All else: test_wide_numbers.py, against fractions."""

from __future__ import annotations

import numpy as np

from differential.columns.column_types import decimal, integer
from differential.columns.wide.wide_words import integers_of, of_integers
from differential.expressions.arithmetic import wide_integers


def test_numbers_beyond_all_digits_are_above_and_below_all_others() -> None:
    words = of_integers(np.array([10**37, -(10**37), 5], object))
    assert integers_of(wide_integers.at_scale(words, 0, 2)).tolist() == [10**38, -(10**38), 500]


def test_a_result_of_any_length_is_told_apart_from_one_that_fits() -> None:
    exact = np.array([10**200, -(10**38), 10**38 - 1, -3], object)
    words, failing = wide_integers.as_words(exact, decimal(38))
    assert failing is not None and failing.tolist() == [True, True, False, False]
    assert integers_of(words).tolist() == [0, 0, 10**38 - 1, -3]
    least = np.array([-(2**63), 2**63, -(2**63) - 1], object)
    words, failing = wide_integers.as_words(least, integer)
    assert failing is not None and failing.tolist() == [False, True, True]
    assert words.tolist() == [-(2**63), 0, 0]
