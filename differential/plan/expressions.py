"""Expressions and schemas as plain data that msgpack holds, and back.

An expression becomes a list of *entries*, each its operator and the numbers of its operands, which come
before it; what occurs twice is one entry. So `x = x + x`, repeated, stays small, and equal expressions have
equal data wherever they were written. The last entry is the expression.

    col.a + 1    [["col", "a"], ["lit", "int", 1], ["+", null, 0, 1]]

Source of the form: value numbering, as compilers do it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, cast, get_args

import msgpack

from ..columns.column_types import ColumnType, as_column_type
from ..columns.rows import days_to_date, word_to_decimal
from ..columns.schema import Column, Schema
from ..columns.symbols.packing import unpack
from ..errors import SchemaError
from ..expressions.expression import ColumnRef, Expr, LiteralValue, Operation, When
from ..expressions.functions.catalogue import FUNCTIONS
from ..expressions.literals import Constant, constant_word
from ..expressions.tree import BinaryOp, SpecialOp

__all__ = ["expr_data", "expr_of", "pairs_of", "schema_data", "schema_of", "texts_of"]

_OPERATORS: Final[frozenset[str]] = frozenset((*get_args(BinaryOp), *get_args(SpecialOp), *FUNCTIONS))
_ONE: Final = ("negative", "~", "abs", "is_null", "cast", "try_cast")
_CASTS: Final = ("cast", "try_cast")
_MANY: Final = ("is_in", "min_of", "max_of", "least", "greatest", "when")
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def schema_data(schema: Schema) -> list[object]:
    """Names and types."""
    return [[column.name, str(column.type)] for column in schema]


def schema_of(data: object) -> Schema:
    """The schema with this data; raises SchemaError if it is none."""
    columns = []
    for entry in _list(data, "a schema"):
        name, type_ = _texts(_list(entry, "a column"), 2)
        columns.append(Column(name, as_column_type(type_)))
    return Schema(tuple(columns))


def texts_of(data: Sequence[object]) -> tuple[str, ...]:
    """Return the names of columns in `data`; raise SchemaError if there is something else."""
    if not all(isinstance(each, str) for each in data):
        raise SchemaError(f"{data!r:.200} are no names of columns")
    return tuple(cast("Sequence[str]", data))


def pairs_of(data: Sequence[object]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of names in `data`; raise SchemaError if there is something else."""
    pairs: list[tuple[str, str]] = []
    for each in data:
        match each:
            case [str(left), str(right)]:
                pairs.append((left, right))
            case _:
                raise SchemaError(f"{each!r:.200} is no pair of columns")
    return tuple(pairs)


def expr_data(expr: Expr) -> list[object]:
    """`expr` as entries."""
    entries: list[list[object]] = []
    numbers: dict[bytes, int] = {}
    known: dict[int, int] = {}
    waiting = [expr]
    while waiting:
        top = waiting[-1]
        operands = top.operands if isinstance(top, Operation) else ()
        missing = [operand for operand in operands if id(operand) not in known]
        if missing:
            waiting.extend(reversed(missing))
            continue
        waiting.pop()
        entry = _entry(top, [known[id(operand)] for operand in operands])
        key = cast("bytes", msgpack.packb(entry))  # as Python compares, 1, 1.0 and true are one, 0.0 and -0.0
        if key not in numbers:
            numbers[key] = len(entries)
            entries.append(entry)
        known[id(top)] = numbers[key]
    # What was written twice may have ended on an entry in the middle: the last one is the expression.
    if known[id(expr)] != len(entries) - 1:
        entries.append(["=", None, known[id(expr)]])
    return cast("list[object]", entries)


def expr_of(data: object) -> Expr:
    """The expression with these entries, as if written by who calls (see `at_site`).

    Raises SchemaError if there is none, ExpressionError if it is too large.
    """
    made: list[Expr] = []
    for each in _list(data, "an expression"):
        made.append(_of_entry(_list(each, "an entry of an expression"), made))
    if not made:
        raise SchemaError("an expression without entries")
    return made[-1]


def _entry(expr: Expr, operands: list[int]) -> list[object]:
    if isinstance(expr, ColumnRef):
        return ["col", expr.name]
    if isinstance(expr, LiteralValue):
        value = expr.value
        if isinstance(value, dt.date | Decimal):  # a datetime is a date
            value = constant_word(value, expr.type, None)
        return ["lit", str(expr.type), value]
    assert isinstance(expr, Operation)
    return [expr.op, None if expr.to is None else str(expr.to), *operands]


def _of_entry(entry: list[object], made: list[Expr]) -> Expr:
    if not entry or not isinstance(entry[0], str):
        raise SchemaError(f"{entry!r:.200} is no entry of an expression")
    op, *rest = entry
    if op == "col":
        (name,) = _texts(rest, 1)
        return ColumnRef(name)
    if op == "lit":
        if len(rest) != 2 or not isinstance(rest[0], str):
            raise SchemaError(f"{entry!r:.200} is no constant")
        return LiteralValue(_constant(rest[1], as_column_type(rest[0])), as_column_type(rest[0]))
    numbers = rest[1:]
    if not rest or not all(type(n) is int and 0 <= n < len(made) for n in numbers):
        raise SchemaError(f"{entry!r:.200} names operands that do not come before it")
    operands = tuple(made[cast("int", number)] for number in numbers)
    if op == "=" and len(operands) == 1:
        return operands[0]
    if op not in _OPERATORS or not operands:
        raise SchemaError(f"{entry!r:.200} has no operator that is known here")
    wanted = 1 if op in _ONE else 2 if op not in _MANY else len(operands)
    if op in FUNCTIONS:  # a function says of its operands what they must be when it is typed
        wanted = len(operands)
    if (
        len(operands) != wanted
        or (op in ("is_in", "when") and wanted < 2)
        or (op in _CASTS) == (rest[0] is None)
    ):
        raise SchemaError(f"{entry!r:.200} has not the operands that its operator takes")
    to = None if rest[0] is None else as_column_type(_texts(rest[:1], 1)[0])
    make = When if op == "when" else Operation
    return make(op, operands, to)


def _constant(value: object, type_: ColumnType) -> Constant:
    kinds: dict[str, tuple[type, ...]] = {
        "int": (int,), "float": (float,), "bool": (bool,), "timestamp": (int,), "string": (str,),
        "bytes": (bytes,), "any": (bytes,), "date": (int,), "decimal": (int,),
    }  # fmt: skip
    if value is None:
        return None
    if type(value) not in kinds[type_.kind]:
        raise SchemaError(f"{value!r:.200} is no constant of type {type_}")
    if type_.kind == "any":
        try:
            unpack(cast("bytes", value))
        except Exception as error:
            raise SchemaError(f"{value!r:.200} is no constant of type any") from error
    if type_.kind in ("int", "timestamp") and not -(2**63) <= cast("int", value) < 2**63:
        raise SchemaError(f"{value!r:.200} is beyond 64 bits")
    if type_.kind == "decimal" and abs(cast("int", value)) >= 10**type_.precision:
        raise SchemaError(f"{value!r:.200} is beyond {type_}")
    if type_.kind == "timestamp":
        return _EPOCH + cast("int", value) * _MICROSECOND
    if type_.kind == "decimal":
        return word_to_decimal(cast("int", value), type_)
    if type_.kind == "date":
        try:
            return days_to_date(cast("int", value))
        except (ValueError, OverflowError) as error:
            raise SchemaError(f"{value!r:.200} days are beyond the dates of Python") from error
    return cast("Constant", value)


def _list(data: object, what: str) -> list[object]:
    if not isinstance(data, list | tuple):
        raise SchemaError(f"{data!r:.200} is not {what}")
    return list(data)


def _texts(data: list[object], count: int) -> list[str]:
    if len(data) != count or not all(isinstance(part, str) for part in data):
        raise SchemaError(f"{data!r:.200} should be {count} texts")
    return cast("list[str]", data)
