"""Arithmetic as the dialects have it, written out in our operators.

/        of decimals a decimal; of whole numbers a whole number, cut towards 0 (Postgres), else a float
x / 0    the row fails; in DuckDB only if no float is divided, and else it is an infinity or NaN
%        has the sign of the dividend; ours, as in Python, that of the divisor
DIV, //  cut towards zero
"""

from __future__ import annotations

from collections.abc import Callable

from ....columns.column_types import floating, integer
from ....errors import ExpressionError
from ....expressions.expression import Expr, LiteralValue, lit, when
from .values import Value, as_type, computed

__all__ = ["divided", "minus", "plus", "remainder", "times", "whole_quotient"]


def _numbers(left: Value, right: Value) -> tuple[Value, Value]:
    """Return two operands that arithmetic takes: a decimal and a float as two floats."""
    left, right = (
        as_type(one, integer if other.is_untyped or not other.type.is_number else other.type)
        if one.is_untyped or (one.text is not None and other.type.is_number)
        else one
        for one, other in ((left, right), (right, left))
    )
    if {left.type.kind, right.type.kind} == {"decimal", "float"}:
        return as_type(left, floating), as_type(right, floating)
    return left, right


def plus(dialect: str, left: Value, right: Value) -> Value:
    """Return a sum; of a date and a whole number the date so many days later."""
    if left.type.kind == "int" and right.type.kind == "date":
        left, right = right, left
    if left.type.kind == "date" and right.type.kind == "int" and not left.is_untyped:
        return computed(lambda day, days: day.dt.add_days(days), left, right)
    return computed(lambda a, b: a + b, *_numbers(left, right))


def minus(dialect: str, left: Value, right: Value) -> Value:
    """Return a difference; of two dates the days between them."""
    if left.type.kind == "date" and right.type.kind == "int" and not right.is_untyped:
        return computed(lambda day, days: day.dt.add_days(-days), left, right)
    if left.type.kind == "date" or right.type.kind == "date":
        day = left.type if left.type.kind == "date" else right.type
        return computed(lambda a, b: a - b, as_type(left, day), as_type(right, day))
    return computed(lambda a, b: a - b, *_numbers(left, right))


def times(dialect: str, left: Value, right: Value) -> Value:
    """Return a product."""
    return computed(lambda a, b: a * b, *_numbers(left, right))


def divided(dialect: str, left: Value, right: Value) -> Value:
    """Return a quotient."""
    left, right = _numbers(left, right)
    if dialect == "postgres" and left.type.kind == right.type.kind == "int":
        return computed(_cut_quotient, left, right)
    are_floats = "decimal" not in (left.type.kind, right.type.kind)
    return _guarded(dialect, lambda a, b: a / b, left, right, are_floats=are_floats)


def whole_quotient(dialect: str, left: Value, right: Value) -> Value:
    """Return a whole quotient; the row of a divisor 0 fails by itself."""
    left, right = _numbers(left, right)
    if left.type.kind != "int" or right.type.kind != "int":
        raise ExpressionError("divides whole numbers")
    return computed(_cut_quotient, left, right)


def remainder(dialect: str, left: Value, right: Value) -> Value:
    """Return a remainder with the sign of the dividend."""
    left, right = _numbers(left, right)

    def built(a: Expr, b: Expr) -> Expr:
        rest = a.abs() % b.abs()
        return when(a < 0).then(-rest).otherwise(rest)

    return _guarded(dialect, built, left, right, are_floats="float" in (left.type.kind, right.type.kind))


def _cut_quotient(a: Expr, b: Expr) -> Expr:
    quotient = a.abs() // b.abs()
    return when((a < 0) != (b < 0)).then(-quotient).otherwise(quotient)


def _guarded(
    dialect: str, make: Callable[[Expr, Expr], Expr], left: Value, right: Value, *, are_floats: bool
) -> Value:
    """Return a quotient for divisors that may be 0. The row fails, by itself if no float is divided; DuckDB
    has infinities and NaN of floats.
    """
    divisor = right.expr.value if isinstance(right.expr, LiteralValue) else 0
    if divisor != 0 or dialect == "duckdb" or not are_floats:
        return computed(make, left, right)
    return computed(
        lambda a, b: when(b == 0).then((lit(1) // b.cast("int")).cast("float")).otherwise(make(a, b)),
        left,
        right,
    )
