"""The long way of `wide_numbers.py`: batches in which a number does not fit one word.

Python's integers compute each row. They have no digits that get lost, and such numbers are rare.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from differential.columns.column_types import DECIMAL_DIGITS_MAX, Bools, ColumnType, Int64s
from differential.columns.wide.wide_words import Objects, integers_of, of_integers

__all__ = ["Rounding", "as_words", "at_scale", "computed", "divided", "rescaled", "whole_parts"]

Rounding = Literal["up", "down", "even"]
"""Where halves go: away from zero, or to the even digit; or all digits are dropped."""

_BEYOND: Final = 10**DECIMAL_DIGITS_MAX
_INT_END: Final = 1 << 63


def computed(
    op: str, left: Int64s, left_scale: int, right: Int64s, right_scale: int, to: ColumnType
) -> tuple[Int64s, Bools | None]:
    """See `wide_numbers.computed`."""
    one, other = _exact(left), _exact(right)
    scale = max(left_scale, right_scale)
    if op == "*":
        return as_words(divided(one * other, 10 ** max(0, left_scale + right_scale - to.scale)), to)
    if op == "/":
        shift = to.scale - left_scale + right_scale
        above, below = one * 10 ** max(shift, 0), other * 10 ** max(-shift, 0)
        return as_words(divided(above, below), to)
    one, other = one * 10 ** (scale - left_scale), other * 10 ** (scale - right_scale)
    if op == "//":
        return as_words(_object(one // other), to)
    result = one + other if op == "+" else one - other if op == "-" else one % other
    return as_words(divided(_object(result), 10 ** max(0, scale - to.scale)), to)


def rescaled(words: Int64s, scale: int, to: ColumnType, rounding: Rounding) -> tuple[Int64s, Bools | None]:
    """See `wide_numbers.rescaled`."""
    exact, shift = _exact(words), to.scale - scale
    if shift >= 0:
        return as_words(_object(exact * 10**shift), to)
    return as_words(divided(exact, 10**-shift, rounding), to)


def whole_parts(words: Int64s, scale: int, to: ColumnType, up: bool) -> Int64s:
    """See `wide_numbers.whole_parts`."""
    exact, factor = _exact(words), 10**scale
    return as_words(_object(-(-exact // factor) if up else exact // factor), to)[0]


def at_scale(words: Int64s, scale: int, to: int) -> Int64s:
    """Return numbers with so many digits behind the point, as two words, for comparisons.

    A number of too many digits becomes 10³⁸, or the negative of it: it is above, or below, all that are not
    changed.
    """
    exact = _exact(words) * 10 ** (to - scale)
    return of_integers(_object(np.clip(exact, -_BEYOND, _BEYOND)) if to > scale else _object(exact))


def _exact(words: Int64s) -> Objects:
    """Return numbers of one or two words as integers, one for each row, or one."""
    return integers_of(words) if words.ndim == 2 else np.atleast_1d(words).astype(object)


def _object(values: object) -> Objects:
    return np.asarray(values, dtype=object)


def divided(values: Objects, by: Objects | int, rounding: Rounding = "up") -> Objects:
    """Return whole quotients, rounded."""
    if isinstance(by, int) and by == 1:
        return values
    sizes, divisors = np.abs(values), np.abs(by)
    quotient, rest = _object(sizes // divisors), _object(sizes % divisors)
    if rounding != "down":
        twice = 2 * rest
        up = _object(twice >= divisors) if rounding == "up" else _object(twice > divisors)
        if rounding == "even":
            up = up | (_object(twice == divisors) & _object(quotient % 2 == 1))
        quotient = quotient + up.astype(bool)
    is_negative = _object(_object(values < 0) != _object(np.less(by, 0))).astype(bool)
    return _object(np.where(is_negative, -quotient, quotient))


def as_words(values: Objects, to: ColumnType) -> tuple[Int64s, Bools | None]:
    """Return numbers as words of a type, and where they do not fit it."""
    end = _INT_END if to.kind == "int" else 10**to.precision
    failing = np.asarray((values >= end) | (values <= -end), np.bool_)
    if to.kind == "int":
        failing &= np.asarray(values != -end, np.bool_)
    if failing.any():
        values = np.where(failing, 0, values)
    words = of_integers(values) if to.is_wide else values.astype(np.int64)
    return words, failing if failing.any() else None
