"""Arithmetic as the dialects have it, written out in our operators.

/        of decimals a decimal; of whole numbers a whole number, cut towards 0 (Postgres), else a float
x / 0    Spark, Postgres: the row fails. DuckDB: null
%        has the sign of the dividend; ours, as in Python, that of the divisor
DIV, //  cut towards zero (Spark, Postgres), rounded down (DuckDB)
"""

from __future__ import annotations

from collections.abc import Callable

from ....columns.column_types import ColumnType, floating, integer
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
    return _guarded(dialect, lambda a, b: a / b, left, right, floating)


def whole_quotient(dialect: str, left: Value, right: Value) -> Value:
    """Return a whole quotient."""
    left, right = _numbers(left, right)
    if left.type.kind != "int" or right.type.kind != "int":
        raise ExpressionError("divides whole numbers")
    if dialect == "duckdb":
        return _guarded(dialect, lambda a, b: a // b, left, right, integer)
    return _guarded(dialect, _cut_quotient, left, right, integer)


def remainder(dialect: str, left: Value, right: Value) -> Value:
    """Return a remainder with the sign of the dividend."""
    left, right = _numbers(left, right)

    def built(a: Expr, b: Expr) -> Expr:
        rest = a.abs() % b.abs()
        return when(a < 0).then(-rest).otherwise(rest)

    return _guarded(dialect, built, left, right, integer)


def _cut_quotient(a: Expr, b: Expr) -> Expr:
    quotient = a.abs() // b.abs()
    return when((a < 0) != (b < 0)).then(-quotient).otherwise(quotient)


def _guarded(
    dialect: str, make: Callable[[Expr, Expr], Expr], left: Value, right: Value, type_: ColumnType
) -> Value:
    """Return a quotient for divisors that may be 0: null, or a row that fails."""
    divisor = right.expr.value if isinstance(right.expr, LiteralValue) else 0
    if divisor != 0:
        return computed(make, left, right)
    if dialect == "duckdb":
        return computed(lambda a, b: when(b != 0).then(make(a, b)), left, right)
    if type_.kind == "int" or "decimal" in (left.type.kind, right.type.kind):
        return computed(make, left, right)  # the row of a divisor 0 fails by itself
    return computed(
        lambda a, b: when(b == 0).then((lit(1) // b.cast("int")).cast("float")).otherwise(make(a, b)),
        left,
        right,
    )
