"""The two words of a decimal of 19 to 38 digits.

    value = high · 2⁶⁴ + low        both words are signed: -2⁶³ ≤ low < 2⁶³

A value that fits one word is (0, value): in columns of small numbers the high word is 0 throughout, and packs
to nothing. The order of values is that of the pairs, compared as signed words, and sums of values are sums of
words: the words of all rows can be added up on their own, and joined behind that. The two halves of a number
of 128 bits, of which the low one has no sign, have neither property.

Columns of such words are int64[2, n], the high words first.
"""

from __future__ import annotations

from typing import Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from progress.compiled.arrays import Int64s

__all__ = [
    "Objects",
    "are_small",
    "halves_of",
    "integers_of",
    "of_halves",
    "of_integers",
    "split_value",
    "widened",
    "within",
]

Objects: TypeAlias = npt.NDArray[np.object_]

_HALF: Final = 1 << 63
_WHOLE: Final = 1 << 64


def split_value(value: int) -> tuple[int, int]:
    """Return the high and the low word of a value. Requires: -2¹²⁷ ≤ value < 2¹²⁷ - 2⁶³."""
    high = (value + _HALF) >> 64
    return high, value - (high << 64)


def widened(words: Int64s) -> Int64s:
    """Return words of one-word numbers as two words each."""
    out = np.zeros((2, *words.shape), np.int64)
    out[1] = words
    return out


def are_small(words: Int64s) -> bool:
    """True if every value fits the low word."""
    return not words[0].any()


def of_halves(halves: Int64s, out: Int64s) -> None:
    """Write the words of numbers of 128 bits, int64[n, 2], the low half first, as Arrow has them."""
    np.add(halves[:, 1], halves[:, 0] < 0, out=out[0])
    out[1] = halves[:, 0]


def halves_of(words: Int64s) -> Int64s:
    """Return the halves of such numbers, int64[n, 2]: the inverse of `of_halves`."""
    halves = np.empty((words.shape[1], 2), np.int64)
    halves[:, 0] = words[1]
    np.subtract(words[0], words[1] < 0, out=halves[:, 1])
    return halves


def integers_of(words: Int64s) -> Objects:
    """Return the values as Python's integers."""
    wide = words[0].astype(object) * _WHOLE + words[1].astype(object)
    return np.asarray(wide, dtype=object)


def of_integers(values: Objects) -> Int64s:
    """Return the words of Python's integers. Requires: each fits, see `split_value`."""
    out = np.empty((2, *values.shape), np.int64)
    high = np.asarray(np.right_shift(values + _HALF, 64), dtype=object)
    out[0] = high
    out[1] = values - high * _WHOLE
    return out


def within(words: Int64s, digits: int) -> npt.NDArray[np.bool_]:
    """Return where values have at most so many digits."""
    high, low = split_value(10**digits)
    if high == 0:
        fits = (words[0] == 0) & (words[1] < low) & (words[1] > -low)
    else:
        above = (words[0] > high) | ((words[0] == high) & (words[1] >= low))
        # -(high, low) is (-high, -low): no power of ten has a low word of -2⁶³
        below = (words[0] < -high) | ((words[0] == -high) & (words[1] <= -low))
        fits = ~(above | below)
    return cast("npt.NDArray[np.bool_]", fits)
