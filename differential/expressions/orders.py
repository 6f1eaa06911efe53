"""Orders of rows: columns and expressions, each with a direction."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, TypeAlias

import numpy as np

from differential.columns.column_types import ColumnType
from differential.columns.float_words import floats_to_words
from differential.errors import ExpressionError, SchemaError
from differential.expressions.expression import Expr, Ordering, col
from differential.other_spellings import of_another_library
from timely.user_code.call_site import call_site

__all__ = [
    "By",
    "Length",
    "Months",
    "OrderSpec",
    "RangeUnit",
    "bounds_in_units",
    "in_units",
    "months",
    "orderings",
]

OrderSpec: TypeAlias = str | Expr | Ordering
By: TypeAlias = OrderSpec | Sequence[OrderSpec]
"""An order as users may write it: a column, an expression, one with a direction, or several in turn."""


@dataclass(frozen=True)
class Months:
    """A length of time in months, made by `dd.months`; two of them may have different numbers of days."""

    count: int

    def __neg__(self) -> Months:
        return Months(-self.count)


Length: TypeAlias = Decimal | dt.timedelta | Months
"""How far values of an order are apart: a number, or a time."""

RangeUnit: TypeAlias = Literal["range", "range_of_floats", "range_of_months", "range_of_wide"]

_MONTHS_MAX: Final = 120_000
_DIGITS_MAX: Final = 60
"""More places than decimals have before or behind their point."""

_DAY: Final = dt.timedelta(days=1)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def orderings(by: By, operator: str) -> tuple[Ordering, ...]:
    """Return the directions in `by`; raises SchemaError if it names nothing, or something else."""
    elsewhere = of_another_library(by)
    if elsewhere is not None:
        raise SchemaError(f"{operator} ({call_site()}): {by!r:.100} {elsewhere}, col.x.desc() its direction")
    parts = [by] if isinstance(by, str | Expr | Ordering) else list(by)
    directions: list[Ordering] = []
    for part in parts:
        if isinstance(part, Ordering):
            directions.append(part)
        elif isinstance(part, str | Expr):
            directions.append(Ordering(col(part) if isinstance(part, str) else part))
        else:
            raise SchemaError(
                f"{operator} ({call_site()}): an order is made of columns, such as 'x' or col.x.desc(), "
                f"not {part!r:.100}"
            )
    if not directions:
        raise SchemaError(f"{operator} ({call_site()}) needs an order: by='x', or by=[col.x.desc(), 'y']")
    return tuple(directions)


def months(count: int) -> Months:
    """So many months, for a bound of a range: `range_between(dd.months(-3), 0)`."""
    if type(count) is not int or abs(count) > _MONTHS_MAX:
        raise ExpressionError(f"months({count!r:.60}) ({call_site()}) takes whole numbers up to 120,000")
    return Months(count)


def bounds_in_units(
    start: int | float | Length | None, stop: int | float | Length | None, type_: ColumnType
) -> tuple[RangeUnit, int | None, int | None]:
    """Return the unit of a range with these bounds in an order of that type, and the bounds in it.

    Raises ExpressionError for bounds that cannot be added to the order.
    """
    bounds = (start, stop)
    if any(isinstance(bound, Months) for bound in bounds):
        if type_.kind not in ("date", "timestamp"):
            raise ExpressionError(f"months are no bound of a range in the order of a column of type {type_}")
        if any(bound for bound in bounds if not isinstance(bound, Months)):
            raise ExpressionError("one bound of a range is in months, and the other is not")
        first, last = (
            each.count if isinstance(each, Months) else None if each is None else 0 for each in bounds
        )
        return "range_of_months", first, last
    if type_.kind == "float":
        words = [None if each is None else _float_word(each, type_) for each in bounds]
        if any(bounds):
            return "range_of_floats", words[0], words[1]
        return "range", None if start is None else 0, None if stop is None else 0
    first, last = _in_units(start, type_, is_start=True), _in_units(stop, type_, is_start=False)
    if not type_.is_wide or not any(bounds):
        return "range", first, last
    if any(each is not None and abs(each) >= 1 << 63 for each in (first, last)):
        raise ExpressionError(f"a bound of a range has at most 18 digits, also in the order of a {type_}")
    return "range_of_wide", first, last


def _in_units(bound: int | float | Length | None, type_: ColumnType, *, is_start: bool) -> int | None:
    if isinstance(bound, float):
        bound = Decimal(bound)
    return bound if bound is None or isinstance(bound, int) else in_units(bound, type_, is_start=is_start)


def _float_word(bound: int | float | Length, type_: ColumnType) -> int:
    if isinstance(bound, dt.timedelta | Months):
        raise ExpressionError(f"{bound} is no bound of a range in the order of a column of type {type_}")
    try:
        number = float(bound)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ExpressionError(f"{bound} is no bound of a range: a float that is finite is needed")
    return int(floats_to_words(np.array([number]))[0])


def in_units(length: Length, type_: ColumnType, *, is_start: bool) -> int:
    """Return a bound of a range in units of an order of that type: in days, microseconds, or last digits.

    A bound between two units is moved to the one that leaves the range the same: the start up, the stop down.
    Raises ExpressionError for a bound that cannot be added to the order.
    """
    units: Fraction | None = None
    if isinstance(length, Months):
        raise ExpressionError(f"months are no bound of a range in the order of a column of type {type_}")
    if isinstance(length, Decimal) and length.is_finite() and length and abs(length.adjusted()) > _DIGITS_MAX:
        # A fraction would have all the digits. The same rows are that far.
        places = _DIGITS_MAX if length.adjusted() > 0 else -_DIGITS_MAX
        length = Decimal(1).scaleb(places).copy_sign(length)
    if isinstance(length, dt.timedelta):
        if type_.kind in ("date", "timestamp"):
            unit = _DAY if type_.kind == "date" else _MICROSECOND
            units = Fraction(length // _MICROSECOND, unit // _MICROSECOND)
    elif length.is_finite() and type_.kind in ("int", "date", "decimal"):
        units = Fraction(length) * 10**type_.scale
    if units is None:
        takes = "a timedelta, or INTERVAL '1' DAY in SQL" if type_.kind == "timestamp" else "a number"
        far = length.copy_abs() if isinstance(length, Decimal) else abs(length)
        raise ExpressionError(
            f"{far} is no bound of a range in the order of a column of type {type_}: it takes {takes}"
        )
    return math.ceil(units) if is_start else math.floor(units)
