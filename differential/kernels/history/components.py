"""What is kept of the values of a group instead of the values: multiplicities of a few components.

A row (key, values) with difference d becomes rows (key, component) with differences d · amount. Equal ones
add up, so a key has as many lines as it has components, however many rows it has. What there is to be added:

    ROWS      1 for the row                        VALUES    1 if the value is not null
    TRUE      1 if it is true                      FALSE     1 if it is false
    WHOLE     a whole number, in limbs             WHOLE_SQUARE, FLOAT_SQUARE    their squares
    FLOAT     a float, exactly, in limbs; behind these NaN, inf and -inf are counted

A number is a sign and *limbs*: pieces of 32 bits, of which limb i counts 2³²ⁱ; those of floats begin at
2⁻¹⁰⁸⁸, of their squares at 2⁻²¹⁷⁶, below the least there is. Each limb is a component of its own, and most
are 0 and not written: sums of floats are exact, whatever the order, and of whole numbers right in between
although they may leave 64 bits there. What is made of them again: `accumulated.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import excess, refuse, wide_multiply
from progress.kernel import Int64s, kernel

ROWS: Final = 0
VALUES: Final = 1
TRUE: Final = 2
FALSE: Final = 3
WHOLE: Final = 4
FLOAT: Final = 5
WHOLE_SQUARE: Final = 6
FLOAT_SQUARE: Final = 7

WHOLE_LIMBS: Final = 2
WHOLE_SQUARE_LIMBS: Final = 4
FLOAT_LIMBS: Final = 67
FLOAT_SQUARE_LIMBS: Final = 133
FLOAT_BASE: Final = -1088
"""The exponent of limb 0 of a float."""
NOT_FINITE: Final = 3
"""Components behind the limbs of a float: how many NaN, inf, -inf."""

LIMB_BITS: Final = 32
LIMB: Final = (1 << 32) - 1
_FRACTION_BITS: Final = 52
_EXPONENTS: Final = 2047
_ALL_BUT_SIGN: Final = 0x7FFF_FFFF_FFFF_FFFF


@kernel
def shift_limbs(limbs: Int64s, position: int) -> int:
    """Move five limbs up by `position` bits, as far as that is less than a limb; returns the whole limbs."""
    shift = position & 31
    for index in range(4, 0, -1):
        limbs[index] = ((limbs[index] << shift) & LIMB) | (limbs[index - 1] >> (LIMB_BITS - shift))
    limbs[0] = (limbs[0] << shift) & LIMB
    return position >> 5


@kernel
def split_number(kind: int, word: int, limbs: Int64s) -> tuple[int, int]:
    """(sign, first limb) of a number whose five limbs from there on go to `limbs`; a sign of 0: none is
    finite, and the second says which of the three components behind the limbs it is.
    """
    sign, mantissa, position = np.int64(1), word, np.int64(0)
    if kind == WHOLE:
        if word < 0:
            sign, mantissa = np.int64(-1), -word  # the least wraps, and its bits are right
    elif kind in (FLOAT, FLOAT_SQUARE):
        bits = word ^ ((word >> 63) & _ALL_BUT_SIGN)
        exponent = (bits >> _FRACTION_BITS) & _EXPONENTS
        mantissa = bits & ((np.int64(1) << _FRACTION_BITS) - 1)
        if exponent == _EXPONENTS:
            return np.int64(0), np.int64(0) if mantissa != 0 else np.int64(1) if bits >= 0 else np.int64(2)
        if exponent > 0:
            mantissa |= np.int64(1) << _FRACTION_BITS
        exponent += exponent == 0  # those near 0 have the exponent of the least others
        position = exponent - 1075 - FLOAT_BASE
        if bits < 0:
            sign = np.int64(-1)
    high, low = np.int64(0), mantissa
    if kind in (WHOLE_SQUARE, FLOAT_SQUARE):
        high, low = wide_multiply(mantissa, mantissa)
        sign, position = np.int64(1), 2 * position
    limbs[0], limbs[1] = low & LIMB, (low >> LIMB_BITS) & LIMB
    limbs[2], limbs[3], limbs[4] = high & LIMB, (high >> LIMB_BITS) & LIMB, 0
    return sign, shift_limbs(limbs, position)


@kernel
def put_component(words: Int64s, row: int, component: int, amount: int, out: Int64s, at: int) -> int:
    """Write the key of a row, a component, the row's time and difference · amount as row `at` of `out`, if
    that has rows; returns the next.
    """
    if out.shape[1] > 0:
        kw, last = out.shape[0] - 3, words.shape[0] - 1
        for word in range(kw):
            out[word, at] = words[word, row]
        high, low = wide_multiply(amount, words[last, row])
        refuse(excess(high, low))
        out[kw, at], out[kw + 1, at], out[kw + 2, at] = component, words[last - 1, row], low
    return at + 1


@kernel
def put_components(words: Int64s, makers: Int64s, out: Int64s) -> int:
    """Write the components of all rows into `out`, if that has rows; returns how many there are."""
    made = np.int64(0)
    limbs = np.zeros(5, np.int64)
    for row in range(words.shape[1]):
        for maker in range(makers.shape[1]):
            kind, flag, base = makers[0, maker], makers[2, maker], makers[3, maker]
            if kind == ROWS:
                made = put_component(words, row, base, np.int64(1), out, made)
                continue
            if flag >= 0 and words[flag, row] == 0:
                continue
            value = words[makers[1, maker], row]
            if kind <= FALSE:
                if kind == VALUES or (value != 0) == (kind == TRUE):
                    made = put_component(words, row, base, np.int64(1), out, made)
                continue
            sign, first = split_number(kind, value, limbs)
            if sign == 0:
                if kind == FLOAT:
                    made = put_component(words, row, base + FLOAT_LIMBS + first, np.int64(1), out, made)
                continue
            for index in range(5):
                if limbs[index] != 0:
                    made = put_component(words, row, base + first + index, sign * limbs[index], out, made)
    return made


@kernel
def components_of(words: Int64s, kw: int, makers: Int64s) -> Int64s:
    """Rows (key, component, time, diff), int64[kw + 3, ·], neither sorted nor summed.

    words    int64[≥ kw + 2, n]: rows, the key words first, time and diff last
    makers   int64[4, k]: kind, word of the value, word that is 0 if it is null (-1: never), first component
    Raises if a limb · diff leaves 64 bits; then value · diff does.
    Cost: O(n · k), twice: what is made is counted first.
    """
    nothing = np.empty((kw + 3, 0), np.int64)
    out = np.empty((kw + 3, put_components(words, makers, nothing)), np.int64)
    put_components(words, makers, out)
    return out
