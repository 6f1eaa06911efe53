"""Which type does a schema name, and which has a text of JSON?"""

from __future__ import annotations

import json
from collections.abc import Mapping

from differential.columns.column_types import (
    ColumnType,
    array_of,
    as_column_type,
    boolean,
    floating,
    integer,
    string,
    struct_of,
)
from differential.columns.foreign.nested_names import field_text, nested_parts
from differential.columns.schema import Schema
from differential.errors import SchemaError

__all__ = ["type_of_json", "type_text_of"]


def type_text_of(schema: object) -> str:
    """Return the text of the type that `schema` names; the columns of a schema are fields of a struct."""
    if isinstance(schema, str):
        parts = nested_parts(f"struct<{schema}>")
        if nested_parts(schema.rstrip("? ")) is not None or parts is None:
            return str(as_column_type(schema).not_null())
        fields = map(field_text, parts.names, parts.parts)
        return str(as_column_type(f"struct<{', '.join(fields)}>"))
    try:
        type_ = as_column_type(schema)
    except SchemaError:
        columns = Schema.of(schema)
        type_ = struct_of({column.name: column.type for column in columns})
    return str(type_.not_null())


def type_of_json(text: str) -> ColumnType:
    """Return the least type that holds the value of a text of JSON; ValueError if it is none."""
    return _type_of(json.loads(text))


def _type_of(value: object) -> ColumnType:
    if isinstance(value, bool):
        return boolean
    if isinstance(value, int):
        return integer if -(2**63) <= value < 2**63 else floating
    if isinstance(value, float):
        return floating
    if isinstance(value, list):
        return array_of(_common([_type_of(part) for part in value]))
    if isinstance(value, Mapping):
        if not value:
            raise ValueError("an object without names has no type")
        return struct_of({str(name): _type_of(part) for name, part in value.items()})
    return string.or_null(value is None)


def _common(types: list[ColumnType]) -> ColumnType:
    if not types:
        return string
    common = types[0]
    for type_ in types[1:]:
        common = _both(common, type_)
    return common


def _both(left: ColumnType, right: ColumnType) -> ColumnType:
    nullable = left.nullable or right.nullable
    for one, other in ((left, right), (right, left)):
        if one == string.or_null():  # null, of any type
            return other.or_null()
    if {left.kind, right.kind} == {"int", "float"}:
        return floating.or_null(nullable)
    if left.kind == right.kind == "array":
        return array_of(_both(left.parts[0], right.parts[0])).or_null(nullable)
    if left.kind == right.kind == "struct":
        mine, its = (dict(zip(each.names, each.parts, strict=True)) for each in (left, right))
        fields = {
            name: _both(type_, its[name]) if name in its else type_.or_null() for name, type_ in mine.items()
        }
        fields |= {name: type_.or_null() for name, type_ in its.items() if name not in mine}
        return struct_of(fields).or_null(nullable)
    return left.or_null(nullable) if left.not_null() == right.not_null() else string.or_null(nullable)
