"""components.py: what a row becomes is what it is worth, exactly.

split_*   limbs of numbers
rows_*    which rows are made
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference.words import Row, as_words, rows_of

from differential.columns.float_words import float_to_word
from differential.kernels.sums import components as c

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.integers(-(2**63), 2**63 - 1)


def _worth(kind: int, word: int, base: int) -> Fraction:
    limbs = np.zeros(5, np.int64)
    sign, first = c.split_number(kind, word, limbs)
    assert sign in (-1, 1) and all(0 <= limb < 2**32 for limb in limbs.tolist())
    whole = sum(limb << 32 * index for index, limb in enumerate(limbs.tolist()))
    return sign * whole * Fraction(2) ** (32 * first + base)


@given(WORDS)
@example(-(2**63))
@example(-1)
def test_split_whole_numbers(word: int) -> None:
    assert _worth(c.WHOLE, word, 0) == word
    assert _worth(c.WHOLE_SQUARE, word, 0) == word**2


@given(FINITE)
@example(5e-324)
@example(-2.2250738585072014e-308)
@example(1.7976931348623157e308)
@example(0.0)
def test_split_floats(value: float) -> None:
    word = float_to_word(value)
    assert _worth(c.FLOAT, word, c.FLOAT_BASE) == Fraction(value)
    assert _worth(c.FLOAT_SQUARE, word, 2 * c.FLOAT_BASE) == Fraction(value) ** 2


@pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, -1.7976931348623157e308])
@pytest.mark.parametrize(("kind", "room"), [(c.FLOAT, c.FLOAT_LIMBS), (c.FLOAT_SQUARE, c.FLOAT_SQUARE_LIMBS)])
def test_split_floats_stay_in_their_limbs(value: float, kind: int, room: int) -> None:
    limbs = np.zeros(5, np.int64)
    _, first = c.split_number(kind, float_to_word(value), limbs)
    used = [first + index for index, limb in enumerate(limbs.tolist()) if limb]
    assert min(used) >= 0 and max(used) < room


@pytest.mark.parametrize(("value", "which"), [(float("nan"), 0), (float("inf"), 1), (-float("inf"), 2)])
def test_split_what_is_not_finite(value: float, which: int) -> None:
    assert c.split_number(c.FLOAT, float_to_word(value), np.zeros(5, np.int64)) == (0, which)


def _made(rows: list[Row], kw: int, *makers: tuple[int, int, int, int]) -> list[Row]:
    table = np.array(makers, np.int64).T.copy()
    return rows_of(c.components_of(as_words(rows, len(rows[0])), kw, table))


def test_rows_without_nulls_zeros_and_what_is_not_asked_for() -> None:
    makers = (
        (c.ROWS, 0, -1, 0),
        (c.VALUES, 2, 1, 1),
        (c.TRUE, 2, 1, 2),
        (c.FALSE, 2, 1, 3),
        (c.WHOLE, 2, 1, 4),
    )
    # key, flag, value, time, diff
    assert _made([(9, 0, 0, 70, 2)], 1, *makers) == [(9, 0, 70, 2)]
    assert _made([(9, 1, 0, 70, 2)], 1, *makers) == [(9, 0, 70, 2), (9, 1, 70, 2), (9, 3, 70, 2)]
    assert _made([(9, 1, -3, 70, 2)], 1, *makers) == [
        (9, 0, 70, 2),
        (9, 1, 70, 2),
        (9, 2, 70, 2),
        (9, 4, 70, -6),
    ]
    high = 5 + (7 << 32)
    assert _made([(9, 1, high, 70, -1)], 1, *makers)[-2:] == [(9, 4, 70, -5), (9, 5, 70, -7)]


def test_rows_of_what_is_not_finite_are_counted_behind_the_limbs() -> None:
    word = float_to_word(float("inf"))
    assert _made([(word, 70, 3)], 0, (c.FLOAT, 0, -1, 10)) == [(10 + c.FLOAT_LIMBS + 1, 70, 3)]
    assert _made([(word, 70, 3), (0, 70, 1)], 0, (c.FLOAT_SQUARE, 0, -1, 10)) == []


def test_rows_whose_amounts_leave_64_bits_are_refused() -> None:
    with pytest.raises(OverflowError):
        _made([(2**31, 0, 2**32)], 0, (c.WHOLE, 0, -1, 0))


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 8)), st.integers(1, 6))
def test_of_a_component_are_rows_from_0_to_one_before_how_many_there_are(said: list[int], count: int) -> None:
    words = np.array([[0] * len(said), said], np.int64)
    assert c.are_components(words, 1, count) == all(0 <= word < count for word in said)
