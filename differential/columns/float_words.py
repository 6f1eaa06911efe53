"""How does a float become an integer word with the same order?

The bits of a non-negative double, read as an integer, grow with its value. Those of a negative one grow the
wrong way round; flipping all bits but the sign mends that. The map is its own inverse on the bits.

    laws   words_to_floats(floats_to_words(x)) == x, but for -0.0, which becomes 0.0
           a < b  ⇔  word(a) < word(b);   a == b  ⇔  word(a) == word(b)
           every NaN has the same word, greater than that of infinity: equal rows are equal words
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from differential.columns.column_types import Floats, Int64s

__all__ = ["NAN_WORD", "float_to_word", "floats_to_words", "words_to_floats"]

_ALL_BUT_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_ALL_BUT_SIGN_BIT: Final = int(_ALL_BUT_SIGN)
_FLOAT: Final = struct.Struct("<d")
_BITS: Final = struct.Struct("<q")
NAN_WORD = 0x7FF8_0000_0000_0000


def floats_to_words(values: Floats) -> Int64s:
    """Return the words of `values` (float64[n] -> int64[n], a new array)."""
    raw = values.view(np.int64)
    bits: Int64s = raw ^ ((raw >> 63) & _ALL_BUT_SIGN)
    # -0.0 alone has become -1, one below 0.0. (No float arithmetic here: it would warn about some NaNs.)
    bits += bits == -1
    missing = np.isnan(values)
    if missing.any():
        bits[missing] = NAN_WORD
    return bits


def words_to_floats(words: Int64s) -> Floats:
    """Return the floats of `words` (int64[n] -> float64[n], a new array); inverse of `floats_to_words`."""
    bits = words ^ ((words >> 63) & _ALL_BUT_SIGN)
    return bits.view(np.float64)


def float_to_word(value: float) -> int:
    """Return the word of one float."""
    if value != value:
        return NAN_WORD
    bits: int = _BITS.unpack(_FLOAT.pack(value))[0]
    if bits < 0:
        bits ^= _ALL_BUT_SIGN_BIT
        bits += bits == -1
    return bits
