"""Compiled expressions: natural forms, constants, and the words that they write."""

from __future__ import annotations

import numpy as np

from differential.columns.column_types import ColumnType, Int64s, boolean, floating, integer
from differential.columns.float_words import float_to_word
from differential.expressions.compiled import (
    CompiledExpression,
    as_float,
    column_at,
    in_common_words,
    null_constant,
    word_constant,
)

WORDS = np.array([[3, -4], [1, 0], [float_to_word(0.5), float_to_word(-2.0)]], dtype=np.int64)


def written(compiled: CompiledExpression) -> Int64s:
    """The words that the writer of `compiled` writes for `WORDS`."""
    out = np.full((compiled.type.words, 2), -1, dtype=np.int64)
    compiled.writer()(WORDS, out)
    return out


def test_a_column_is_read_in_natural_form_and_written_as_it_was() -> None:
    assert column_at(floating, 2, 0).run(WORDS)[0].tolist() == [0.5, -2.0]
    assert column_at(boolean, 1, 0).run(WORDS)[0].tolist() == [True, False]
    for type_, row in ((integer, 0), (boolean, 1), (floating, 2)):
        assert written(column_at(type_, row, row)).tolist() == [WORDS[row].tolist()]


def test_a_constant_fills_a_column_and_null_is_zero() -> None:
    assert written(word_constant(integer, 7)).tolist() == [[7, 7]]
    assert written(word_constant(floating, float_to_word(0.5))).tolist() == [[float_to_word(0.5)] * 2]
    assert written(null_constant(integer)).tolist() == [[0, 0], [0, 0]]
    assert written(word_constant(integer.or_null(), 7)).tolist() == [[1, 1], [7, 7]]


def test_what_lies_below_a_null_is_not_written() -> None:
    nullable = column_at(ColumnType("int", True), 0, 1)
    assert written(nullable).tolist() == [[1, 0], [3, 0]]


def test_a_condition_is_a_mask_of_what_is_true() -> None:
    assert column_at(boolean, 1, 1).mask(WORDS).tolist() == [True, False]
    assert column_at(boolean.or_null(), 0, 1).mask(WORDS).tolist() == [True, False], "null is not true"
    assert word_constant(boolean, 1).mask(WORDS).tolist() == [True, True]
    assert null_constant(boolean).mask(WORDS).tolist() == [False, False]


def test_int_and_float_are_compared_as_floats_by_their_words() -> None:
    left, right = in_common_words([column_at(integer, 0, 0), column_at(floating, 2, 2)])
    assert left.run(WORDS)[0].tolist() == [float_to_word(3.0), float_to_word(-4.0)]
    assert right.run(WORDS)[0].tolist() == WORDS[2].tolist()
    assert as_float(word_constant(integer, 2)).run(WORDS)[0] == 2.0
