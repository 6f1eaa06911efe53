"""Functions of nested values, kept in columns of type `any`: lists and maps.

Each different value is unpacked once. A list or map may hold values of any kind, so a value taken out of it
is of type `any`, too, and can be null; `cast` gives it its own type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from differential.columns.column_types import any_value, boolean, integer, string
from differential.columns.symbols.packing import pack
from differential.expressions.functions.function import ANY_KIND, Function, Param, Python, always

__all__ = ["NESTED"]

_LIST: Final = Param("x", ("any",))


def _length(value: object, constants: Sequence[object]) -> object:
    return len(value) if isinstance(value, tuple | dict) else None


def _get(value: object, constants: Sequence[object]) -> object:
    index = cast("int", constants[0])
    if not isinstance(value, tuple) or not -len(value) <= index < len(value):
        return None
    return cast("object", value[index])


def _field(value: object, constants: Sequence[object]) -> object:
    return cast("Mapping[object, object]", value).get(constants[0]) if isinstance(value, dict) else None


def _contains(value: object, constants: Sequence[object]) -> object:
    if not isinstance(value, tuple):
        return None
    packed = pack(constants[0])  # as rows compare: 1, 1.0 and True are three values
    return any(pack(part) == packed for part in value)


def _join(value: object, constants: Sequence[object]) -> object:
    if not isinstance(value, tuple) or not all(isinstance(part, str) for part in value):
        return None
    return cast("str", constants[0]).join(cast("tuple[str, ...]", value))


def _nested(
    name: str,
    params: tuple[Param, ...],
    gives: str,
    run: Python,
    says: str,
    spark: str,
    polars: str,
    calls: tuple[str, ...] | None = None,
) -> Function:
    kinds = {"int": integer, "bool": boolean, "string": string, "any": any_value}
    return Function(
        name=name,
        family="lists and maps",
        accessor="list",
        params=(_LIST, *params),
        gives=always(kinds[gives]),
        says=says,
        spark=spark,
        polars=polars,
        calls=calls,
        python=run,
        may_lack=True,
    )


NESTED: Final = (
    _nested("size", (), "int", _length, "The number of values in a list or map.", "size", "list.len"),
    _nested("get", (Param("index", ("int",), is_constant=True),), "any", _get,
            "The value at `index` of a list, from 0, or from the end if negative; null if there is none.",
            "get", "list.get"),
    _nested("field", (Param("key", ("string", "int"), is_constant=True),), "any", _field,
            "The value of a map, or struct, under `key`; null if there is none.", "x['key']",
            "struct.field", ()),
    _nested("has", (Param("value", ANY_KIND, is_constant=True),), "bool", _contains,
            "True where a list holds `value`.", "array_contains", "list.contains",
            ("array_contains",)),
    _nested("join", (Param("separator", ("string",), is_constant=True),), "string", _join,
            "A list of texts as one text.", "array_join", "list.join", ("array_join",)),
)  # fmt: skip
"""The functions that this file defines. Where the value is no list (or map), the result is null."""
