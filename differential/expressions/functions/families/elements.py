"""What functions of nested values have in common: the types of parts, and when two values are the same.

Values are the same as they are in rows: NaN equals itself, 0.0 equals -0.0, null equals null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final, Protocol, cast

from differential.columns.column_types import (
    DECIMAL_DIGITS_MAX,
    ColumnType,
    any_value,
    decimal,
    floating,
)
from differential.columns.symbols.packing import pack
from differential.expressions.functions.function import Function, Param, Typed

__all__ = [
    "ARRAY",
    "LIST",
    "array_function",
    "as_element",
    "common_type",
    "element_of",
    "in_order",
    "of_nulls",
    "same_arrays",
    "same_as",
]

LIST: Final = Param("x", ("any", "array", "map"))
ARRAY: Final = Param("x", ("array",))


def element_of(type_: ColumnType) -> ColumnType:
    """Return the type of the elements of an array."""
    return type_.parts[0]


def common_type(types: Sequence[ColumnType]) -> ColumnType:
    """Return the least type that holds values of all these types; ValueError if there is none."""
    nullable = any(type_.nullable for type_ in types)
    common: ColumnType | None = types[0]
    for type_ in types[1:]:
        common = None if common is None else _both(common, type_)
    if common is None:
        listed = ", ".join(dict.fromkeys(str(type_) for type_ in types))
        raise ValueError(f"takes values of one type, not {listed}: cast them")
    return common.or_null(nullable)


def _both(left: ColumnType, right: ColumnType) -> ColumnType | None:
    nullable = left.nullable or right.nullable
    if {left.kind, right.kind} == {"int", "float"}:
        return floating.or_null(nullable)
    if left.kind == right.kind == "decimal":
        scale = max(left.scale, right.scale)
        whole = max(left.precision - left.scale, right.precision - right.scale)
        return (
            decimal(whole + scale, scale).or_null(nullable) if whole + scale <= DECIMAL_DIGITS_MAX else None
        )
    return left.with_nulls_of(right)


def as_element(value: object, type_: ColumnType) -> object:
    """Return a value as one of a type that `common_type` has found for it."""
    if type_.kind == "float" and type(value) is int:
        return float(value)
    return value


def same_as(value: object) -> object:
    """Return the same key for values that are the same; an int is the same as the float of its value."""
    if value is None or type(value) in (str, int, bool, bytes):
        return value
    if isinstance(value, float | Decimal):
        return "nan" if value != value else value
    return pack(value)


def in_order(value: object) -> tuple[bool, object]:
    """Return the key of a value in the order of values: NaN is the greatest number."""
    return (value != value, 0 if value != value else value)


def same_arrays(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    """Return the type of arrays that fits each operand."""
    del constants
    return common_type([type_.not_null() for type_ in types])


class _Run(Protocol):
    def __call__(self, *operands: object) -> object: ...


def array_function(
    name: str,
    params: tuple[Param, ...],
    typed: Typed,
    call: object,
    says: str,
    polars: str = "",
    failure: str | None = None,
) -> Function:
    """Return an entry of the catalogue whose `call` takes the values of a row, and then constants."""
    run = cast("_Run", call)

    def combined(
        values: Sequence[object], constants: Sequence[object], types: Sequence[ColumnType]
    ) -> object:
        del types
        return run(*values, *constants)

    return Function(
        name=name, family="lists and maps", accessor=None, params=params, gives=lambda types: any_value,
        says=says, spark=name, polars=polars, combined=combined, typed=typed,
        failure=failure, may_lack=failure is not None,
    )  # fmt: skip


def of_nulls(function: Function, many: bool = False) -> Function:
    """Return the function as one whose operands may be null without its result being so; `many`: of any
    number of operands.
    """
    return replace(function, skips_nulls=True, many=many)
