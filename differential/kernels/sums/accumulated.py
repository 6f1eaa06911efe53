"""From the multiplicities of components (`components.py`) to the words of an answer.

Each word of an answer has a column in the table `aggregates`:

    what      its kind: one of those below
    at        its first component
    gate      the component that counts its values: if that is 0 the word is 0 (that of null); -1: none
    limbs     number of limbs of the number at `at`: few for whole numbers, many for floats; of a TOTAL of
              decimals and a DECIMAL_MEAN, the largest number of their digits; 0 for other totals
    digits    of a DECIMAL_MEAN, how many more digits it has behind the point than the values; of spreads, how
              many the values have: 0 but for decimals; of totals and means of two words: see `wide_totals.py`
    room      number of all components, and (the next line) how many of the first ones must not be 0: the same
    needed    in every column
    refused   if there is such a line: the first column is set to 1 when an answer does not fit. Without it
              the kernel raises OverflowError, and then the memory that it has allocated is never freed

    COUNT     the multiplicity of a component
    FLAG      1 if there is a value, 0 for null                 FLAG_OF_TWO   1 if there are two or more
    ANY       1 if the component at `at` is positive            ALL           1 if it is not
    TOTAL     the number at `at`, which must fit 64 bits, or the digits of a decimal of one word
    WIDE_TOTAL_HIGH, WIDE_TOTAL_LOW   the two words of a total of more digits
    FLOAT_TOTAL   the float nearest to it
    MEAN      the float nearest to it, divided by the count
    DECIMAL_MEAN  the digits of the decimal nearest to it, divided by the count; halves away from zero
    WIDE_MEAN_HIGH, WIDE_MEAN_LOW     the two words of such a mean of more digits
    VARIANCE, DEVIATION               (n · Σx² − (Σx)²) / n², exact above the line; its root
    SAMPLE_VARIANCE, SAMPLE_DEVIATION the same over n · (n − 1)
    COVARIANCE, SAMPLE_COVARIANCE     (n · Σxy − Σx · Σy) over the same; `moments.py` has these
    FLAG_OF_SPREAD                    1 if the values differ
    SKEWNESS, KURTOSIS                of the third and fourth powers

Of these last, `at`, `limbs` and `digits` are components: of Σx, Σy and Σxy; of Σx, Σx² and Σx³, behind which
is Σx⁴.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import magnitude
from differential.kernels.sums.components import (
    FLOAT_BASE,
    FLOAT_LIMBS,
    FLOAT_SQUARE_LIMBS,
    NOT_FINITE,
    WHOLE_LIMBS,
    WHOLE_SQUARE_LIMBS,
)
from differential.kernels.sums.limbs import (
    HEADROOM,
    INFINITE_WORD,
    NAN_WORD,
    add_multiplied,
    divided,
    float_word,
    multiply_by_tens,
    rounded,
    set_word,
    settle,
)
from differential.kernels.sums.moments import covariance_word, moment_word, number_at
from differential.kernels.sums.wide_totals import wide_mean, wide_total
from progress.compiled.kernel import Int64s, kernel

COUNT: Final = 0
FLAG: Final = 1
FLAG_OF_TWO: Final = 2
ANY: Final = 3
ALL: Final = 4
TOTAL: Final = 5
FLOAT_TOTAL: Final = 6
MEAN: Final = 7
VARIANCE: Final = 8
DEVIATION: Final = 9
SAMPLE_VARIANCE: Final = 10
SAMPLE_DEVIATION: Final = 11
DECIMAL_MEAN: Final = 12
COVARIANCE: Final = 13
SAMPLE_COVARIANCE: Final = 14
FLAG_OF_SPREAD: Final = 15
SKEWNESS: Final = 16
KURTOSIS: Final = 17
WIDE_TOTAL_HIGH: Final = 18
WIDE_TOTAL_LOW: Final = 19
WIDE_MEAN_HIGH: Final = 20
WIDE_MEAN_LOW: Final = 21

REFUSED: Final = 7
"""The line of the table in which a kernel notes that an answer does not fit."""

_NEGATIVE_INFINITE_WORD: Final = -1 - INFINITE_WORD


@kernel
def not_finite(totals: Int64s, at: int) -> int:
    """Return the word of a sum of floats that are not all finite, counted from `at` on; 0 if all are."""
    above, below = totals[at + 1], totals[at + 2]
    rises, falls = above > 0 or below < 0, above < 0 or below > 0
    if totals[at] != 0 or (rises and falls):
        return np.int64(NAN_WORD)
    if rises:
        return np.int64(INFINITE_WORD)
    return np.int64(_NEGATIVE_INFINITE_WORD) if falls else np.int64(0)


@kernel
def total_word(totals: Int64s, at: int, largest: int) -> tuple[int, int]:
    """Return a whole number in one word, and an excess.

    The excess is not 0 if the number leaves 64 bits, or `largest`, if that is not 0.
    """
    if magnitude(totals[at]) >> 62 == 0 and magnitude(totals[at + 1]) >> 29 == 0:  # Fast path: small numbers
        total = totals[at] + (totals[at + 1] << 32)
        return total, np.int64(largest != 0 and not -largest <= total <= largest)
    number = number_at(totals, at, np.int64(WHOLE_LIMBS), np.int64(HEADROOM))
    sign = settle(number)
    low = number[0] | (number[1] << 32)
    excess = number[2] | number[3]
    if low < 0:  # 2⁶³ and more
        excess |= np.int64(sign > 0 or low << 1 != 0)
    excess |= np.int64(largest != 0 and not 0 <= low <= largest)
    return low if sign > 0 else -low, excess


@kernel
def mean_word(totals: Int64s, at: int, limbs: int, count: int) -> int:
    """Return the float nearest to a number, divided by `count`; 1 for the number itself."""
    base = np.int64(0)
    if limbs == FLOAT_LIMBS:
        base = np.int64(FLOAT_BASE)
        word = not_finite(totals, at + limbs)
        if word != 0:
            if count >= 0 or word == NAN_WORD:
                return word
            return np.int64(INFINITE_WORD) if word < 0 else np.int64(_NEGATIVE_INFINITE_WORD)
    number = number_at(totals, at, limbs, np.int64(HEADROOM))
    sign = settle(number)
    mantissa, exponent = rounded(number)
    if count < 0:
        sign, count = -sign, -count
    return float_word(sign, mantissa, count, base + exponent, False)


@kernel
def decimal_mean_word(totals: Int64s, at: int, largest: int, digits: int, count: int) -> tuple[int, int]:
    """Return a number of decimals, divided by `count`, with `digits` more digits, and an excess.

    The excess is not 0 if it leaves `largest`.
    """
    number = number_at(totals, at, np.int64(WHOLE_LIMBS), np.int64(HEADROOM))
    sign = settle(number)
    if count < 0:
        sign, count = -sign, -count
    if count < 0:  # the least number has no negative
        return np.int64(0), np.int64(1)
    multiply_by_tens(number, digits)
    mean = divided(number, count, largest)
    return mean if sign > 0 else -mean, np.int64(mean > largest)


@kernel
def variance_word(what: int, totals: Int64s, at: int, limbs: int, digits: int, count: int) -> int:
    """Return (n · Σx² − (Σx)²) / (n · n or n · (n − 1)), or its root, as the word of a float."""
    base, square_limbs, squares = np.int64(0), np.int64(WHOLE_SQUARE_LIMBS), at + limbs
    if limbs == FLOAT_LIMBS:
        if totals[squares] != 0 or totals[squares + 1] != 0 or totals[squares + 2] != 0:
            return np.int64(NAN_WORD)
        base, square_limbs, squares = (
            np.int64(2 * FLOAT_BASE),
            np.int64(FLOAT_SQUARE_LIMBS),
            squares + NOT_FINITE,
        )
    number = number_at(totals, at, limbs, np.int64(HEADROOM))
    square = number_at(totals, squares, square_limbs, np.int64(HEADROOM))
    sign = settle(square)
    settle(number)
    size, divisor = np.zeros(2, np.int64), np.zeros(8, np.int64)
    sign *= set_word(size, count)
    above = np.zeros(number.shape[0] + max(square.shape[0], number.shape[0]) + 4, np.int64)
    add_multiplied(above, size, square, sign)
    add_multiplied(above, number, number, np.int64(-1))
    sign = settle(above)
    mantissa, exponent = rounded(above)
    is_sample = what in (SAMPLE_VARIANCE, SAMPLE_DEVIATION)
    other = np.zeros(2, np.int64)
    set_word(other, count - 1 if is_sample else count)
    add_multiplied(divisor, size, other, np.int64(1))
    settle(divisor)
    multiply_by_tens(divisor, 2 * digits)
    below, below_exponent = rounded(divisor)
    takes_root = what in (DEVIATION, SAMPLE_DEVIATION)
    return float_word(sign, mantissa, below, base + exponent - below_exponent, takes_root)


@kernel
def answer_and_excess(totals: Int64s, aggregates: Int64s, column: int) -> tuple[int, int]:
    """Return the word of one column of the table, and an excess: not 0 if the answer does not fit it."""
    excess = np.int64(0)
    what, at, gate = aggregates[0, column], aggregates[1, column], aggregates[2, column]
    limbs, digits = aggregates[3, column], aggregates[4, column]
    count = np.int64(1) if gate < 0 else totals[gate]
    if what == FLAG:
        return np.int64(count != 0), excess
    if what in (FLAG_OF_TWO, SAMPLE_VARIANCE, SAMPLE_DEVIATION, SAMPLE_COVARIANCE) and count < 2:
        return np.int64(0), excess
    if what == FLAG_OF_TWO:
        return np.int64(1), excess
    if count == 0:
        return np.int64(0), excess
    if what == COUNT:
        return totals[at], excess
    if what == ANY:
        return np.int64(totals[at] > 0), excess
    if what == ALL:
        return np.int64(totals[at] <= 0), excess
    if what == TOTAL:
        return total_word(totals, at, limbs)
    if what == FLOAT_TOTAL:
        return mean_word(totals, at, limbs, np.int64(1)), excess
    if what == MEAN:
        return mean_word(totals, at, limbs, count), excess
    if what == DECIMAL_MEAN:
        return decimal_mean_word(totals, at, limbs, digits, count)
    if what in (WIDE_TOTAL_HIGH, WIDE_TOTAL_LOW):
        return wide_total(totals, at, limbs, digits, what == WIDE_TOTAL_HIGH)
    if what in (WIDE_MEAN_HIGH, WIDE_MEAN_LOW):
        return wide_mean(totals, at, limbs, digits, count, what == WIDE_MEAN_HIGH)
    if what in (COVARIANCE, SAMPLE_COVARIANCE):
        below = count - 1 if what == SAMPLE_COVARIANCE else count
        return covariance_word(totals, (at, limbs, digits), count, below), excess
    if what >= FLAG_OF_SPREAD:
        return moment_word(what - FLAG_OF_SPREAD, totals, (at, limbs, digits), count), excess
    return variance_word(what, totals, at, limbs, digits, count), excess
