"""Decimals in expressions: operators on compiled operands, decimals and whole numbers among them.

`wide_numbers.py` computes with their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

import numpy as np

from differential.columns.column_types import Bools, ColumnType, Int64s
from differential.columns.wide.wide_words import integers_of, split_value
from differential.expressions.arithmetic.wide_numbers import Numbers, compared, computed, rescaled
from differential.expressions.compiled import CompiledExpression, Evaluate, Natural, Pair, both, constant
from differential.expressions.functions.numbers import power_of_ten
from differential.expressions.operators import in_words

__all__ = ["arithmetic", "comparison", "in_type", "membership", "of_sign", "scaled_to"]

_WORD_MAX: Final = (1 << 63) - 1
_WORD_MIN: Final = -_WORD_MAX - 1

_Fail: TypeAlias = Callable[[Int64s, Bools, str], None]
"""Raises the error about the first of the rows that are true: their words, and why they fail."""


def _numbers_of(values: Natural, type_: ColumnType) -> Numbers:
    """Return values of a decimal or whole number as numbers."""
    return Numbers(cast("Int64s", values), type_.scale, type_.is_wide)


def arithmetic(op: str, parts: Sequence[CompiledExpression], to: ColumnType, fail: _Fail) -> Evaluate:
    """Return the run of + - * / % //; rows without a result, and not null, go to `fail`."""
    (left, right), (left_type, right_type) = (part.run for part in parts), (part.type for part in parts)
    why = "leaves 64 bits" if to.kind == "int" else f"has more than {to.precision} digits"
    divides = op in ("/", "%", "//")

    def run(words: Int64s) -> Pair:
        left_values, left_valid = left(words)
        right_values, right_valid = right(words)
        valid = both(left_valid, right_valid)
        if divides:
            right_values = _without_zeros(right_values, valid, words, fail)
        one, other = _numbers_of(left_values, left_type), _numbers_of(right_values, right_type)
        result, failing = computed(op, one, other, to)
        if failing is not None:
            failing = failing if valid is None else failing & valid
            if failing.any():
                fail(words, failing, why)
        return result, valid

    return run


def _without_zeros(values: Natural, valid: Bools | None, words: Int64s, fail: _Fail) -> Natural:
    """Return divisors with 1 where they are 0, which may only be below a null."""
    is_zero: Bools = values == 0 if values.ndim < 2 else (values[0] == 0) & (values[1] == 0)
    if not is_zero.any():
        return values
    failing = is_zero if valid is None else is_zero & valid
    if failing.any():
        fail(words, failing, "divides by zero")
    return cast("Natural", np.where(is_zero, 1, values))


def comparison(op: str, parts: Sequence[CompiledExpression]) -> Evaluate:
    """Return the run of a comparison with a wide side; the scales may be any."""
    (left, right), (left_type, right_type) = (part.run for part in parts), (part.type for part in parts)

    def run(words: Int64s) -> Pair:
        left_values, left_valid = left(words)
        right_values, right_valid = right(words)
        valid = both(left_valid, right_valid)
        one, other = _numbers_of(left_values, left_type), _numbers_of(right_values, right_type)
        return compared(op, one, other), valid

    return run


def membership(parts: Sequence[CompiledExpression]) -> Evaluate:
    """Return membership of decimals, or whole numbers, in constants.

    A constant with more digits behind the point than the values have is equal to none of them.
    """
    scale, small, large = parts[0].type.scale, list[int](), list[int]()
    for part in parts[1:]:
        value, shift = _integer_of(part), scale - part.type.scale
        whole, rest = divmod(value, 10**-shift) if shift < 0 else (value * 10**shift, 0)
        if not rest:
            (small if _WORD_MIN <= whole <= _WORD_MAX else large).append(whole)
    run = parts[0].run
    if not parts[0].type.is_wide:
        return in_words(run, small)
    pairs = [split_value(value) for value in large]

    def is_in(words: Int64s) -> Pair:
        (high, low), valid = run(words)
        is_member = cast("Bools", in_words(lambda _: (low, None), small)(words)[0]) & (high == 0)
        for one, other in pairs:
            is_member = is_member | ((high == one) & (low == other))
        return is_member, valid

    return is_in


def _integer_of(part: CompiledExpression) -> int:
    """Return the number of a constant, without its point."""
    assert part.constant is not None
    value = part.constant[0]
    return int(integers_of(cast("Int64s", value))[0]) if value.ndim == 2 else int(value)


def in_type(part: CompiledExpression, type_: ColumnType) -> CompiledExpression:
    """Return a decimal or whole number as a decimal that holds all its values: no row fails."""
    to = type_.not_null().or_null(part.type.nullable)
    if part.type == to:
        return part
    if part.type.scale == to.scale and not to.is_wide:
        return CompiledExpression(to, part.run, part.constant, part.can_fail, None, part.can_overflow)
    if part.constant is not None:
        values, valid = part.constant
        return constant(to, rescaled(_numbers_of(values, part.type), to)[0], valid)
    run, source = part.run, part.type

    def moved(words: Int64s) -> Pair:
        values, valid = run(words)
        return rescaled(_numbers_of(values, source), to)[0], valid

    return CompiledExpression(to, moved, can_fail=part.can_fail, can_overflow=part.can_overflow)


def of_sign(op: str, part: CompiledExpression) -> Evaluate:
    """Return the run of `negative` or `abs` of wide decimals: each has a negative."""
    run = part.run

    def signed(words: Int64s) -> Pair:
        values, valid = run(words)
        negative = np.array([-values[0] + (values[1] == _WORD_MIN), -values[1]], np.int64)
        if op == "negative":
            return negative, valid
        is_negative = (values[0] < 0) | ((values[0] == 0) & (values[1] < 0))
        return np.where(is_negative, negative, cast("Int64s", values)), valid

    return signed


def scaled_to(part: CompiledExpression, scale: int) -> CompiledExpression:
    """Return the words of a decimal of one word, or int, with `scale` digits behind the point, to compare.

    A number that would leave 64 bits becomes the largest word, or the least: with so many digits in front of
    the point it is above, or below, every decimal of that scale.
    """
    if part.type.scale == scale:
        return part
    factor = power_of_ten(scale - part.type.scale)
    largest = _WORD_MAX // factor

    def scaled(words: Natural) -> Natural:
        clipped = np.clip(words, -largest, largest)
        result: Int64s = np.where(
            clipped == words, clipped * factor, np.where(words > 0, _WORD_MAX, -_WORD_MAX)
        )
        return result

    if part.constant is not None:
        return constant(part.type, scaled(part.constant[0]), part.constant[1])
    run = part.run

    def scaled_run(words: Int64s) -> Pair:
        values, valid = run(words)
        return scaled(values), valid

    return CompiledExpression(part.type, scaled_run, can_fail=part.can_fail, can_overflow=part.can_overflow)
