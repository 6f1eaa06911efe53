"""Totals and means of decimals of more than 18 digits, as the two words of `columns/wide/wide_words.py`.

A total is a number in limbs: two for a column of one-word decimals, four for one of wide decimals, those of
the low words before those of the high words, since a value is high · 2⁶⁴ + low. Each of the two words of an
answer is a line of the table in `accumulated.py`; it computes both, and takes its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import magnitude, wrapped_subtract
from differential.kernels.sums.limbs import HEADROOM, divided, extent, multiply_by_tens, settle
from progress.compiled.kernel import Int64s, kernel

__all__ = [
    "WIDE_DIGITS",
    "WIDE_LIMBS",
    "divide",
    "is_less",
    "limit_of",
    "small_total",
    "wide_mean",
    "wide_total",
    "word_of",
]

WIDE_LIMBS: Final = 4
"""Limbs of a total of two words a value."""

WIDE_DIGITS: Final = 64
"""A line of a mean has in `digits` the further digits, plus this times the digits that its type has."""

_ROOM: Final = 8
"""Limbs of the products of a total with a power of ten, without those of the total."""

_SMALL: Final = 1 << 62


@kernel
def limit_of(digits: int, limbs: int) -> Int64s:
    """Return 10 ** digits in so many limbs."""
    limit = np.zeros(limbs, np.int64)
    limit[0] = 1
    multiply_by_tens(limit, digits)
    return limit


@kernel
def is_less(number: Int64s, other: Int64s) -> bool:
    """Return True if a settled magnitude is less than another of as many limbs."""
    for index in range(number.shape[0] - 1, -1, -1):
        if number[index] != other[index]:
            return number[index] < other[index]
    return False


@kernel
def word_of(number: Int64s, sign: int, is_high: bool) -> int:
    """Return one of the two words of a settled number of less than 2¹²⁷."""
    low, high = number[0] | (number[1] << 32), number[2] | (number[3] << 32)
    high += low < 0
    if sign >= 0:
        return high if is_high else low
    # The negative of (high, low) is (-high, -low), but that of -2⁶³ does not fit the low word, and wraps.
    if is_high:
        return -high + np.int64(low == -low and low != 0)
    return -low


@kernel
def small_total(totals: Int64s, at: int, limbs: int) -> tuple[int, bool]:
    """Return a total and True if it is one of few bits; otherwise any number and False."""
    for index in range(2, limbs):
        if totals[at + index] != 0:
            return np.int64(0), False
    if magnitude(totals[at]) >> 61 != 0 or magnitude(totals[at + 1]) >> 29 != 0:
        return np.int64(0), False
    return totals[at] + (totals[at + 1] << 32), True


@kernel
def wide_total(totals: Int64s, at: int, limbs: int, digits: int, is_high: bool) -> tuple[int, int]:
    """Return one word of a total, and an excess: not 0 if it has more than so many digits."""
    total, is_small = small_total(totals, at, limbs)
    if is_small:
        return np.int64(0) if is_high else total, np.int64(0)
    number = np.zeros(WIDE_LIMBS + HEADROOM, np.int64)
    for index in range(limbs):
        number[index] = totals[at + index]
    sign = settle(number)
    if not is_less(number, limit_of(digits, np.int64(WIDE_LIMBS + HEADROOM))):
        return np.int64(0), np.int64(1)
    return word_of(number, sign, is_high), np.int64(0)


@kernel
def divide(number: Int64s, divisor: int) -> None:
    """Divide a settled magnitude by `divisor` > 0, in place, to the nearest whole number, halves up."""
    rest, (_, stop) = np.int64(0), extent(number)
    for bit in range(32 * stop - 1, -1, -1):
        limb, shift = bit >> 5, bit & 31
        # A rest is less than the divisor: doubled it may wrap, and its bits are right.
        rest = (rest << 1) | ((number[limb] >> shift) & 1)
        number[limb] &= ~(np.int64(1) << shift)
        if rest < 0 or rest >= divisor:
            rest = wrapped_subtract(rest, divisor)
            number[limb] |= np.int64(1) << shift
    carry = np.int64(rest >= divisor - rest)
    for index in range(number.shape[0]):
        raised = number[index] + carry
        number[index], carry = raised & 0xFFFF_FFFF, raised >> 32


@kernel
def wide_mean(totals: Int64s, at: int, limbs: int, digits: int, count: int, is_high: bool) -> tuple[int, int]:
    """Return one word of a total divided by `count`, and an excess: not 0 if it has too many digits.

    digits   the further digits, and those of the type: see `WIDE_DIGITS`
    """
    more, most = digits % WIDE_DIGITS, digits // WIDE_DIGITS
    number = np.zeros(limbs + _ROOM, np.int64)
    for index in range(limbs):
        number[index] = totals[at + index]
    sign = settle(number)
    if count < 0:
        sign, count = -sign, -count
    if count < 0:  # the least number has no negative
        return np.int64(0), np.int64(1)
    multiply_by_tens(number, more)
    small = divided(number, count, np.int64(_SMALL - 1))
    if small < _SMALL:
        small = small if sign >= 0 else -small
        return np.int64(0) if is_high else small, np.int64(0)
    divide(number, count)
    if not is_less(number, limit_of(most, np.int64(number.shape[0]))):
        return np.int64(0), np.int64(1)
    return word_of(number, sign, is_high), np.int64(0)
