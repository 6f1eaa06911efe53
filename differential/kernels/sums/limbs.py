"""Whole numbers of any length as arrays of limbs, for exact computations that are rounded once.

An *unsettled* number has limbs of any size and sign: it is Σ limb[i] · 2³²ⁱ. *Settled* it is a sign and limbs
in [0, 2³²).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from differential.kernels.overflow import wrapped_subtract
from differential.kernels.rows.packing import bit_length
from progress.compiled.kernel import Int64s, kernel

LIMB: Final = (1 << 32) - 1
HEADROOM: Final = 2
"""Number of limbs above the last one in use that settling needs: carries of 64-bit limbs."""
NAN_WORD: Final = 0x7FF8_0000_0000_0000
INFINITE_WORD: Final = 0x7FF0_0000_0000_0000
_MANTISSA_BITS: Final = 53
_TENS: Final = 9
"""The most factors of ten whose product is less than a limb."""


@kernel
def settle(limbs: Int64s) -> int:
    """Make the limbs those of the number's magnitude, each in [0, 2³²), in place; return its sign: -1, 0, 1.

    Requires: the last `HEADROOM` limbs are 0.
    """
    carry, some = np.int64(0), np.int64(0)
    for index in range(limbs.shape[0]):
        low = (limbs[index] & LIMB) + carry
        carry = (limbs[index] >> 32) + (low >> 32)
        limbs[index] = low & LIMB
        some |= limbs[index]
    if carry >= 0:
        return np.int64(some != 0)
    carry = np.int64(1)
    for index in range(limbs.shape[0]):
        low = (LIMB - limbs[index]) + carry
        limbs[index], carry = low & LIMB, low >> 32
    return np.int64(-1)


@kernel
def extent(limbs: Int64s) -> tuple[int, int]:
    """Return (first, after last) of the limbs that are not 0; (0, 0) if all are."""
    stop = np.int64(limbs.shape[0])
    while stop > 0 and limbs[stop - 1] == 0:
        stop -= 1
    start = np.int64(0)
    while start < stop and limbs[start] == 0:
        start += 1
    return start, stop


@kernel
def add_multiplied(total: Int64s, a: Int64s, b: Int64s, sign: int) -> None:
    """Add sign · a · b of two settled magnitudes to an unsettled number.

    Requires: room for all limbs of the product; less than 2²⁹ limbs.
    """
    first_a, stop_a = extent(a)
    first_b, stop_b = extent(b)
    for i in range(first_a, stop_a):
        for j in range(first_b, stop_b):
            product = a[i] * b[j]  # it may wrap, and its bits are right
            total[i + j] += sign * (product & LIMB)
            total[i + j + 1] += sign * ((product >> 32) & LIMB)


@kernel
def multiply_by_tens(limbs: Int64s, digits: int) -> None:
    """Multiply a settled magnitude by 10 ** digits, in place. Requires: room for all limbs of the product."""
    while digits > 0:
        step = min(digits, _TENS)
        factor, carry = np.int64(1), np.int64(0)
        for _ in range(step):
            factor *= 10
        for index in range(limbs.shape[0]):
            product = limbs[index] * factor + carry
            limbs[index], carry = product & LIMB, product >> 32
        digits -= step


@kernel
def divided(limbs: Int64s, divisor: int, most: int) -> int:
    """Return a settled magnitude divided by a `divisor` > 0, to the nearest whole number, halves up.

    If the result exceeds `most` < 2⁶², return any number above `most`.
    """
    quotient, rest = np.int64(0), np.int64(0)
    first, stop = extent(limbs)
    if stop <= 1 or (stop == 2 and limbs[1] >> 31 == 0):
        whole = limbs[0] | (limbs[1] << 32)
        quotient, rest = whole // divisor, whole % divisor
    else:
        for bit in range(32 * stop - 1, -1, -1):
            if quotient > most:
                return quotient
            # A rest is less than the divisor: doubled it may wrap, and its bits are right.
            rest = (rest << 1) | ((limbs[bit >> 5] >> (bit & 31)) & 1)
            quotient <<= 1
            if rest < 0 or rest >= divisor:
                rest = wrapped_subtract(rest, divisor)
                quotient |= 1
    return quotient + np.int64(rest >= divisor - rest)


@kernel
def set_word(limbs: Int64s, word: int) -> int:
    """Set two limbs to a word's magnitude; return its sign."""
    size = -word if word < 0 else word
    limbs[0], limbs[1] = size & LIMB, (size >> 32) & LIMB
    return np.int64(-1) if word < 0 else np.int64(word > 0)


@kernel
def rounded(limbs: Int64s) -> tuple[int, int]:
    """Return (m, e) with m · 2ᵉ nearest to a settled magnitude, m of up to 54 bits, ties to an even m."""
    first, stop = extent(limbs)
    if stop == 0:
        return np.int64(0), np.int64(0)
    bits = 32 * (stop - 1) + bit_length(limbs[stop - 1])
    dropped = max(bits - _MANTISSA_BITS, 32 * first)
    limb, shift = dropped >> 5, dropped & 31
    mantissa = limbs[limb] >> shift
    for index in range(limb + 1, stop):
        mantissa |= limbs[index] << (32 * (index - limb) - shift)
    if dropped > 32 * first:
        below = (limbs[(dropped - 1) >> 5] >> ((dropped - 1) & 31)) & 1
        rest = limbs[(dropped - 1) >> 5] & ((np.int64(1) << ((dropped - 1) & 31)) - 1)
        for index in range(first, (dropped - 1) >> 5):
            rest |= limbs[index]
        mantissa += below & (np.int64(rest != 0) | (mantissa & 1))
    return mantissa, dropped


@kernel
def float_word(sign: int, mantissa: int, divisor: int, exponent: int, takes_root: bool) -> int:
    """Return the word of the float sign · (mantissa / divisor) · 2 ** exponent, or of its square root.

    The root of a negative number is NaN; see `columns/float_words.py`.
    """
    value = math.ldexp(np.float64(mantissa) / np.float64(divisor), exponent)
    if value == 0 or sign == 0:
        return np.int64(0)
    if takes_root:
        if sign < 0:
            return NAN_WORD
        value = math.sqrt(value)
    box = np.empty(1, np.float64)
    box[0] = value if sign > 0 else -value
    bits = box.view(np.int64)[0]
    return bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))
