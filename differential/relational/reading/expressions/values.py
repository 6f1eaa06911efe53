"""Values: expressions with their types, and how values of different types meet.

Our expressions mix no more types than is safe. SQL mixes more, so the reader writes the casts out:

    NULL                        takes the type of what it meets
    decimal and float           float
    date and timestamp          timestamp
    a text and a date, a time   the text is one: '1995-03-15'
    a text and a number         the text is a number, if it is written as a constant
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from ....columns.column_types import DECIMAL_DIGITS_MAX, ColumnType, boolean, decimal, floating, timestamp
from ....columns.schema import Column, Schema
from ....errors import ExpressionError
from ....expressions.expression import Expr, LiteralValue, col, lit

__all__ = ["Value", "alike", "as_type", "common_type", "computed", "met", "truth"]


@dataclass(frozen=True)
class Value:
    """An expression and its type; `is_untyped` for NULL that has met nothing yet."""

    expr: Expr
    type: ColumnType
    is_untyped: bool = False

    @property
    def text(self) -> str | None:
        """Return the text of a constant; None for all else."""
        value = self.expr.value if isinstance(self.expr, LiteralValue) else None
        return value if isinstance(value, str) else None


def computed(make: Callable[..., Expr], *operands: Value) -> Value:  # type: ignore[explicit-any]  # any number
    """Return what `make` makes of expressions, with its type; raises ExpressionError if it has none.

    One operator over columns gives the type; the tree below is not read again.
    """
    columns = tuple(
        Column(f"{chr(97 + place % 26)}{place // 26 or ''}", each.type) for place, each in enumerate(operands)
    )
    stands_for = [
        each.expr if isinstance(each.expr, LiteralValue) else col[column.name]
        for each, column in zip(operands, columns, strict=True)
    ]
    try:
        type_ = make(*stands_for).type_in(Schema(columns))
    except ExpressionError as error:
        raise _of_operands(error, operands) from None
    return Value(make(*(each.expr for each in operands)), type_)


def _of_operands(error: ExpressionError, operands: Sequence[Value]) -> ExpressionError:
    """Return an error without the names that operands have in `computed`, and without advice on Python."""
    message = re.sub(r"^in .*?(?: \(\S+:\d+\)|, \S+:\d+:\d+\)): ", "", str(error).partition("\n")[0])
    what = message.partition(";")[0] if "; " in message else message
    return ExpressionError(f"{what}; the operands are {', '.join(str(each.type) for each in operands)}")


def as_type(value: Value, type_: ColumnType) -> Value:
    """Return a value as one of another type; raises ExpressionError where that is impossible."""
    if value.is_untyped:
        return Value(lit(None, type_.or_null()), type_.or_null())
    if value.type.kind == type_.kind and type_.kind != "decimal":
        return value
    if value.type.not_null() == type_.not_null():
        return value
    if value.text is not None and type_.kind in ("date", "timestamp", "int", "float", "decimal"):
        constant = _constant(value.text, type_)
        return Value(constant, constant.type_in(Schema(())))
    return computed(lambda expr: expr.cast(type_.not_null()), value)


def _constant(text: str, type_: ColumnType) -> Expr:
    """Return what a constant text is as a value of a type; raises ExpressionError if it is none."""
    written = text.strip()
    try:
        if type_.kind == "date":
            return lit(dt.date.fromisoformat(written[:10]))
        if type_.kind == "timestamp":
            time = dt.datetime.fromisoformat(written.replace("Z", "+00:00"))
            return lit(time if time.tzinfo else time.replace(tzinfo=dt.UTC))
        if type_.kind == "float":
            return lit(float(written))
        if type_.kind == "int" and written.lstrip("+-").isdigit():
            return lit(int(written))
        return lit(Decimal(written))
    except (ValueError, InvalidOperation):
        raise ExpressionError(f"{text!r:.40} is no {type_.kind}") from None


def met(values: Sequence[Value]) -> list[Value]:
    """Return values that meet in a comparison or a column, with casts where types differ."""
    kinds = {each.type.kind for each in values if not each.is_untyped and each.text is None}
    if not kinds:
        kinds = {each.type.kind for each in values if not each.is_untyped}
    if not kinds:
        return list(values)
    target: ColumnType | None = None
    if kinds >= {"decimal", "float"} and kinds <= {"decimal", "float", "int"}:
        target = floating
    elif kinds == {"date", "timestamp"}:
        target = timestamp
    elif len(kinds) == 1:
        kind = next(iter(kinds))
        if kind not in ("decimal", "string", "array", "struct", "map"):
            target = ColumnType(kind)
    typed = next(each.type for each in values if not each.is_untyped and each.type.kind in kinds)
    result = []
    for each in values:
        if target is not None and not (each.type.kind == "int" and kinds == {"int"} and not each.is_untyped):
            result.append(as_type(each, target))
        elif each.is_untyped or (each.text is not None and kinds != {"string"}):
            result.append(as_type(each, typed))
        else:
            result.append(each)
    return result


def alike(values: Sequence[Value]) -> list[Value]:
    """Return values that become one column: besides, whole numbers among decimals are decimals."""
    typed = met(values)
    kinds = {each.type.kind for each in typed if not each.is_untyped}
    if kinds != {"int", "decimal"}:
        return typed
    scale = max(each.type.scale for each in typed)
    exact = decimal(DECIMAL_DIGITS_MAX, scale)
    return [
        computed(lambda expr: expr.cast(exact), each)
        if each.type.kind == "int" and not each.is_untyped and not isinstance(each.expr, LiteralValue)
        else each
        for each in typed
    ]


def truth(value: Value) -> Value:
    """Return a condition: NULL without a type is one, too. Raises ExpressionError for other types."""
    if value.is_untyped:
        return Value(lit(None, "bool"), boolean.or_null())
    if value.type.kind != "bool":
        raise ExpressionError(f"is {value.type} and no condition")
    return value


def common_type(values: Sequence[Value]) -> tuple[ColumnType, bool]:
    """Return the type of a column that has all of these values, and whether all are NULL without a type.

    Raises ExpressionError if there is none.
    """
    if all(each.is_untyped for each in values):
        return values[0].type.or_null(), True
    typed = alike(values)
    outcome = typed[0]
    for each in typed[1:]:  # the type alone: the values may be many
        outcome = Value(col["x"], computed(lambda a, b: a.fill_null(b), outcome, each).type)
    return outcome.type.not_null().or_null(any(each.type.nullable for each in typed)), False
