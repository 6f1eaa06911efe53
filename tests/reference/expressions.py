"""What is the value of an expression in one row? The slow twin of `differential/expressions/evaluation.py`.

Works on Python values, row by row, with None for null. An integer that leaves 64 bits is no value, floats
follow IEEE, and the order of values is that of rows: NaN equals itself and is above every number.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import cast

from differential.columns.column_types import ColumnType
from differential.columns.rows import datetime_to_micros, micros_to_datetime
from differential.columns.schema import Schema
from differential.columns.symbols.packing import unpack
from differential.expressions.expression import ColumnRef, Expr, LiteralValue, Operation
from differential.expressions.functions.catalogue import FUNCTIONS

__all__ = ["NoValue", "as_quotient", "as_units", "rounded_as_printed", "value_in_row"]

Record = Mapping[str, object]

_EXACT = Context(prec=2000, Emin=-5000, Emax=5000)


class UnknownFunction(Exception):
    """This twin does not know the function, which other tests hold against DuckDB."""


class NoValue(Exception):
    """Division of an integer by zero, a result beyond 64 bits, a cast of a float that is no integer."""


def value_in_row(expr: Expr, record: Record, schema: Schema) -> object:
    """The value of `expr` where the columns have the values of `record`; raises NoValue."""
    if isinstance(expr, ColumnRef):
        return record[expr.name]
    if isinstance(expr, LiteralValue):
        return unpack(cast(bytes, expr.value)) if expr.type.kind == "any" else expr.value
    assert isinstance(expr, Operation)
    if expr.op == "when":
        return _when(expr, record, schema)
    if expr.op == "fill_null":
        value = value_in_row(expr.operands[0], record, schema)
        filled = value_in_row(expr.operands[1], record, schema) if value is None else value
        return _as(filled, expr.type_in(schema))
    values = [value_in_row(operand, record, schema) for operand in expr.operands]
    if expr.op in ("least", "greatest"):
        known = [value for value in values if value is not None]
        chosen = sorted(known, key=lambda value: cast("int", _key(value)))
        best = None if not chosen else chosen[0 if expr.op == "least" else -1]
        return _as(best, expr.type_in(schema))
    if expr.op == "is_null":
        return values[0] is None
    if expr.op in ("&", "|"):
        decisive = expr.op == "|"
        return decisive if decisive in values else None if None in values else not decisive
    if None in values:
        return None
    if expr.op in FUNCTIONS:
        if expr.op not in _FUNCTIONS:
            raise UnknownFunction(expr.op)
        return _FUNCTIONS[expr.op](*values)
    types = [operand.type_in(schema) for operand in expr.operands]
    if any(type_.kind == "float" for type_ in types) or expr.op == "/":
        values = [float(cast(int, value)) for value in values]
    return _apply(expr, values, expr.type_in(schema))


def _when(expr: Operation, record: Record, schema: Schema) -> object:
    operands = list(expr.operands)
    default = operands.pop() if len(operands) % 2 else None
    for test, value in zip(operands[::2], operands[1::2], strict=True):
        if value_in_row(test, record, schema) is True:
            return _as(value_in_row(value, record, schema), expr.type_in(schema))
    return None if default is None else _as(value_in_row(default, record, schema), expr.type_in(schema))


def _as(value: object, type_: ColumnType) -> object:
    """An int where the whole expression is a float is one."""
    return float(cast(int, value)) if type_.kind == "float" and value is not None else value


def _key(value: object) -> object:
    """What rows are compared by: NaN above everything."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def _apply(expr: Operation, values: Sequence[object], type_: ColumnType) -> object:
    op = expr.op
    keys = [_key(value) for value in values]
    compare: dict[str, Callable[[], object]] = {
        "==": lambda: keys[0] == keys[1],
        "!=": lambda: keys[0] != keys[1],
        "<": lambda: keys[0] < keys[1],  # type: ignore[operator]  # of one ordered type
        "<=": lambda: keys[0] <= keys[1],  # type: ignore[operator]  # as above
        ">": lambda: keys[0] > keys[1],  # type: ignore[operator]  # as above
        ">=": lambda: keys[0] >= keys[1],  # type: ignore[operator]  # as above
        "is_in": lambda: keys[0] in keys[1:],
        "~": lambda: not values[0],
        "min_of": lambda: values[keys.index(min(keys))],  # type: ignore[type-var]  # as above
        "max_of": lambda: values[keys.index(max(keys))],  # type: ignore[type-var]  # as above
        "cast": lambda: _cast(values[0], type_),
    }
    if op in compare:
        return compare[op]()
    numbers = [datetime_to_micros(value) if isinstance(value, dt.datetime) else value for value in values]
    if type_.kind == "float":
        return _float(op, *cast(Sequence[float], numbers))
    result = _int(op, *cast(Sequence[int], numbers))
    return micros_to_datetime(result) if type_.kind == "timestamp" else result


def _int(op: str, left: int, right: int = 0) -> int:
    if op in ("//", "%") and right == 0:
        raise NoValue
    result = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "//": lambda: left // right,
        "%": lambda: left % right,
        "negative": lambda: -left,
        "abs": lambda: abs(left),
    }[op]()
    if not -(2**63) <= result < 2**63:
        raise NoValue
    return result


def _float(op: str, left: float, right: float = 0.0) -> float:
    try:
        return {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: left / right,
            "negative": lambda: -left,
            "abs": lambda: abs(left),
        }[op]()
    except ZeroDivisionError:
        signs = math.copysign(1, left) * math.copysign(1, right)
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, signs)


_FUNCTIONS: dict[  # type: ignore[explicit-any]  # of one, two or three values
    str, Callable[..., object]
] = {  # those that random expressions have; others: their own tests
    "upper": lambda text: text.upper(),
    "reverse": lambda text: text[::-1],
    "length": len,
    "slice": lambda text, start, length: text[start : start + length],
    "contains": lambda text, part: part in text,
    "concat": lambda *texts: "".join(texts),
    "year": lambda time: time.year,
    "day_of_week": lambda time: time.isoweekday(),
    "date_diff": lambda end, start: end.toordinal() - start.toordinal(),
}


def _cast(value: object, type_: ColumnType) -> object:
    if type_.kind == "string":
        return str(value)
    if type_.kind == "date" and isinstance(value, dt.datetime):
        return value.date()
    if type_.kind == "int" and isinstance(value, float):
        if not -(2.0**63) <= value < 2.0**63:
            raise NoValue
        return int(value)
    if type_.kind == "timestamp" and isinstance(value, int):
        return micros_to_datetime(value)
    if type_.kind == "int" and isinstance(value, dt.datetime):
        return datetime_to_micros(value)
    convert = {"int": int, "float": float, "bool": bool}
    return convert[type_.kind](cast(int, value)) if type_.kind in convert else value


def _printed(value: float, digits: int) -> Decimal:
    unit = Decimal(1).scaleb(-digits, _EXACT)
    return Decimal(repr(value)).quantize(unit, ROUND_HALF_UP, _EXACT)


def rounded_as_printed(value: float, digits: int) -> float:
    """The double nearest to what the digits with which `value` is printed are when rounded half up."""
    return float(_printed(value, digits)) if math.isfinite(value) else value


def as_units(value: float, digits: int) -> int | None:
    """The number of units of 10^-digits to which `value` rounds; None from 10^18 on."""
    if not math.isfinite(value):
        return None
    units = int(_printed(value, digits).scaleb(digits, _EXACT))
    return units if abs(units) < 10**18 else None


def as_quotient(word: int, digits: int) -> float:
    """The double nearest to word / 10^digits."""
    return float(Decimal(word).scaleb(-digits, _EXACT))
