"""Functions of nested values: arrays, structs and maps, and lists and maps in columns of type `any`.

Each different value is unpacked once. A list of type `any` may hold values of any kind, so a value taken out
of it is of type `any`, too, and can be null; `cast` gives it its own type. What comes out of an array has the
type of its elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from differential.columns.column_types import ColumnType, any_value, boolean, integer, string
from differential.columns.symbols.packing import pack
from differential.expressions.functions.families.elements import LIST, common_type, element_of, same_as
from differential.expressions.functions.families.records import field_type
from differential.expressions.functions.function import ANY_KIND, Function, Param, Typed

__all__ = ["NESTED"]

_ARRAY: Final = Param("x", ("any", "array"))


def _length(value: object, constants: Sequence[object]) -> object:
    return len(value) if isinstance(value, tuple | dict) else None


def _length_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return integer.or_null(types[0].kind == "any")


def _get(values: Sequence[object], constants: Sequence[object], types: Sequence[ColumnType]) -> object:
    del constants, types
    value, index = values
    if not isinstance(value, tuple) or not -len(value) <= cast("int", index) < len(value):
        return None
    return cast("object", value[cast("int", index)])


def _get_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return (any_value if types[0].kind == "any" else element_of(types[0])).or_null()


def _field(value: object, constants: Sequence[object]) -> object:
    return cast("Mapping[object, object]", value).get(constants[0]) if isinstance(value, dict) else None


def _field_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    if types[0].kind == "struct":
        return field_type(types[0], constants[1])
    if types[0].kind == "map":
        common_type([types[0].parts[0], types[1].not_null()])
    return (any_value if types[0].kind == "any" else types[0].parts[1]).or_null()


def _contains(values: Sequence[object], constants: Sequence[object], types: Sequence[ColumnType]) -> object:
    whole, value = values
    if not isinstance(whole, tuple):
        return None
    if types[0].kind == "any":
        packed = pack(value)  # as rows compare: 1, 1.0 and True are three values
        return any(pack(part) == packed for part in whole)
    key = same_as(value)
    if any(same_as(part) == key for part in whole if part is not None):
        return True
    return None if None in whole else False


def _contains_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    if types[0].kind == "any":
        return boolean.or_null()
    element = element_of(types[0])
    common_type([element, types[1]])
    return boolean.or_null(element.nullable)


def _join(value: object, constants: Sequence[object]) -> object:
    if not isinstance(value, tuple) or not all(isinstance(part, str) for part in value):
        return None
    return cast("str", constants[0]).join(cast("tuple[str, ...]", value))


def _join_array(values: Sequence[object], constants: Sequence[object], types: Sequence[ColumnType]) -> object:
    del types
    instead = constants[1] if len(constants) > 1 else None
    parts = [instead if part is None else part for part in cast("tuple[object, ...]", values[0])]
    return cast("str", constants[0]).join(cast("str", part) for part in parts if part is not None)


def _join_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    if types[0].kind == "array" and element_of(types[0]).kind != "string":
        raise ValueError("takes an array of texts")
    return string.or_null(types[0].kind == "any")


def _nested(name: str, params: tuple[Param, ...], typed: Typed, says: str) -> Function:
    return Function(
        name=name, family="lists and maps", accessor="list", params=params, gives=lambda types: any_value,
        says=says, typed=typed, may_lack=True, python=_length,
    )  # fmt: skip


NESTED: Final = (
    replace(_nested("size", (LIST,), _length_type, "The number of values in a list or map."),
            spark="size", polars="list.len"),
    replace(_nested("get", (_ARRAY, Param("index", ("int",))), _get_type,
                    "The value at `index` of a list, from 0, or from the end if negative; null if there is "
                    "none."), spark="get", polars="list.get", python=None, combined=_get),
    replace(_nested("field", (Param("x", ("any", "struct", "map")),
                              Param("key", ("string", "int"), is_constant=True)), _field_type,
                    "The value of a struct or map under `key`; null if there is none."),
            spark="x['key']", polars="struct.field", python=_field, calls=()),
    replace(_nested("has", (_ARRAY, Param("value", ANY_KIND)), _contains_type,
                    "True where a list holds `value`; of an array null if it does not, and has nulls."),
            spark="array_contains", polars="list.contains", python=None, combined=_contains,
            calls=("array_contains",)),
    replace(_nested("join", (_ARRAY, Param("separator", ("string",), is_constant=True),
                             Param("null_replacement", ("string",), is_constant=True, is_optional=True)),
                    _join_type, "A list of texts as one text; nulls of an array are left out, or replaced."),
            spark="array_join", polars="list.join", python=_join, combined=_join_array,
            calls=("array_join",)),
)  # fmt: skip
"""The functions that this file defines. Where a value of type any is no list (or map), the result is null."""
