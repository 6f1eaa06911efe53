"""limbs.py: whole numbers of any length, held against Python's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from differential.columns.float_words import float_to_word
from differential.kernels.sums.limbs import (
    HEADROOM,
    add_multiplied,
    divided,
    extent,
    float_word,
    multiply_by_tens,
    rounded,
    set_word,
    settle,
)

WORDS = st.integers(-(2**63), 2**63 - 1)
LIMBS = st.lists(st.one_of(st.integers(-3, 3), WORDS), max_size=5)


def _number(limbs: list[int]) -> int:
    return sum(limb << 32 * index for index, limb in enumerate(limbs))


def _in_the_making(limbs: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([*limbs, *[0] * HEADROOM], np.int64)


def _settled(number: int, size: int = 12) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([abs(number) >> 32 * index & 0xFFFF_FFFF for index in range(size)], np.int64)


@given(LIMBS)
@example([-(2**63)] * 5)
@example([2**63 - 1] * 5)
@example([0, -1])
def test_settling_gives_sign_and_magnitude(limbs: list[int]) -> None:
    array = _in_the_making(limbs)
    sign = settle(array)
    assert all(0 <= limb < 2**32 for limb in array.tolist())
    assert sign * _number(array.tolist()) == _number(limbs) and sign in (-1, 0, 1)
    assert (sign == 0) == (_number(limbs) == 0)


@given(st.integers(-(2**200), 2**200), st.integers(-(2**100), 2**100), st.sampled_from([-1, 1]))
def test_products_are_added(a: int, b: int, sign: int) -> None:
    total = np.zeros(12 + HEADROOM, np.int64)
    total[0] = 7
    add_multiplied(total, _settled(a, 7), _settled(b, 4), sign)
    assert _number(total.tolist()) == 7 + sign * abs(a) * abs(b)


@given(
    st.one_of(st.integers(0, 2**70), st.integers(0, 2**300), st.integers(2**53, 2**55)), st.integers(0, 200)
)
@example(2**54 + 2, 0)
@example(2**54 + 6, 3)
@example((2**54 + 2) * 2**64 + 1, 0)
def test_rounded_is_the_nearest_float_ties_to_even(number: int, shift: int) -> None:
    mantissa, exponent = rounded(_settled(number << shift, 20))
    assert float(Fraction(mantissa) * Fraction(2) ** exponent) == float(number << shift)
    assert mantissa <= 2**53


@given(WORDS)
def test_a_word_is_two_limbs(word: int) -> None:
    limbs = np.zeros(2, np.int64)
    assert set_word(limbs, word) * _number(limbs.tolist()) == word


def test_extent_is_what_is_not_zero() -> None:
    assert extent(np.array([0, 5, 0, 7, 0], np.int64)) == (1, 4)
    assert extent(np.zeros(3, np.int64)) == (0, 0)


@pytest.mark.parametrize(
    ("sign", "mantissa", "divisor", "exponent", "root", "value"),
    [
        (1, 3, 2, 0, False, 1.5),
        (-1, 3, 2, 4, False, -24.0),
        (0, 0, 1, 5, False, 0.0),
        (1, 1, 1, 5000, False, float("inf")),
        (1, 1, 1, -5000, False, 0.0),
        (1, 9, 4, 0, True, 1.5),
        (-1, 9, 4, 0, True, float("nan")),
    ],
)
def test_words_of_floats(
    sign: int, mantissa: int, divisor: int, exponent: int, root: bool, value: float
) -> None:
    assert float_word(sign, mantissa, divisor, exponent, root) == float_to_word(value)


@given(st.integers(0, 2**200), st.integers(0, 40))
@example(2**200, 40)
def test_tens_are_multiplied(number: int, digits: int) -> None:
    limbs = _settled(number)
    multiply_by_tens(limbs, digits)
    assert _number(limbs.tolist()) == number * 10**digits


MOST = 10**18 - 1


@given(st.integers(0, 2**120), st.integers(1, 2**63 - 1))
@example(2**63 - 1, 1)
@example((2**63 - 1) * 5 + 2**62, 2**63 - 1)
@example((2**63 - 1) * 5 + 2**62 - 1, 2**63 - 1)
@example(3, 2)
@example(2**64 + 1, 2)
@example(MOST * 2**63, 2**63 - 1)
@example(0, 1)
def test_quotients_are_the_nearest_halves_up(number: int, divisor: int) -> None:
    found, wanted = divided(_settled(number), divisor, MOST), (2 * number + divisor) // (2 * divisor)
    assert found == wanted if wanted <= MOST else found > MOST
