"""Floats as words: integer order is float order, and equal floats are one word."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.float_words import float_to_word, floats_to_words, words_to_floats


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=20))
def test_layout_the_order_of_float_words_is_that_of_floats(values: list[float]) -> None:
    words = floats_to_words(np.array(values)).tolist()
    for value, word in zip(values, words, strict=True):
        for other, other_word in zip(values, words, strict=True):
            assert (value < other) == (word < other_word)
            assert (value == other) == (word == other_word)
    assert words_to_floats(np.array(words)).tolist() == values


def test_layout_every_nan_is_one_word_above_infinity() -> None:
    strange = np.array([0xFFF8_0000_0000_0001, 0x7FF0_0000_0000_0001], dtype=np.uint64).view(np.float64)
    words = floats_to_words(strange).tolist()
    assert words == [float_to_word(float("nan"))] * 2
    assert words[0] > float_to_word(float("inf"))
    assert float_to_word(-0.0) == float_to_word(0.0)
