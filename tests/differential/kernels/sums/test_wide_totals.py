"""wide_totals.py: totals and means in two words, against whole numbers of Python."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from differential.columns.wide.wide_words import split_value
from differential.kernels.sums.wide_totals import WIDE_DIGITS, WIDE_LIMBS, wide_mean, wide_total

SIZES = st.sampled_from([1, 2**31, 2**61, 2**63 - 1])
LIMBS = st.lists(SIZES.flatmap(lambda most: st.integers(-most, most)), min_size=4, max_size=4)


def number_of(limbs: list[int]) -> int:
    return sum(limb << 32 * at for at, limb in enumerate(limbs))


def said(number: int, digits: int) -> list[tuple[int, int]]:
    """Both words, and that they fit; or that they do not."""
    fits = abs(number) < 10**digits
    return [(word, 0) for word in split_value(number)] if fits else [(0, 1)] * 2


@given(LIMBS, st.sampled_from([2, WIDE_LIMBS]), st.integers(19, 38))
@example([0, 0, 2**31, 0], 4, 38)  # 2⁹⁵, of the low word -2⁶³ and its negative
@example([0, -(2**31), 0, 0], 4, 19)
@example([0, 2**31, 0, 0], 4, 19)
@example([0, -(2**31), -1, 0], 4, 30)
def test_totals_are_exact_or_refused(limbs: list[int], count: int, digits: int) -> None:
    totals, number = np.array([7, *limbs], np.int64), number_of(limbs[:count])
    found = [wide_total(totals, 1, count, digits, is_high) for is_high in (True, False)]
    assert found == said(number, digits)


@given(
    LIMBS,
    st.sampled_from([2, WIDE_LIMBS]),
    st.integers(19, 38),
    st.integers(0, 4),
    st.sampled_from([1, 2, 3, 7, 2**40 + 1, 2**63 - 1, -1, -2, -(2**63)]),
)
@example([1, 0, 0, 0], 4, 38, 4, 20_000)
@example([1, 0, 0, 1], 4, 38, 0, 2)
def test_means_are_exact_and_rounded_half_up_or_refused(
    limbs: list[int], count: int, digits: int, more: int, rows: int
) -> None:
    totals = np.array([7, *limbs], np.int64)
    found = [
        wide_mean(totals, 1, count, more + WIDE_DIGITS * digits, rows, is_high) for is_high in (True, False)
    ]
    number = number_of(limbs[:count]) * 10**more * (1 if rows > 0 else -1)
    size = (2 * abs(number) + abs(rows)) // (2 * abs(rows))
    if rows == -(2**63):
        assert found == [(0, 1)] * 2
    else:
        assert found == said(size if number >= 0 else -size, digits)
