"""How a function with PySpark's name is called here: a text is a column, but where PySpark has a value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

from timely.user_code.call_site import call_site
from timely.user_code.short_traces import short

from ..errors import ExpressionError
from ..expressions.expression import Aliased, Expr, LiteralValue, as_expr, col
from ..expressions.pending import OwnedColumn, SqlCall
from ..other_spellings import of_another_library
from ..relational.spark_functions.by_class import SparkFunction

__all__ = ["ColumnFunction", "function_of_columns", "function_of_form", "function_of_text"]

ColumnFunction: TypeAlias = Callable[..., Expr]  # type: ignore[explicit-any]  # as many columns as it takes

_VALUES: Final[dict[str, tuple[int, ...]]] = {
    **dict.fromkeys(("array_append", "array_contains", "array_position", "array_prepend"), (1,)),
    **dict.fromkeys(("array_remove", "map_contains_key", "element_at", "instr", "trunc"), (1,)),
    **dict.fromkeys(("string_agg", "listagg", "string_agg_distinct", "listagg_distinct"), (1,)),
    "from_json": (1,),
    "json_tuple": tuple(range(1, 100)),
    **dict.fromkeys(("date_trunc", "locate"), (0,)),
}
"""Where an argument that is a text is a value in PySpark although columns may stand there, or in SQL."""


def function_of_form(name: str, function: SparkFunction) -> ColumnFunction:
    """Return a function of columns (`e`) and constants (`k`); see `SparkFunction`."""
    form = function.form.replace("?", "")
    needed = len(function.form.partition("?")[0].replace("*", ""))

    def called(*arguments: object) -> Expr:
        if len(arguments) < needed or (len(arguments) > len(form) and "*" not in form):
            raise ExpressionError(
                f"F.{name} ({call_site()}) takes {needed}"
                f"{'' if needed == len(form) else ' or more'} arguments, not {len(arguments)}"
            )
        operands = [
            _constant(name, argument)
            if place < len(form) and form[place] == "k"
            else _column(name, place, argument)
            for place, argument in enumerate(_flat(arguments) if "*" in form else arguments)
        ]
        try:
            return function.make(*operands)
        except ExpressionError as error:
            raise ExpressionError(f"F.{name} ({call_site()}): {error}") from None

    return _named(name, called, f"`{name}` as in PySpark.")


def function_of_text(name: str) -> ColumnFunction:
    """Return the function of a row that has this name in Spark's SQL: what it means depends on types."""

    def called(*arguments: object) -> Expr:
        operands: list[Expr] = []
        parts: list[str] = []
        labels: list[str] = []
        for place, argument in enumerate(_flat(arguments)):
            text = _as_sql(name, place, argument)
            if text is None:
                operand = _column(name, place, argument)
                parts.append(f"`{len(operands)}`")
                operands.append(operand)
                labels.append(_label(operand))
            else:
                parts.append(text)
                labels.append(text.strip("'"))
        label = f"{name}({', '.join(labels)})"
        return SqlCall(f"F.{label:.80}", f"{name}({', '.join(parts)})", "spark", "", tuple(operands), label)

    return _named(name, called, f"`{name}` of Spark's SQL.")


def function_of_columns(name: str, of: Callable[..., object]) -> Callable[..., object]:  # type: ignore[explicit-any]
    """Return `of` with columns in place of the texts that name columns in PySpark."""
    values = _VALUES.get(name, ())

    def called(*arguments: object, **named: object) -> object:
        columns = [
            col(each) if isinstance(each, str) and place not in values else each
            for place, each in enumerate(arguments)
        ]
        return of(*columns, **named)

    return short(called)


def _named(name: str, function: ColumnFunction, doc: str) -> ColumnFunction:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return short(function)


def _flat(arguments: Sequence[object]) -> list[object]:
    """Return arguments, those of a list one by one: `F.array(["a", "b"])`."""
    return [one for each in arguments for one in (each if isinstance(each, list | tuple) else [each])]


def _column(name: str, place: int, argument: object) -> Expr:
    elsewhere = of_another_library(argument)
    if elsewhere is not None:
        raise ExpressionError(f"F.{name}({argument!r:.60}) ({call_site()}): the argument {elsewhere}")
    if isinstance(argument, str) and place not in _VALUES.get(name, ()):
        return col(argument)
    return as_expr(argument)


def _constant(name: str, argument: object) -> object:
    value = argument.expr if isinstance(argument, Aliased) else argument
    if isinstance(value, LiteralValue):
        return value.value
    if isinstance(value, Expr):
        raise ExpressionError(
            f"F.{name}(…, {value!r:.60}) ({call_site()}): a value that is the same in every row is needed "
            "there, as in F.lit('a') or 'a'"
        )
    return value


def _as_sql(name: str, place: int, argument: object) -> str | None:
    """Return an argument that is a value, as SQL; None for a column."""
    value = argument.expr if isinstance(argument, Aliased) else argument
    if isinstance(value, LiteralValue):
        value = value.value
    elif isinstance(value, str) and place not in _VALUES.get(name, ()):
        return None
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal() if value.is_finite():
            return f"{value:f}"  # 1E+3 is a float in SQL
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case dt.date() if not isinstance(value, dt.datetime):
            return f"DATE '{value.isoformat()}'"
    return None if value is not None else "NULL"


def _label(expr: Expr) -> str:
    if isinstance(expr, SqlCall):
        return expr.label
    return expr.name if isinstance(expr, OwnedColumn) else expr.describe().removeprefix("col.")
