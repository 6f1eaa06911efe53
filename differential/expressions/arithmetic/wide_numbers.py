"""Arithmetic of decimals of up to 38 digits: exact, and rounded once, halves away from zero.

Numbers are whole: a decimal of scale s is its value · 10ˢ. They are int64[n] or, of one number for all rows,
of no dimension; those of wide types are int64[2, n] or int64[2, 1] (`columns/wide/wide_words.py`). Nearly all
fit one word, whatever their type: then one or two calls per operator compute with words. If an operand or a
result does not fit, sums at one scale, and products of words, take some calls more. All else of such a batch,
which moves digits of numbers of two words, is left to `wide_integers.py`.

Results say where they do not fit the digits of their type. Below a null stands any number, which may be such
a result; the caller knows which rows are null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, cast

import numpy as np

from differential.columns.column_types import WORD_DIGITS_MAX, Bools, ColumnType, Int64s
from differential.columns.wide.wide_words import widened, within
from differential.expressions.arithmetic import wide_integers
from differential.expressions.arithmetic.whole_numbers import combined

__all__ = ["Numbers", "compared", "computed", "rescaled", "whole_parts"]

_WORD_MAX: Final = (1 << 63) - 1
_SAFE: Final = float(1 << 62)
_DIGIT: Final = (1 << 32) - 1


class Numbers(NamedTuple):
    """Numbers, how many of their digits are behind the point, and whether they are two words each."""

    words: Int64s
    scale: int
    is_wide: bool

    def in_one_word(self) -> Int64s | None:
        """Return the words if each number fits one."""
        if not self.is_wide:
            return self.words
        if self.words[0].any():
            return None
        low: Int64s = self.words[1]
        return low if low.shape[0] != 1 else low.reshape(())


def computed(op: str, left: Numbers, right: Numbers, to: ColumnType) -> tuple[Int64s, Bools | None]:
    """Return `left` op `right`, for + - * / % //, as words of the type `to`, and where it does not fit.

    Requires: no divisor is 0. A result that does not fit is any number; None: all fit.
    """
    one, other = left.in_one_word(), right.in_one_word()
    if one is not None and other is not None:
        words = _SMALL[op](one, left.scale, other, right.scale, to.scale)
        if words is not None:
            return _as_words(words, to)
    exact = _in_two_words(op, left, right, to) if to.is_wide else None
    if exact is not None:
        return exact
    return wide_integers.computed(op, left.words, left.scale, right.words, right.scale, to)


def _in_two_words(
    op: str, left: Numbers, right: Numbers, to: ColumnType
) -> tuple[Int64s, Bools | None] | None:
    """Return a sum, difference or product that needs no digits moved; None if another has to compute it."""
    if op in ("+", "-") and left.scale == right.scale == to.scale:
        words, wraps = _sums(op, *(_two_words(each) for each in (left, right)))
        failing = wraps | ~within(words, to.precision)
        return words, failing if failing.any() else None
    one, other = left.in_one_word(), right.in_one_word()
    if op == "*" and left.scale + right.scale == to.scale and one is not None and other is not None:
        words = _products(np.atleast_1d(one), np.atleast_1d(other))
        return words, _none_if_all(within(words, to.precision))
    return None


def _two_words(numbers: Numbers) -> Int64s:
    return numbers.words if numbers.is_wide else widened(np.atleast_1d(numbers.words))


def _sums(op: str, left: Int64s, right: Int64s) -> tuple[Int64s, Bools]:
    """Return sums or differences, and where the high words wrap."""
    sign, other = (1, right) if op == "+" else (-1, ~right)  # ~x is negative where -x is, but for 0
    low = left[1] + sign * right[1]
    carries = ((left[1] ^ low) & (other[1] ^ low)) < 0
    high = left[0] + sign * right[0]
    # Without the carry: 0 + 0 and a carry of -1 is -1, which is no wrap. A carry that wraps ends at -2⁶³ or
    # 2⁶³ - 1, which is beyond 38 digits.
    wraps = ((left[0] ^ high) & (other[0] ^ high)) < 0
    high = high + np.where(carries, np.where(low < 0, 1, -1), 0)
    return np.array([high, low], np.int64), wraps


def _products(left: Int64s, right: Int64s) -> Int64s:
    """Return the products of numbers of one word: as by hand, with digits of 32 bits."""
    (low, high), (other_low, other_high) = ((words & _DIGIT, words >> 32) for words in (left, right))
    lowest = low.view(np.uint64) * other_low.view(np.uint64)
    cross, other_cross = low * other_high, high * other_low
    carried = (cross & _DIGIT) + (other_cross & _DIGIT) + (lowest >> np.uint64(32)).view(np.int64)
    words = (carried << 32) | (lowest & np.uint64(_DIGIT)).view(np.int64)
    above = high * other_high + (cross >> 32) + (other_cross >> 32) + (carried >> 32)
    return np.array([above + (words < 0), words], np.int64)


def rescaled(
    numbers: Numbers, to: ColumnType, *, toward_zero: bool = False, to_even: bool = False
) -> tuple[Int64s, Bools | None]:
    """Return numbers with the digits of the type `to`, and where they do not fit; see `computed`."""
    words, shift = numbers.in_one_word(), to.scale - numbers.scale
    if words is not None:
        moved = _shifted(words, shift) if shift >= 0 or toward_zero else _dropped(words, -shift, to_even)
        if moved is not None:
            return _as_words(moved, to)
    if shift == 0 and numbers.is_wide and to.is_wide:
        return numbers.words, _none_if_all(within(numbers.words, to.precision))
    rounding: wide_integers.Rounding = "down" if toward_zero else "even" if to_even else "up"
    return wide_integers.rescaled(numbers.words, numbers.scale, to, rounding)


def whole_parts(words: Int64s, scale: int, to: ColumnType, *, up: bool) -> Int64s:
    """Return the next whole numbers below numbers of two words, or above, in a type that holds them."""
    small = Numbers(words, scale, True).in_one_word()
    if small is not None and scale <= WORD_DIGITS_MAX:
        factor = int(10**scale)
        return _as_words(-(-small // factor) if up else small // factor, to)[0]
    return wide_integers.whole_parts(words, scale, to, up)


def compared(compare: str, left: Numbers, right: Numbers) -> Bools:
    """Return a comparison of numbers of any two scales: ==, !=, <, <=, > or >=."""
    scale = max(left.scale, right.scale)
    one, other = left.in_one_word(), right.in_one_word()
    if one is not None and other is not None:
        # A number that would leave 64 bits is above, or below, all others of that many digits, but not those
        # of wide types.
        first, second = _shifted(one, scale - left.scale), _shifted(other, scale - right.scale)
        if first is not None and second is not None:
            return _WORDS[compare](first, second)
    first, second = (wide_integers.at_scale(each.words, each.scale, scale) for each in (left, right))
    is_equal: Bools = (first[0] == second[0]) & (first[1] == second[1])
    if compare in ("==", "!="):
        return is_equal if compare == "==" else ~is_equal
    is_less: Bools = (first[0] < second[0]) | ((first[0] == second[0]) & (first[1] < second[1]))
    if compare in ("<", ">="):
        return is_less if compare == "<" else ~is_less
    return is_less | is_equal if compare == "<=" else ~(is_less | is_equal)


def _as_words(words: Int64s, to: ColumnType) -> tuple[Int64s, Bools | None]:
    """Return numbers of one word as words of a type, and where they do not fit it."""
    if to.kind == "int":
        return words, None
    if to.is_wide:
        return widened(np.atleast_1d(words)), None  # 64 bits are at most 19 digits
    largest = 10**to.precision - 1
    return words, _none_if_all((words <= largest) & (words >= -largest))


def _none_if_all(fits: Bools) -> Bools | None:
    return None if fits.all() else ~fits


def _shifted(words: Int64s, digits: int) -> Int64s | None:
    """Return words · 10^digits, towards zero; None if one does not fit."""
    if digits == 0:
        return words
    if digits < 0:
        if digits < -WORD_DIGITS_MAX:
            return np.zeros_like(words)
        factor = int(10**-digits)
        return cast("Int64s", np.sign(words) * (np.abs(words) // factor))
    if digits > WORD_DIGITS_MAX:
        return None if words.any() else words
    moved, fits = combined("*", words, np.asarray(10**digits, np.int64))
    return moved if fits else None


def _dropped(words: Int64s, digits: int, to_even: bool = False) -> Int64s:
    """Return words / 10^digits to the nearest, halves away from zero, or to the even digit."""
    if digits > WORD_DIGITS_MAX:
        # If 19 digits are dropped, half a unit is 5·10^18.
        half = 5 * 10**18 + to_even
        is_one = (words >= half).astype(np.int64) - (words <= -half)
        return is_one if digits == WORD_DIGITS_MAX + 1 else np.zeros_like(words)
    factor = int(10**digits)
    quotient, rest = np.divmod(words, factor)
    above = factor - rest
    if to_even:
        return cast("Int64s", quotient + ((rest > above) | ((rest == above) & (quotient % 2 == 1))))
    # divmod rounds down: a rest of one half rounds up for positive words, and stays down for negative ones.
    up = np.where(words >= 0, rest >= above, rest > above)
    return cast("Int64s", quotient + up)


def _at_one_scale(left: Int64s, before: int, right: Int64s, other: int) -> tuple[Int64s, Int64s] | None:
    scale = max(before, other)
    first, second = _shifted(left, scale - before), _shifted(right, scale - other)
    return None if first is None or second is None else (first, second)


def _add_or_subtract(op: str) -> Callable[[Int64s, int, Int64s, int, int], Int64s | None]:
    def run(left: Int64s, before: int, right: Int64s, other: int, scale: int) -> Int64s | None:
        sides = _at_one_scale(left, before, right, other)
        if sides is None:
            return None
        words, fits = combined(op, *sides)
        return _dropped(words, max(before, other) - scale) if fits else None

    return run


def _product(left: Int64s, before: int, right: Int64s, other: int, scale: int) -> Int64s | None:
    words, fits = combined("*", left, right)
    return _dropped(words, before + other - scale) if fits else None


def _remainder(left: Int64s, before: int, right: Int64s, other: int, scale: int) -> Int64s | None:
    sides = _at_one_scale(left, before, right, other)
    if sides is None:
        return None
    minus = sides[1] == -1  # of -1 every remainder is 0, and that of -2⁶³ is more than numpy can divide
    rest = np.remainder(sides[0], np.where(minus, 1, sides[1]))
    return _dropped(rest, max(before, other) - scale)


def _whole_quotient(left: Int64s, before: int, right: Int64s, other: int, scale: int) -> Int64s | None:
    sides = _at_one_scale(left, before, right, other)
    if sides is None or ((sides[1] == -1) & (sides[0] == -_WORD_MAX - 1)).any():
        return None
    return cast("Int64s", np.floor_divide(*sides))


def _quotient(left: Int64s, before: int, right: Int64s, other: int, scale: int) -> Int64s | None:
    """Divide as by hand, some digits at a time: each rest, with these digits behind it, fits a word."""
    shift = scale - before + other
    sizes, divisors = np.abs(left), np.abs(right)
    if shift < 0 or not sizes.size or not divisors.size or min(sizes.min(), divisors.min()) < 0:
        return None
    largest, least = int(divisors.max()), int(divisors.min())
    if float(sizes.max()) * 10.0**shift / least >= _SAFE:
        return None
    quotient, rest = np.divmod(sizes, divisors)
    at_once = 0
    while largest * 10 ** (at_once + 1) <= _WORD_MAX and at_once < WORD_DIGITS_MAX:
        at_once += 1
    if shift and not at_once:
        return None
    while shift:
        digits = min(shift, at_once)
        more, rest = np.divmod(rest * int(10**digits), divisors)
        quotient = quotient * int(10**digits) + more
        shift -= digits
    quotient = quotient + (rest >= divisors - rest)
    return cast("Int64s", np.where((left < 0) != (right < 0), -quotient, quotient))


_SMALL: Final[dict[str, Callable[[Int64s, int, Int64s, int, int], Int64s | None]]] = {
    "+": _add_or_subtract("+"),
    "-": _add_or_subtract("-"),
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "//": _whole_quotient,
}
"""From words and scale of both sides, and the scale of the result, to its words; None if some do not fit."""

_WORDS: Final[dict[str, Callable[[Int64s, Int64s], Bools]]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
