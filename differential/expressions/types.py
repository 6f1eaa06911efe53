"""The type of an expression over given columns, and errors for expressions that are not well formed.

Int and float mix, to float; int and decimal mix, to decimal; nothing else mixes. A result is nullable if an
operand is, but for `is_null`, `fill_null` with a value, and a `when` with an `otherwise`. Casting never takes
nullability away, `fill_null` does. A function of the catalogue declares whether it may have no value.

    + -                         numbers; timestamp ± int (µs) → timestamp; timestamp - timestamp → int (µs);
                                date - date → int (days)
    * / // % negative abs       numbers; decimals have the digits that they have in Spark: a product as many
                                behind the point as both factors together, a quotient at least six
    /                           of ints and floats, to float
    == != is_in                 values of one kind
    < <= > >= min_of max_of     values of one kind that has an order: all but any
    & | ~                       bool

Every error names the operator in question, as the user wrote it, and the line that built it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from differential.columns.column_types import (
    DECIMAL_DIGITS_MAX,
    ColumnType,
    boolean,
    decimal,
    floating,
    integer,
    timestamp,
)
from differential.columns.foreign.type_names import Kind
from differential.columns.schema import Schema
from differential.columns.wide.digits import of_difference, of_product, of_quotient, of_remainder
from differential.errors import ExpressionError
from differential.expressions.functions.casts import COLUMN_CASTS, VALUE_CASTS
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.function import Function
from differential.expressions.text import receiver_text, text_of
from differential.expressions.tree import ColumnTree, LiteralTree, OperationTree, PendingTree, Tree
from differential.other_spellings import meant
from timely.user_code.call_site import call_site

__all__ = ["check_condition", "common_nested", "constants_of", "type_of"]

_DAY: Final = 86_400_000_000
"""Microseconds of a day; a timedelta is kept in microseconds."""

_INT_DIGITS: Final = 20
"""Digits of an int as a decimal, one more than it may have: so in Spark."""

_DIGITS: Final = {
    "+": of_difference,
    "-": of_difference,
    "*": of_product,
    "/": of_quotient,
    "%": of_remainder,
}
"""The types of results of decimals."""

_COMPARISONS: Final = frozenset(("==", "!=", "<", "<=", ">", ">="))
_ORDERING: Final = frozenset(("<", "<=", ">", ">=", "min_of", "max_of", "least", "greatest"))

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
"""A text that Python reads as a number, as it is written."""


def type_of(expr: Tree, schema: Schema) -> ColumnType:
    """Return the type of `expr` over the columns of `schema`; raises ExpressionError if it has none."""
    if isinstance(expr, ColumnTree):
        if expr.name not in schema:
            raise ExpressionError(
                f"there is no column {expr.name!r} ({expr.site}); there are: {schema}."
                + meant(expr.name, schema.names)
            )
        return schema[expr.name].type
    if isinstance(expr, LiteralTree):
        return expr.type
    if isinstance(expr, PendingTree):
        raise ExpressionError(
            f"{expr.written} ({expr.site}) has no meaning here: make it a column before, "
            f"with_columns(name={expr.written})"
        )
    assert isinstance(expr, OperationTree)
    types = [type_of(operand, schema) for operand in expr.operands]
    if expr.op in ("+", "-", "*", "/", "//", "%"):
        return _arithmetic(expr, types)
    if expr.op in ("==", "!=", "<", "<=", ">", ">=", "is_in"):
        return boolean.or_null(_common(expr, types).nullable)
    if expr.op in ("&", "|", "~"):
        return boolean.or_null(_all_of(expr, types, "bool"))
    if expr.op in ("negative", "abs"):
        if not types[0].is_number:
            raise _error(expr, types, "takes a number")
        return types[0]
    if expr.op in FUNCTIONS:
        return _function_type(expr, FUNCTIONS[expr.op], types)
    return _special(expr, types)


def check_condition(expr: Tree, schema: Schema) -> None:
    """Raise ExpressionError if `filter(expr)` has no meaning over the columns of `schema`."""
    type_ = type_of(expr, schema)
    if type_.kind != "bool":
        raise ExpressionError(
            f"filter({text_of(expr)}) ({call_site()}) needs a condition, but this is of type {type_}."
        )


def _special(expr: OperationTree, types: Sequence[ColumnType]) -> ColumnType:
    """Return the type of an operator with rules of its own."""
    if expr.op == "is_null":
        return boolean
    if expr.op == "fill_null":
        return _common(expr, types).not_null().or_null(types[1].nullable)
    if expr.op in ("cast", "try_cast"):
        assert expr.to is not None
        kinds = (types[0].kind, expr.to.kind)
        if not expr.to.or_null().holds(types[0]) and kinds not in COLUMN_CASTS and kinds not in VALUE_CASTS:
            possible = ", ".join(to for source, to in (*COLUMN_CASTS, *VALUE_CASTS) if source == kinds[0])
            raise _error(expr, types, f"is not possible; {kinds[0]} can become: {possible or 'nothing else'}")
        return expr.to.or_null(types[0].nullable or expr.op == "try_cast")
    if expr.op == "when":
        tests, values = list(types[:-1:2]), list(types[1::2])
        _all_of(expr, tests, "bool")
        if len(types) % 2:
            values.append(types[-1])
        return _common(expr, values).or_null(len(types) % 2 == 0)
    assert expr.op in ("min_of", "max_of", "least", "greatest"), expr.op
    if expr.op in ("least", "greatest"):
        return _common(expr, types).not_null().or_null(all(type_.nullable for type_ in types))
    return _common(expr, types)


def _function_type(expr: OperationTree, function: Function, types: Sequence[ColumnType]) -> ColumnType:
    """Return the type of a function's result; raises ExpressionError for operands that it does not take."""
    for index, (operand, type_) in enumerate(zip(expr.operands, types, strict=True)):
        param = function.param(index)
        if param is None:
            raise _error(expr, types, f"takes {len(function.params)} operands at most")
        if type_.kind not in param.takes:
            raise _error(expr, types, f"takes {' or '.join(param.takes)} for {param.name!r}; cast it")
        if not param.is_constant:
            continue
        if not isinstance(operand, LiteralTree) or operand.value is None:
            raise _error(expr, types, f"takes a constant for {param.name!r}")
        if param.choices and operand.value not in param.choices:
            raise _error(expr, types, f"takes one of {', '.join(param.choices)} for {param.name!r}")
    if len(types) < function.operands_min:
        raise _error(expr, types, f"takes at least {function.operands_min} operands")
    constants = constants_of(expr, function)
    refusal = function.refusal(constants)
    if refusal is not None:
        raise _error(expr, types, f"cannot be computed: {refusal}")
    if function.typed is not None:
        values = [operand.value if isinstance(operand, LiteralTree) else None for operand in expr.operands]
        try:
            type_ = function.typed(types, values)
        except ValueError as error:
            raise _error(expr, types, str(error)) from None
        may_be_null = not function.skips_nulls and any(each.nullable for each in types)
        return type_.or_null(may_be_null)
    if not function.skips_nulls:
        columns = [
            type_
            for index, type_ in enumerate(types)
            if (param := function.param(index)) is not None and not param.is_constant
        ]
        lacks = function.may_lack and not function.can_fail
        nullable = lacks or any(type_.nullable for type_ in columns)
        return function.result(types, constants).or_null(nullable)
    return function.result(types, constants)


def constants_of(expr: OperationTree, function: Function) -> list[object]:
    """Return the values of the operands of `expr` that must be constants, in order."""
    return [
        operand.value
        for index, operand in enumerate(expr.operands)
        if isinstance(operand, LiteralTree)
        and (param := function.param(index)) is not None
        and param.is_constant
    ]


def _arithmetic(expr: OperationTree, types: Sequence[ColumnType]) -> ColumnType:
    left, right = types
    nullable = left.nullable or right.nullable
    kinds = (left.kind, right.kind)
    if left.is_number and right.is_number:
        if "decimal" in kinds and (expr.op != "/" or "float" not in kinds):
            return _decimal_arithmetic(expr, types).or_null(nullable)
        return (floating if expr.op == "/" or "float" in kinds else integer).or_null(nullable)
    if expr.op == "-" and kinds in (("timestamp", "timestamp"), ("date", "date")):
        return integer.or_null(nullable)
    if (kinds == ("timestamp", "int") and expr.op in ("+", "-")) or (
        kinds == ("int", "timestamp") and expr.op == "+"
    ):
        return timestamp.or_null(nullable)
    if "date" in kinds:
        why = "takes two dates only to subtract them; for days write x.dt.add_days(n), for times cast"
        for part in expr.operands:
            if (
                isinstance(part, LiteralTree)
                and type(part.value) is int
                and part.value
                and not part.value % _DAY
            ):
                days = part.value // _DAY
                why += (
                    f"; timedelta(days={days}) is {part.value} µs: write "
                    f"x.dt.add_days({-days if expr.op == '-' else days})"
                )
        raise _error(expr, types, why)
    if expr.op == "+" and kinds == ("string", "string"):
        raise _error(expr, types, "does not join texts: write dd.concat(a, b); + takes numbers")
    if "timestamp" in kinds and expr.op in ("//", "%", "/"):
        raise _error(
            expr,
            types,
            "takes numbers: of a time write x.cast('date') for its day, x.dt.date_trunc('hour') for its "
            "hour, x.cast('int') for its microseconds",
        )
    length = ": a length of time is dt.timedelta(hours=1)" if set(kinds) == {"timestamp", "string"} else ""
    raise _error(expr, types, f"takes numbers, or timestamps and microseconds{length}")


def _decimal_arithmetic(expr: OperationTree, types: Sequence[ColumnType]) -> ColumnType:
    """Return the decimal of a result; of `//` a whole number."""
    if any(type_.kind == "float" for type_ in types):
        raise _error(
            expr, types, "takes exact numbers or floats, not both: cast the decimal to float, or the float"
        )
    left, right = _with_digits(expr.operands, types)
    if expr.op == "//":
        return integer
    return _DIGITS[expr.op](left, right)


def _with_digits(operands: Sequence[Tree], types: Sequence[ColumnType]) -> list[ColumnType]:
    """Return whole numbers as decimals, as Spark: constants with their digits, others with twenty."""
    exact = []
    for operand, type_ in zip(operands, types, strict=True):
        if type_.kind != "int":
            exact.append(type_)
        elif isinstance(operand, LiteralTree) and isinstance(operand.value, int):
            exact.append(decimal(len(str(abs(operand.value)))))
        else:
            exact.append(decimal(_INT_DIGITS))
    return exact


def _common_decimal(expr: OperationTree, types: Sequence[ColumnType]) -> ColumnType:
    """Return the decimal that holds all operands.

    Raises ExpressionError if none holds them; comparisons do not, since they can bring any two decimals to
    one scale.
    """
    exact = _with_digits(_values_of(expr), types)
    scale = max(type_.scale for type_ in exact)
    whole = max(type_.precision - type_.scale for type_ in exact)
    if whole + scale > DECIMAL_DIGITS_MAX and expr.op not in (*_COMPARISONS, "is_in"):
        raise _error(
            expr,
            types,
            f"would have {whole + scale} digits, of {DECIMAL_DIGITS_MAX}: cast one to a decimal of fewer",
        )
    return decimal(min(DECIMAL_DIGITS_MAX, whole + scale), scale)


def _common(expr: OperationTree, types: Sequence[ColumnType]) -> ColumnType:
    """Return the one type that all operands have, or become."""
    kinds = {type_.kind for type_ in types}
    common: ColumnType | None = None
    if len(kinds) == 1 and types[0].is_nested:
        common = common_nested(types)
    elif len(kinds) == 1 and kinds != {"decimal"}:
        common = types[0].not_null()
    elif kinds <= {"int", "decimal"}:
        common = _common_decimal(expr, types)
    elif kinds == {"int", "float"}:
        common = floating
    if common is None:
        hint = ""
        if "string" in kinds and kinds & {"date", "timestamp"}:
            hint = ": write dt.date(2024, 2, 29), dt.datetime(…), or cast the text"
        raise _error(expr, types, f"takes values of one type{hint}", "" if hint else _cast_of(expr, types))
    if expr.op in _ORDERING and not common.has_order:
        mend = "cast them, as in col.x.cast('int')" if common.kind == "any" else "compare parts of them"
        raise _error(expr, types, f"needs an order; values of type {common} have none: {mend}")
    return common.or_null(any(type_.nullable for type_ in types))


def common_nested(types: Sequence[ColumnType]) -> ColumnType | None:
    """Return the least type, without null, that holds values of these types; None if they differ in more than
    what may be null.
    """
    common: ColumnType | None = types[0]
    for type_ in types[1:]:
        common = None if common is None else common.with_nulls_of(type_)
    return None if common is None else common.not_null()


def _cast_of(expr: OperationTree, types: Sequence[ColumnType]) -> str:
    """Return what to write so that the operands have one type: a cast, if possible of a column; else ""."""
    operands = sorted(
        zip(_values_of(expr), types, strict=True), key=lambda pair: isinstance(pair[0], LiteralTree)
    )
    kinds = [type_.kind for type_ in types]
    for operand, _ in operands:
        value = operand.value if isinstance(operand, LiteralTree) else None
        if not isinstance(value, str) or not set(kinds) <= {"string", "int", "float", "decimal"}:
            continue
        if set(kinds) != {"string"} and _NUMBER.fullmatch(value):  # as texts 10 would be less than 3
            return f" Write {value}, without quotes."
    for operand, type_ in operands:
        for other in types:
            pair = (type_.kind, other.kind)
            left = set(kinds) - {type_.kind}
            is_cast = pair[0] != pair[1] and (pair in COLUMN_CASTS or pair in VALUE_CASTS)
            if is_cast and kinds.count(type_.kind) == 1 and (len(left) == 1 or left == {"int", "float"}):
                return f" Write {receiver_text(operand)}.cast('{other.not_null()}')."
    return ""


def _all_of(expr: OperationTree, types: Sequence[ColumnType], kind: Kind) -> bool:
    """Return True if one of `types` is nullable; raises unless all are of `kind`."""
    if any(type_.kind != kind for type_ in types):
        raise _error(expr, types, f"takes conditions, of type {kind}")
    return any(type_.nullable for type_ in types)


def _error(expr: OperationTree, types: Sequence[ColumnType], why: str, mend: str = "") -> ExpressionError:
    parts = list(expr.operands[:-1:2]) if expr.op == "when" and "conditions" in why else _values_of(expr)
    listed = ", ".join(f"{text_of(part)} is {type_}" for part, type_ in zip(parts, types, strict=True))
    op = "-" if expr.op == "negative" else expr.op
    return ExpressionError(f"in {text_of(expr)} ({expr.site}): {op} {why}; {listed}.{mend}")


def _values_of(expr: OperationTree) -> list[Tree]:
    """Return the operands; for a `when`, those that are not conditions."""
    if expr.op != "when":
        return list(expr.operands)
    return [*expr.operands[1::2], *([expr.operands[-1]] if len(expr.operands) % 2 else [])]
