"""wide_words.py: two words have the order of values, and sums of values are sums of words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.wide.wide_words import (
    are_small,
    halves_of,
    integers_of,
    of_halves,
    of_integers,
    split_value,
    widened,
    within,
)

EDGES = [0, 1, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**38 - 1, 1 - 10**38, 10**19]
VALUES = st.one_of(st.sampled_from(EDGES), st.integers(1 - 10**38, 10**38 - 1))


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_words_are_values_their_order_and_their_sums(values: list[int]) -> None:
    words = of_integers(np.array(values, object))
    assert words.T.tolist() == [list(split_value(value)) for value in values]
    assert integers_of(words).tolist() == values
    assert [words[:, at].tolist() for at in np.lexsort(words[::-1])] == [
        list(split_value(value)) for value in sorted(values)
    ]
    high, low = (sum(line.tolist()) for line in words)
    assert (high << 64) + low == sum(values)
    assert are_small(words) == all(-(2**63) <= value < 2**63 for value in values)
    for digits in (1, 18, 19, 20, 37, 38):
        assert within(words, digits).tolist() == [abs(value) < 10**digits for value in values]


def test_a_power_of_ten_has_a_digit_more() -> None:
    for digits in (18, 19, 20, 37, 38):
        edges = [10**digits, -(10**digits), 10**digits - 1, 1 - 10**digits]
        assert within(of_integers(np.array(edges, object)), digits).tolist() == [False, False, True, True]


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_halves_are_those_of_numbers_of_128_bits(values: list[int]) -> None:
    words = of_integers(np.array(values, object))
    halves = halves_of(words)
    assert [int.from_bytes(half.tobytes(), "little", signed=True) for half in halves] == values
    back = np.empty_like(words)
    of_halves(halves, back)
    assert (back == words).all()


def test_a_number_of_one_word_is_its_low_word() -> None:
    small = np.array([5, -(2**63), 2**63 - 1])
    assert integers_of(widened(small)).tolist() == small.tolist()
