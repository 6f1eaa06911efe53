"""Decimals in expressions: words scaled by powers of ten, brought to one scale."""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.column_types import DECIMAL_DIGITS_MAX, Bools, Int64s
from differential.expressions.compiled import CompiledExpression, Natural, Pair, constant
from differential.expressions.functions.numbers import power_of_ten

__all__ = ["beyond_digits", "scaled_to"]

_WORD_MAX: Final = (1 << 63) - 1
_LARGEST: Final = 10**DECIMAL_DIGITS_MAX - 1


def scaled_to(part: CompiledExpression, scale: int) -> CompiledExpression:
    """Return the words of a decimal, or int, with `scale` digits behind the point, for comparisons.

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


def beyond_digits(values: Natural) -> Bools | None:
    """Return where there are more digits than a decimal has; None if nowhere."""
    too_long: Bools = (values > _LARGEST) | (values < -_LARGEST)
    return too_long if too_long.any() else None
