"""Keys, values and order of nested values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from differential.columns.column_types import ColumnType, any_value, array_of
from differential.columns.symbols.packing import pack
from differential.expressions.functions.function import Function, Param, Python, Typed, always

__all__ = ["PARTS"]

_ARRAY: Final = Param("x", ("any", "array"))
_ASCENDING: Final = Param("ascending", ("bool",), is_constant=True, is_optional=True)
_MAP: Final = Param("x", ("any", "map"))
_STEP: Final = re.compile(r"\.([^.\[\]'*]+)|\['([^']+)'\]|\[([0-9]{1,18})\]")


def _sort_array(value: object, constants: Sequence[object]) -> object:
    """Return the list in order; None unless its values are numbers alone, or texts, or bytes."""
    if not isinstance(value, tuple):
        return None
    is_ascending = not constants or bool(constants[0])
    present = [part for part in value if part is not None]
    kinds = {"number" if type(part) in (int, float) else type(part).__name__ for part in present}
    if len(kinds) > 1 or not kinds <= {"number", "str", "bytes", "bool", "Decimal", "date", "datetime"}:
        return None
    nulls = [None] * (len(value) - len(present))
    # Equal numbers of two types (1, 1.0) have an order, too, or the result would depend on that of the list.
    in_order = sorted(
        present, key=lambda part: (part != part, 0 if part != part else part, pack(part)),
        reverse=not is_ascending,
    )  # fmt: skip
    return (*nulls, *in_order) if is_ascending else (*in_order, *nulls)


def _map_keys(value: object, constants: Sequence[object]) -> object:
    return tuple(cast("Mapping[object, object]", value)) if isinstance(value, dict) else None


def _map_values(value: object, constants: Sequence[object]) -> object:
    return tuple(cast("Mapping[object, object]", value).values()) if isinstance(value, dict) else None


def _sorted_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    if types[0].kind == "any":
        return any_value.or_null()
    if not types[0].parts[0].has_order:
        raise ValueError("needs elements that have an order")
    return types[0].not_null()


def _keys_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return any_value.or_null() if types[0].kind == "any" else array_of(types[0].parts[0])


def _values_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return any_value.or_null() if types[0].kind == "any" else array_of(types[0].parts[1])


def _nested(
    name: str, x: Param, typed: Typed, params: tuple[Param, ...], run: Python, says: str, polars: str = ""
) -> Function:
    return Function(
        name=name, family="lists and maps", accessor="list", params=(x, *params), typed=typed,
        gives=always(any_value), says=says, spark=name, polars=polars, python=run, may_lack=True,
    )  # fmt: skip


PARTS: Final = (
    _nested("sort_array", _ARRAY, _sorted_type, (_ASCENDING,), _sort_array,
            "A list of numbers, or of texts, in order; null is least, NaN greatest.", "list.sort"),
    _nested("map_keys", _MAP, _keys_type, (), _map_keys, "The keys of a map, as a list."),
    _nested("map_values", _MAP, _values_type, (), _map_values, "The values of a map, as a list."),
)  # fmt: skip
"""The functions that this file defines. Where the value is no list (or map), the result is null."""
