"""How many digits does the result of an operator on decimals have?

The rules are those of Spark 4, with `spark.sql.decimalOperations.allowPrecisionLoss`. A result that would
need more than 38 digits gives up digits behind the point, down to six, for those before it; a sum or mean
gives up digits before the point instead.
"""

from __future__ import annotations

from typing import Final

from differential.columns.column_types import DECIMAL_DIGITS_MAX, ColumnType, decimal

__all__ = [
    "adjusted",
    "mean_of_decimals",
    "of_difference",
    "of_product",
    "of_quotient",
    "of_remainder",
    "of_rounding",
    "sum_of_decimals",
]

_SCALE_LEAST: Final = 6
"""Number of digits behind the point that do not give way to those before it."""

_SUM_DIGITS: Final = 10
_MEAN_DIGITS: Final = 4


def adjusted(precision: int, scale: int) -> ColumnType:
    """Return the decimal of so many digits, or the one that gives up digits behind the point for those before
    it.
    """
    if precision <= DECIMAL_DIGITS_MAX:
        return decimal(precision, scale)
    before = precision - scale
    least = min(scale, _SCALE_LEAST)
    return decimal(DECIMAL_DIGITS_MAX, max(DECIMAL_DIGITS_MAX - before, least))


def _bounded(precision: int, scale: int) -> ColumnType:
    return decimal(min(precision, DECIMAL_DIGITS_MAX), min(scale, DECIMAL_DIGITS_MAX))


def sum_of_decimals(type_: ColumnType) -> ColumnType:
    """Return the type of a sum of a group."""
    return _bounded(type_.precision + _SUM_DIGITS, type_.scale)


def mean_of_decimals(type_: ColumnType) -> ColumnType:
    """Return the type of a mean of a group."""
    return _bounded(type_.precision + _MEAN_DIGITS, type_.scale + _MEAN_DIGITS)


def of_difference(left: ColumnType, right: ColumnType) -> ColumnType:
    """Return the type of `left` + `right` and of `left` - `right`."""
    scale = max(left.scale, right.scale)
    return adjusted(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def of_product(left: ColumnType, right: ColumnType) -> ColumnType:
    """Return the type of `left` · `right`."""
    return adjusted(left.precision + right.precision + 1, left.scale + right.scale)


def of_quotient(left: ColumnType, right: ColumnType) -> ColumnType:
    """Return the type of `left` / `right`."""
    scale = max(_SCALE_LEAST, left.scale + right.precision + 1)
    return adjusted(left.precision - left.scale + right.scale + scale, scale)


def of_remainder(left: ColumnType, right: ColumnType) -> ColumnType:
    """Return the type of `left` % `right`.

    It has the digits of `right` before the point: the remainder has its sign, as in Python, so that of -1 and
    100 is 99. Spark's has the sign of `left`, and no more digits than that.
    """
    scale = max(left.scale, right.scale)
    return adjusted(right.precision - right.scale + scale, scale)


def of_rounding(type_: ColumnType, digits: int) -> ColumnType:
    """Return the type of a decimal rounded to `digits` digits behind the point; negative: before it."""
    before = type_.precision - type_.scale + 1
    if digits < 0:
        return decimal(min(max(before, 1 - digits), DECIMAL_DIGITS_MAX), 0)
    scale = min(type_.scale, digits)
    return decimal(min(before + scale, DECIMAL_DIGITS_MAX), scale)
