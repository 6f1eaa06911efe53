"""Packing rows into one word each: exact, and in the order of the rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from reference.words import Row, as_words, rows_of
from strategies_words import rows

from differential.kernels.rows.packing import (
    SEGMENTS_MAX,
    bit_length,
    pack_rows,
    plan_packing,
    survey,
    unpack_rows,
)


@given(rows(2).filter(len))
def test_packed_words_sort_like_their_rows_and_unpack_to_them(some: list[Row]) -> None:
    words = as_words(some, 4)
    seen, plan = np.empty((4, 4), np.int64), np.empty((4, 4 * SEGMENTS_MAX), np.int64)
    bases, keys = np.empty(4, np.int64), np.empty(len(some), np.int64)
    survey(words, seen, 1)
    segments, diff_bits, bits = plan_packing(seen, plan, bases)
    assert diff_bits <= bits <= 63
    pack_rows(words, plan, bases, segments, keys, 0)
    assert [row for _, row in sorted(zip(keys.tolist(), some, strict=True))] == sorted(some)
    out = np.empty((4, len(some)), np.int64)
    unpack_rows(keys >> diff_bits, words[3].copy(), plan, bases, segments, out)
    assert rows_of(out) == some


def test_rows_that_vary_in_too_many_bits_are_refused() -> None:
    words = np.array([[0, 2**62 - 1], [0, 2**62 - 1], [0, 0], [1, 1]])
    seen = np.empty((4, 4), np.int64)
    survey(words, seen, 1)
    plan, bases = np.empty((4, 4 * SEGMENTS_MAX), np.int64), np.empty(4, np.int64)
    assert plan_packing(seen, plan, bases)[2] == 64


def test_bits_that_an_unsigned_word_needs() -> None:
    assert [bit_length(value) for value in (0, 1, 255, 256, 2**62, -1)] == [0, 1, 8, 9, 63, 64]
