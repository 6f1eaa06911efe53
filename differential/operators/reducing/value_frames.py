"""Frames of a range whose bounds are added to values, and not to their one word: floats, months of times, and
decimals of two words.

Each row's bound is made of its own value, and looked for among the values of its group. So frames of times
may go back: a month after 30 January at noon is behind a month after 31 January at six.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.float_words import floats_to_words, words_to_floats
from differential.expressions.functions.times import days_months_later
from differential.operators.reducing.window_parts import WindowFunctions

__all__ = ["value_frames"]

_FIRST: Final = -1 << 63
_LAST: Final = (1 << 63) - 1
"""Where bounds are that no word holds."""
_MONTHS_MAX: Final = 1 << 32
"""More months than any two times are apart."""


def value_frames(words: Int64s, number: Int64s, functions: WindowFunctions) -> Int64s:
    """Return the frames of rows, from the first row to the one behind the last: int64[2, n].

    words     int64[1 or 2, n]: of the column of the order, ascending within each group; inverted if it
              descends
    number    the group of each row, ascending
    """
    frame, out = functions.frame, np.empty((2, words.shape[1]), np.int64)
    out[0] = 0  # the caller puts the first row of the group there
    if frame.start is not None:
        out[0] = _rows_before(words, number, _moved(words, functions, frame.start), bounds_first=True)
    bounds = _moved(words, functions, frame.stop or 0)
    out[1] = np.maximum(out[0], _rows_before(words, number, bounds, bounds_first=False))
    return out


def _moved(words: Int64s, functions: WindowFunctions, by: int) -> Int64s:
    """Return the words of values that are so much further in the order."""
    if by == 0:
        return words
    is_down, unit = functions.is_down, functions.frame.unit
    plain = ~words if is_down else words
    if unit == "range_of_floats":
        (length,) = words_to_floats(np.array([by], np.int64))
        with np.errstate(over="ignore"):
            numbers = words_to_floats(plain[0]) + (-length if is_down else length)
        moved = floats_to_words(numbers)[np.newaxis]
    elif unit == "range_of_months":
        moved = _months_later(plain[0], -by if is_down else by, functions.per_day)[np.newaxis]
    else:
        moved = _added(plain, -by if is_down else by)
    return ~moved if is_down else moved


def _months_later(times: Int64s, count: int, per_day: int) -> Int64s:
    """Return times so many months later, also those that are in no year from 1 to 9999."""
    days, rest = np.divmod(times, per_day)
    moved, _ = days_months_later(days, min(max(count, -_MONTHS_MAX), _MONTHS_MAX))
    later = moved * per_day + rest
    return np.where(np.abs(moved) < _LAST // per_day, later, np.where(moved > 0, _LAST, _FIRST))


def _added(pairs: Int64s, number: int) -> Int64s:
    """Return numbers of two words (`wide_words.py`) with a number of one word added."""
    high, low = pairs
    out = np.array([high, low])
    with np.errstate(over="ignore"):
        out[1] += number
    has_left = ((low ^ out[1]) & (number ^ out[1])) < 0
    out[0] += np.where(has_left, 1 if number > 0 else -1, 0)
    return out


def _rows_before(words: Int64s, number: Int64s, bounds: Int64s, *, bounds_first: bool) -> Int64s:
    """Return how many rows come before each row's bound, in the order of groups, and of words in them.

    `bounds_first`: a bound comes before the rows that are equal to it, or else behind them.
    """
    rows = words.shape[1]
    kinds = np.repeat([not bounds_first, bounds_first], rows)
    compared = np.concatenate([bounds, words], axis=1)
    order = np.lexsort((kinds, *compared[::-1], np.concatenate([number, number])))
    is_word = order >= rows
    before = np.cumsum(is_word)
    out = np.empty(rows, np.int64)
    out[order[~is_word]] = before[~is_word]
    return out
