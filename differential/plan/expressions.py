"""Expressions and schemas as plain data that msgpack holds, and back.

An expression becomes a list of *entries*. Each entry is an operator and the numbers of its operands, which
come before it. Equal subexpressions share one entry, so `x = x + x`, repeated, stays small. Equal expressions
have equal data wherever they were written. The last entry is the expression.

    col.a + 1    [["col", "a"], ["lit", "int", 1], ["+", null, 0, 1]]

Source of the form: value numbering, as compilers do it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, cast, get_args

import msgpack

from ..columns.column_types import ColumnType, as_column_type
from ..columns.nested.fitting import fitting
from ..columns.rows import days_to_date, word_to_decimal
from ..columns.schema import Column, Schema
from ..columns.symbols.packing import unpack
from ..errors import SchemaError
from ..expressions.expression import ColumnRef, Expr, LiteralValue, Operation, When
from ..expressions.functions.catalogue import FUNCTIONS
from ..expressions.functions.function import NESTED_KINDS
from ..expressions.literals import Constant, constant_word
from ..expressions.tree import BinaryOp, SpecialOp

__all__ = ["expr_data", "expr_of", "pairs_of", "schema_data", "schema_of", "texts_of"]

_OPERATORS: Final[frozenset[str]] = frozenset((*get_args(BinaryOp), *get_args(SpecialOp), *FUNCTIONS))
_ONE: Final = ("negative", "~", "abs", "is_null", "cast", "try_cast")
_CASTS: Final = ("cast", "try_cast")
_MANY: Final = ("is_in", "min_of", "max_of", "least", "greatest", "when")
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_WIDE: Final = re.compile("-?[0-9]{1,38}")
"""The number of a constant of two words, which may have more bits than msgpack's."""


def schema_data(schema: Schema) -> list[object]:
    """Return the names and types of the columns as plain data."""
    return [[column.name, str(column.type)] for column in schema]


def schema_of(data: object) -> Schema:
    """Return the schema with this data; raise SchemaError if the data is no schema."""
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
    """Return `expr` as entries."""
    if not isinstance(expr, Operation):
        return [_entry(expr, [])]
    entries: list[list[object]] = []
    numbers: dict[bytes, int] = {}
    numbers_by_id: dict[int, int] = {}
    waiting: list[Expr] = [expr]
    while waiting:
        top = waiting[-1]
        operands = top.operands if isinstance(top, Operation) else ()
        missing = [operand for operand in operands if id(operand) not in numbers_by_id]
        if missing:
            waiting.extend(reversed(missing))
            continue
        waiting.pop()
        entry = _entry(top, [numbers_by_id[id(operand)] for operand in operands])
        # msgpack tells 1, 1.0 and true apart, and 0.0 and -0.0; Python's comparison does not.
        key = cast("bytes", msgpack.packb(entry))
        if key not in numbers:
            numbers[key] = len(entries)
            entries.append(entry)
        numbers_by_id[id(top)] = numbers[key]
    # The last entry must be the expression; if it equals an earlier entry, an entry "=" refers to that one.
    if numbers_by_id[id(expr)] != len(entries) - 1:
        entries.append(["=", None, numbers_by_id[id(expr)]])
    return cast("list[object]", entries)


def expr_of(data: object) -> Expr:
    """Return the expression with these entries, as if the caller had written it (see `at_site`).

    Raises SchemaError if the data is no expression, ExpressionError if it is too large.
    """
    exprs: list[Expr] = []
    for each in _list(data, "an expression"):
        exprs.append(_of_entry(_list(each, "an entry of an expression"), exprs))
    if not exprs:
        raise SchemaError("an expression without entries")
    return exprs[-1]


def _entry(expr: Expr, operands: list[int]) -> list[object]:
    if isinstance(expr, ColumnRef):
        return ["col", expr.name]
    if isinstance(expr, LiteralValue):
        value = expr.value
        if isinstance(value, dt.date | Decimal):  # a datetime is a date
            value = constant_word(value, expr.type, None)
            value = str(value) if expr.type.is_wide else value  # a number of more bits than msgpack has
        return ["lit", str(expr.type), value]
    assert isinstance(expr, Operation)
    return [expr.op, None if expr.to is None else str(expr.to), *operands]


def _of_entry(entry: list[object], exprs: list[Expr]) -> Expr:
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
    if not rest or not all(type(n) is int and 0 <= n < len(exprs) for n in numbers):
        raise SchemaError(f"{entry!r:.200} names operands that do not come before it")
    operands = tuple(exprs[cast("int", number)] for number in numbers)
    if op == "=" and len(operands) == 1:
        return operands[0]
    if op not in _OPERATORS or not operands:
        raise SchemaError(f"{entry!r:.200} has no operator that is known here")
    operand_count = 1 if op in _ONE else 2 if op not in _MANY else len(operands)
    if op in FUNCTIONS:  # a function checks its own operands when it is typed
        operand_count = len(operands)
    if (
        len(operands) != operand_count
        or (op in ("is_in", "when") and operand_count < 2)
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
        **dict.fromkeys(NESTED_KINDS, (bytes,)),
    }  # fmt: skip
    if value is None:
        return None
    if type_.is_wide and isinstance(value, str) and _WIDE.fullmatch(value):
        value = int(value)
    if type(value) not in kinds[type_.kind]:
        raise SchemaError(f"{value!r:.200} is no constant of type {type_}")
    if type_.metadata is not None:
        try:
            unpacked = unpack(cast("bytes", value))
            is_fitting = not type_.is_nested or fitting(type_)(unpacked)
        except Exception as error:
            raise SchemaError(f"{value!r:.200} is no constant of type any") from error
        if not is_fitting:
            raise SchemaError(f"{value!r:.200} is no constant of type {type_}")
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
