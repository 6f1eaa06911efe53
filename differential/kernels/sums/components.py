"""Components: instead of the values of a group, the multiplicities of a few components are stored.

A row (key, values) with difference d becomes rows (key, component) with differences d · amount. Equal ones
add up, so a key has as many lines as it has components, however many rows it has. The kinds of amounts:

    ROWS      1 for the row                        VALUES    1 if the value is not null
    TRUE      1 if it is true                      FALSE     1 if it is false
    WHOLE     a whole number, in limbs             WHOLE_SQUARE, FLOAT_SQUARE    their squares
    FLOAT     a float, exactly, in limbs; the components behind these count NaN, inf and -inf
    FLOAT_PRODUCT, FLOAT_CUBE, FLOAT_FOURTH    of two floats of the row; of one, its third and fourth power

A number is a sign and *limbs*: pieces of 32 bits, of which limb i counts 2³²ⁱ; those of floats begin at
2⁻¹⁰⁸⁸, of their squares at 2⁻²¹⁷⁶, and so on, below the least that exists. Each limb is a component of its
own, and most are 0 and not written: sums of floats are exact, whatever the order, and sums of whole numbers
are right although partial sums may leave 64 bits. `accumulated.py` computes answers from components.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.merging.merge import copy_rows, first_rows
from differential.kernels.overflow import excess, magnitude, refuse, wide_multiply
from progress.compiled.kernel import Int64s, kernel, small_kernel

ROWS: Final = 0
VALUES: Final = 1
TRUE: Final = 2
FALSE: Final = 3
WHOLE: Final = 4
FLOAT: Final = 5
WHOLE_SQUARE: Final = 6
FLOAT_SQUARE: Final = 7
FLOAT_PRODUCT: Final = 8
FLOAT_CUBE: Final = 9
FLOAT_FOURTH: Final = 10

WHOLE_LIMBS: Final = 2
WHOLE_SQUARE_LIMBS: Final = 4
FLOAT_LIMBS: Final = 67
FLOAT_SQUARE_LIMBS: Final = 133
FLOAT_CUBE_LIMBS: Final = 199
FLOAT_FOURTH_LIMBS: Final = 265
FLOAT_BASE: Final = -1088
"""The exponent of limb 0 of a float."""
NOT_FINITE: Final = 3
"""Number of components behind the limbs of a float: the counts of NaN, inf, -inf."""

LIMB_BITS: Final = 32
LIMB: Final = (1 << 32) - 1
MOSTLY_APART: Final = 1 << 15
"""Room for this many rows, each of a key of its own; of more rows, a quarter: mostly they are added up."""
_FRACTION_BITS: Final = 52
_EXPONENTS: Final = 2047
_ALL_BUT_SIGN: Final = 0x7FFF_FFFF_FFFF_FFFF
_WEIGHT_MAX: Final = 1 << 30
_PRODUCT_LIMBS: Final = 8
"""Limbs of four mantissas, and of a shift by less than a limb."""


@small_kernel
def shift_limbs(limbs: Int64s, position: int) -> int:
    """Move five limbs up by the part of `position` that is less than a limb; return the number of whole
    limbs.
    """
    shift = position & 31
    for index in range(4, 0, -1):
        limbs[index] = ((limbs[index] << shift) & LIMB) | (limbs[index - 1] >> (LIMB_BITS - shift))
    limbs[0] = (limbs[0] << shift) & LIMB
    return position >> 5


@small_kernel
def split_number(kind: int, word: int, limbs: Int64s) -> tuple[int, int]:
    """Return (sign, first limb) of a number, and write its five limbs from there on to `limbs`.

    A sign of 0: the number is not finite, and the second value is the number of its component behind the
    limbs.
    """
    sign, mantissa, position = np.int64(1), word, np.int64(0)
    if kind == WHOLE:
        if word < 0:
            sign, mantissa = np.int64(-1), -word  # the least number wraps, and its bits are right
    elif kind in (FLOAT, FLOAT_SQUARE):
        bits = word ^ ((word >> 63) & _ALL_BUT_SIGN)
        exponent = (bits >> _FRACTION_BITS) & _EXPONENTS
        mantissa = bits & ((np.int64(1) << _FRACTION_BITS) - 1)
        if exponent == _EXPONENTS:
            return np.int64(0), np.int64(0) if mantissa != 0 else np.int64(1) if bits >= 0 else np.int64(2)
        if exponent > 0:
            mantissa |= np.int64(1) << _FRACTION_BITS
        exponent += exponent == 0  # numbers near 0 have the exponent of the next larger ones
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


@small_kernel
def float_parts(word: int) -> tuple[int, int, int]:
    """Return the sign, the mantissa and the position of its lowest bit, from 2⁻¹⁰⁸⁸ on, of a float.

    A sign of 0: it is not finite.
    """
    bits = word ^ ((word >> 63) & _ALL_BUT_SIGN)
    exponent = (bits >> _FRACTION_BITS) & _EXPONENTS
    mantissa = bits & ((np.int64(1) << _FRACTION_BITS) - 1)
    if exponent == _EXPONENTS:
        return np.int64(0), mantissa, np.int64(0)
    if exponent > 0:
        mantissa |= np.int64(1) << _FRACTION_BITS
    exponent += exponent == 0
    return np.int64(-1) if bits < 0 else np.int64(1), mantissa, exponent - 1075 - FLOAT_BASE


@small_kernel
def multiply_in_place(product: Int64s, mantissa: int) -> None:
    """Multiply a number of limbs, each in [0, 2³²), by a mantissa of 53 bits. Requires: room."""
    low, high = mantissa & LIMB, mantissa >> LIMB_BITS
    carry = before = np.int64(0)
    for index in range(product.shape[0]):
        limb = product[index]
        first, second = limb * low, before * high  # the first may wrap, and its bits are right
        total = (first & LIMB) + (second & LIMB) + carry
        product[index] = total & LIMB
        carry = ((first >> LIMB_BITS) & LIMB) + (second >> LIMB_BITS) + (total >> LIMB_BITS)
        before = limb


@kernel
def add_products(words: Int64s, row: int, makers: Int64s, maker: int, totals: Int64s) -> None:
    """Add the limbs of a product of floats, or of a power of one, for a row to the totals.

    Of a product, the third line of the makers has the word of the other value. Where one is null, the word of
    both is that of 0.
    """
    kind, base = makers[0, maker], makers[3, maker]
    sign, mantissa, position = float_parts(words[makers[1, maker], row])
    other_sign, other, other_position = sign, mantissa, position
    factors = kind - FLOAT_CUBE + 2
    if kind == FLOAT_PRODUCT:
        other_sign, other, other_position = float_parts(words[makers[2, maker], row])
    if sign == 0 or other_sign == 0:  # the components behind the limbs of a float count it
        return
    product = np.zeros(_PRODUCT_LIMBS, np.int64)
    product[0], product[1] = mantissa & LIMB, mantissa >> LIMB_BITS
    for _ in range(factors):
        multiply_in_place(product, other)
        sign, position = sign * other_sign, position + other_position
    shift, first = position & 31, position >> 5
    for index in range(_PRODUCT_LIMBS - 1, 0, -1):
        product[index] = ((product[index] << shift) & LIMB) | (product[index - 1] >> (LIMB_BITS - shift))
    product[0] = (product[0] << shift) & LIMB
    for index in range(_PRODUCT_LIMBS):
        if product[index] != 0:
            add_amount(totals, base + first + index, sign * product[index], words[words.shape[0] - 1, row])


@kernel
def with_room(out: Int64s, out_rows: int, more: int) -> Int64s:
    """Return `out` with its first `out_rows` rows and room for `more`, or a larger one with the same rows."""
    if out_rows + more <= out.shape[1]:
        return out
    larger = np.empty((out.shape[0], 2 * (out_rows + more)), np.int64)
    copy_rows(out, out_rows, larger)
    return larger


@small_kernel
def add_amount(totals: Int64s, component: int, amount: int, diff: int) -> None:
    """Add diff · amount to the total of a component, which has room; raise OverflowError if it leaves 64
    bits.
    """
    high, low = wide_multiply(amount, diff)
    refuse(excess(high, low))
    last = totals.shape[0] - 1
    totals[component] += low
    totals[last - 1] = min(totals[last - 1], component)
    totals[last] = max(totals[last], component + 1)


@small_kernel
def add_component(words: Int64s, row: int, makers: Int64s, maker: int, limbs: Int64s, totals: Int64s) -> None:
    """Add the amounts of one maker for a row to the totals, to each at most once."""
    diff = words[words.shape[0] - 1, row]
    kind, flag, base = makers[0, maker], makers[2, maker], makers[3, maker]
    if kind == ROWS:
        add_amount(totals, base, np.int64(1), diff)
        return
    if kind != FLOAT_PRODUCT and flag >= 0 and words[flag, row] == 0:
        return
    if kind >= FLOAT_PRODUCT:
        add_products(words, row, makers, maker, totals)
        return
    value = words[makers[1, maker], row]
    if kind <= FALSE:
        if kind == VALUES or (value != 0) == (kind == TRUE):
            add_amount(totals, base, np.int64(1), diff)
        return
    sign, first = split_number(kind, value, limbs)
    if sign == 0:
        if kind == FLOAT:
            add_amount(totals, base + FLOAT_LIMBS + first, np.int64(1), diff)
        return
    for index in range(5):
        if limbs[index] != 0:
            add_amount(totals, base + first + index, sign * limbs[index], diff)


@small_kernel
def follows(words: Int64s, row: int, kw: int) -> bool:
    """Return True if a row has the key, its first `kw` words, and the time of the row before."""
    time = words.shape[0] - 2
    if words[time, row] != words[time, row - 1]:
        return False
    for word in range(kw):
        if words[word, row] != words[word, row - 1]:
            return False
    return True


@kernel
def components_of(words: Int64s, kw: int, makers: Int64s) -> Int64s:
    """Return rows (key, component, time, diff), int64[kw + 3, ·]; neighbours of one key and time are summed.

    words    int64[≥ kw + 2, n]: rows, the key words first, time and diff last
    makers   int64[4, k]: kind, word of the value, word that is 0 if it is null (-1: never; of a product the
             word of the other value), first component
    Raises OverflowError if a limb · diff leaves 64 bits; then value · diff does.
    Cost: O(n · k). Rows in the order of their keys leave the fewest behind.
    """
    count, time = words.shape[1], words.shape[0] - 2
    room = np.int64(0)
    for maker in range(makers.shape[1]):
        room = max(room, makers[3, maker])
    # Behind the totals: the first component with an amount, and the one behind the last.
    totals = np.zeros(room + FLOAT_FOURTH_LIMBS + 3, np.int64)
    last = totals.shape[0] - 1
    first, stop = last, np.int64(0)
    limbs = np.zeros(5, np.int64)
    out = np.empty((kw + 3, max(count // 4, min(count, np.int64(MOSTLY_APART))) + 16), np.int64)
    out_rows, row = np.int64(0), np.int64(0)
    while row < count:
        start, weight = row, min(magnitude(words[time + 1, row]) + 1, _WEIGHT_MAX)
        is_huge = weight == _WEIGHT_MAX
        row += 1
        # Limbs are less than 2³², so totals stay below 2⁶³ while differences add up to less than 2³⁰.
        while row < count and follows(words, row, kw):
            weight += min(magnitude(words[time + 1, row]) + 1, _WEIGHT_MAX)
            if weight > _WEIGHT_MAX:
                break
            row += 1
        first, stop = last, np.int64(0)
        for maker in range(makers.shape[1]):
            kind, value, flag = makers[0, maker], makers[1, maker], makers[2, maker]
            component, total = makers[3, maker], np.int64(0)
            # Common kinds are handled here without calls, which would cost more than the work.
            is_plain = kind in (ROWS, WHOLE) and not is_huge
            for each in range(start, row):
                amount = words[value, each] if kind == WHOLE else np.int64(1)
                if not is_plain or not -LIMB <= amount <= LIMB:
                    totals[last - 1], totals[last] = first, stop
                    add_component(words, each, makers, maker, limbs, totals)
                    first, stop = totals[last - 1], totals[last]
                elif flag < 0 or words[flag, each] != 0:
                    total += amount * words[time + 1, each]
            if total != 0:
                totals[component] += total
                first, stop = min(first, component), max(stop, component + 1)
        out = with_room(out, out_rows, max(stop - first, np.int64(0)))
        for component in range(first, stop):
            if totals[component] != 0:
                for word in range(kw):
                    out[word, out_rows] = words[word, start]
                out[kw, out_rows], out[kw + 1, out_rows] = component, words[time, start]
                out[kw + 2, out_rows] = totals[component]
                totals[component] = 0
                out_rows += 1
    return first_rows(out, out_rows)


@kernel
def are_components(words: Int64s, column: int, count: int) -> bool:
    """Return True if a column of all rows has valid component indices, below `count`.

    For rows from other processes: kernels that add them up trust the indices. Cost: one pass, without a
    branch.
    """
    wrong = np.int64(0)
    for row in range(words.shape[1]):
        word = words[column, row]
        wrong |= word | (count - 1 - word)  # one of the two is below 0 unless 0 ≤ word < count
    return wrong >= 0
