"""Functions over columns written in terms of others: `dd.trim(col.name)`, `dd.if_else(c, x, y)`.

They have PySpark's names. The functions of the catalogue itself are in `catalogued.py`.
"""

from __future__ import annotations

from differential.errors import ExpressionError
from differential.expressions.expression import (
    Expr,
    ExprLike,
    as_expr,
    call_function,
    check_columns,
    when,
)
from timely.user_code.call_site import call_site

__all__ = [
    "abs",
    "concat_ws",
    "date_trunc",
    "datediff",
    "if_else",
    "isnan",
    "isnull",
    "ltrim",
    "mod",
    "nullif",
    "rtrim",
    "substring",
    "trim",
]


def trim(text: ExprLike, characters: str | None = None) -> Expr:
    """Without the spaces, or the characters, at both ends; `x.str.strip()` takes all white space off."""
    return call_function("strip", text, " " if characters is None else characters)


def ltrim(text: ExprLike, characters: str | None = None) -> Expr:
    """Without the spaces, or the characters, at the beginning."""
    return call_function("lstrip", text, " " if characters is None else characters)


def rtrim(text: ExprLike, characters: str | None = None) -> Expr:
    """Without the spaces, or the characters, at the end."""
    return call_function("rstrip", text, " " if characters is None else characters)


def substring(text: ExprLike, position: int, length: int) -> Expr:
    """`length` characters from `position` on, counted from 1, or from the end if negative."""
    return _column("substring", text).substr(position, length)


def concat_ws(separator: str, *values: ExprLike) -> Expr:
    """The texts with a separator between them; nulls are left out."""
    check_columns("concat_ws", values, f"{separator!r}, ")
    return call_function("concat_ws", separator, *values)


def abs(x: ExprLike) -> Expr:
    """The value without its sign."""
    return _column("abs", x).abs()


def mod(x: ExprLike, divisor: ExprLike) -> Expr:
    """The remainder of a division that rounds down, as `%`: it has the sign of the divisor."""
    return _column("mod", x) % divisor


def isnan(x: ExprLike) -> Expr:
    """True where the value is not a number; false for null, as in Spark. `x.is_nan()` is null there."""
    return call_function("is_nan", x).fill_null(False)


def isnull(x: ExprLike) -> Expr:
    """True where the value is null."""
    return _column("isnull", x).is_null()


def nullif(value: ExprLike, unwanted: ExprLike) -> Expr:
    """`value`, but null where it equals `unwanted`."""
    check_columns("nullif", [value])
    expr = as_expr(value)
    return when((expr != unwanted).fill_null(True)).then(expr)


def if_else(condition: ExprLike, value: ExprLike, otherwise: ExprLike) -> Expr:
    """`value` where `condition` is true, else `otherwise`."""
    return when(condition).then(value).otherwise(otherwise)


def date_trunc(unit: str | Expr, t: ExprLike) -> Expr:
    """The beginning of the year, quarter, month, week, day, hour, … that the time is in."""
    if isinstance(unit, Expr) and isinstance(t, str):
        raise ExpressionError(
            f"date_trunc({unit!r}, {t!r}) ({call_site()}): the unit comes first. "
            f"Write date_trunc({t!r}, {unit!r})"
        )
    return call_function("date_trunc", t, unit)


def datediff(end: ExprLike, start: ExprLike) -> Expr:
    """The number of days that begin after `start` and no later than `end`."""
    return call_function("date_diff", end, start)


def _column(name: str, operand: ExprLike) -> Expr:
    """Return the operand of the function `name`; raises ExpressionError for a bare text."""
    check_columns(name, [operand])
    return as_expr(operand)
