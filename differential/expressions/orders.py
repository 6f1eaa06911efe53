"""Orders of rows: columns and expressions, each with a direction."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

from differential.columns.column_types import ColumnType
from differential.errors import ExpressionError, SchemaError
from differential.expressions.expression import Expr, Ordering, col
from differential.other_spellings import of_another_library
from timely.user_code.call_site import call_site

__all__ = ["By", "Length", "OrderSpec", "in_units", "orderings"]

OrderSpec: TypeAlias = str | Expr | Ordering
By: TypeAlias = OrderSpec | Sequence[OrderSpec]
"""An order as users may write it: a column, an expression, one with a direction, or several in turn."""

Length: TypeAlias = Decimal | dt.timedelta
"""How far values of an order are apart: a number, or a time."""

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


def in_units(length: Length, type_: ColumnType, *, is_start: bool) -> int:
    """Return a bound of a range in units of an order of that type: in days, microseconds, or last digits.

    A bound between two units is moved to the one that leaves the range the same: the start up, the stop down.
    Raises ExpressionError for a bound that cannot be added to the order.
    """
    units: Fraction | None = None
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
