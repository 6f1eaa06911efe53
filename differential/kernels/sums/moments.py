"""Covariances and higher moments, of the exact sums of floats, of their products and of their powers.

    covariance   n · Σxy − Σx · Σy, over n · n or n · (n − 1)
    A2           n · Σx² − (Σx)²
    skewness     (n² · Σx³ − 3n · Σx · Σx² + 2 · (Σx)³) / A2 ^ 1.5
    kurtosis     (n³ · Σx⁴ − 4n² · Σx · Σx³ + 6n · (Σx)² · Σx² − 3 · (Σx)⁴) / A2² − 3

What is added up here is exact; above and below the line each number is rounded once.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from differential.kernels.sums.components import (
    FLOAT_BASE,
    FLOAT_CUBE_LIMBS,
    FLOAT_FOURTH_LIMBS,
    FLOAT_LIMBS,
    FLOAT_SQUARE_LIMBS,
)
from differential.kernels.sums.limbs import (
    HEADROOM,
    NAN_WORD,
    add_multiplied,
    float_word,
    rounded,
    set_word,
    settle,
)
from progress.compiled.kernel import Int64s, kernel

FLAG: Final = 0
SKEW: Final = 1
KURT: Final = 2
_ROOM: Final = 16
"""Limbs above those of a power: for factors of n, and for carries."""


@kernel
def number_at(totals: Int64s, at: int, limbs: int, room: int) -> Int64s:
    """Return an unsettled number (`limbs.py`) of `limbs` limbs from `at` on, with `room` more."""
    number = np.zeros(limbs + room, np.int64)
    for index in range(limbs):
        number[index] = totals[at + index]
    return number


@kernel
def is_not_finite(totals: Int64s, at: int) -> bool:
    """Return True if some float is not finite among those whose components begin at `at`."""
    behind = at + FLOAT_LIMBS
    return totals[behind] != 0 or totals[behind + 1] != 0 or totals[behind + 2] != 0


@kernel
def settled_at(totals: Int64s, at: int, limbs: int) -> tuple[Int64s, int]:
    """Return the magnitude and the sign of the number at `at`."""
    number = number_at(totals, at, limbs, np.int64(HEADROOM))
    return number, settle(number)


@kernel
def settled_product(a: tuple[Int64s, int], b: tuple[Int64s, int]) -> tuple[Int64s, int]:
    """Return the magnitude and the sign of a product."""
    product = np.zeros(a[0].shape[0] + b[0].shape[0] + HEADROOM, np.int64)
    add_multiplied(product, a[0], b[0], np.int64(1))
    settle(product)
    return product, a[1] * b[1]


@kernel
def whole(count: int) -> tuple[Int64s, int]:
    """Return the magnitude and the sign of a word."""
    number = np.zeros(2, np.int64)
    return number, set_word(number, count)


@kernel
def covariance_word(totals: Int64s, places: tuple[int, int, int], count: int, below: int) -> int:
    """Return the covariance over `count` · `below`; places: the components of Σx, Σy and Σxy."""
    if is_not_finite(totals, places[0]) or is_not_finite(totals, places[1]):
        return np.int64(NAN_WORD)
    limbs = np.int64(FLOAT_LIMBS)
    x, y = settled_at(totals, places[0], limbs), settled_at(totals, places[1], limbs)
    both = settled_at(totals, places[2], np.int64(FLOAT_SQUARE_LIMBS))
    size = whole(count)
    above = np.zeros(FLOAT_SQUARE_LIMBS + _ROOM, np.int64)
    add_multiplied(above, size[0], both[0], size[1] * both[1])
    add_multiplied(above, x[0], y[0], -x[1] * y[1])
    sign = settle(above)
    mantissa, exponent = rounded(above)
    divisor = settled_product(size, whole(below))
    divided_by, below_exponent = rounded(divisor[0])
    power = np.int64(2 * FLOAT_BASE) + exponent - below_exponent
    return float_word(sign * divisor[1], mantissa, divided_by, power, False)


@kernel
def spread(count: int, x: tuple[Int64s, int], squares: tuple[Int64s, int]) -> tuple[int, int]:
    """Return A2 as a mantissa and an exponent, which is even."""
    total = np.zeros(FLOAT_SQUARE_LIMBS + _ROOM, np.int64)
    size = whole(count)
    add_multiplied(total, size[0], squares[0], size[1] * squares[1])
    add_multiplied(total, x[0], x[0], np.int64(-1))
    settle(total)
    mantissa, exponent = rounded(total)
    if exponent & 1 != 0:
        return mantissa << 1, exponent - 1
    return mantissa, exponent


@kernel
def third_moment(
    count: int, x: tuple[Int64s, int], squares: tuple[Int64s, int], cubes: tuple[Int64s, int]
) -> tuple[int, int, int]:
    """Return the sign, the mantissa and the exponent of what is above the line of the skewness."""
    total = np.zeros(FLOAT_CUBE_LIMBS + _ROOM, np.int64)
    size, x_squares = whole(count), settled_product(x, squares)
    twice, x_twice = settled_product(size, size), settled_product(x, x)
    add_multiplied(total, twice[0], cubes[0], cubes[1])
    add_multiplied(total, size[0], x_squares[0], -3 * size[1] * x_squares[1])
    add_multiplied(total, x[0], x_twice[0], 2 * x[1])
    sign = settle(total)
    mantissa, exponent = rounded(total)
    return sign, mantissa, exponent


@kernel
def fourth_moment(
    count: int,
    x: tuple[Int64s, int],
    squares: tuple[Int64s, int],
    cubes: tuple[Int64s, int],
    fourths: tuple[Int64s, int],
) -> tuple[int, int, int]:
    """Return the sign, the mantissa and the exponent of what is above the line of the kurtosis."""
    total = np.zeros(FLOAT_FOURTH_LIMBS + _ROOM, np.int64)
    size, x_twice = whole(count), settled_product(x, x)
    twice = settled_product(size, size)
    thrice, x_cubes = settled_product(twice, size), settled_product(x, cubes)
    x_squares = settled_product(x_twice, squares)
    add_multiplied(total, thrice[0], fourths[0], thrice[1] * fourths[1])
    add_multiplied(total, twice[0], x_cubes[0], -4 * x_cubes[1])
    add_multiplied(total, size[0], x_squares[0], 6 * size[1] * x_squares[1])
    add_multiplied(total, x_twice[0], x_twice[0], np.int64(-3))
    sign = settle(total)
    mantissa, exponent = rounded(total)
    return sign, mantissa, exponent


@kernel
def moment_word(what: int, totals: Int64s, places: tuple[int, int, int], count: int) -> int:
    """Return 1 if the values differ, for FLAG; the word of the skewness for SKEW, of the kurtosis for KURT.

    places   the components of Σx, Σx² and Σx³
    """
    if is_not_finite(totals, places[0]):
        return np.int64(1) if what == FLAG else np.int64(NAN_WORD)
    x = settled_at(totals, places[0], np.int64(FLOAT_LIMBS))
    squares = settled_at(totals, places[1], np.int64(FLOAT_SQUARE_LIMBS))
    mantissa, exponent = spread(count, x, squares)
    if what == FLAG or mantissa == 0:
        return np.int64(mantissa != 0)
    cubes = settled_at(totals, places[2], np.int64(FLOAT_CUBE_LIMBS))
    below = np.float64(mantissa)
    if what == SKEW:
        sign, above, power = third_moment(count, x, squares, cubes)
        value = math.ldexp(np.float64(above) / (below * math.sqrt(below)), power - 3 * (exponent >> 1))
    else:
        fourths = settled_at(totals, places[2] + FLOAT_CUBE_LIMBS, np.int64(FLOAT_FOURTH_LIMBS))
        sign, above, power = fourth_moment(count, x, squares, cubes, fourths)
        value = math.ldexp(np.float64(above) / (below * below), power - 2 * exponent)
    value = sign * value - (3 if what == KURT else 0)
    box = np.empty(1, np.float64)
    box[0] = value
    bits = box.view(np.int64)[0]
    word = bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))
    return word + np.int64(word == -1)
