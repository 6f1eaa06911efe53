"""Tables on the client's side: what it inserts into a collection's input, and what it reads from an output.

The worker sends the client the Arrow schema of an input. `client_table` makes columns from it, and checks the
data against them before they are sent. In tables from an output, lists and other `any` values are packed;
`to_pylist` unpacks them.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from differential.columns.column_types import ANY_METADATA, ColumnType, any_value, as_column_type
from differential.columns.schema import Column, Schema
from differential.columns.symbols.packing import unpack
from differential.columns.tables import to_table
from differential.errors import SchemaError
from timely.errors import InternalError

__all__ = ["client_table", "to_pylist"]


def client_table(data: object, declared: pa.Schema | None, input_name: str) -> pa.Table:
    """Return `data` (Arrow, pandas, numpy, rows, …) as a table of the columns `declared`.

    Raises SchemaError for data that do not fit.
    """
    if declared is None:
        raise InternalError(f"input {input_name!r} came without a schema")
    is_keyed = b"keys" in (declared.metadata or {})
    return to_table(data, _schema_of(declared), input_name, all_keys=is_keyed)


_SCHEMAS_MAX: Final = 256
_schemas: dict[int, tuple[pa.Schema, Schema]] = {}
"""Schemas by the identity of the Arrow schema, which is cheap to compare.

An input keeps one schema object for its whole life. Each entry holds its Arrow schema, so that no other
object can get the same identity.
"""


def _schema_of(declared: pa.Schema) -> Schema:
    entry = _schemas.get(id(declared))
    if entry is None:
        entry = declared, Schema(tuple(Column(field.name, _type_of(field)) for field in declared))
        if len(_schemas) >= _SCHEMAS_MAX:
            _schemas.clear()
        _schemas[id(declared)] = entry
    return entry[1]


def _type_of(field: pa.Field) -> ColumnType:
    if field.metadata == ANY_METADATA:
        return any_value.or_null(field.nullable)
    try:
        declared = as_column_type(field.type)
    except SchemaError:
        declared = any_value
    if declared.to_arrow() != field.type or declared.kind == "any":
        raise InternalError(
            f"column {field.name!r} was declared with the Arrow type {field.type}, which no column type has"
        )
    return declared.or_null(field.nullable)


def to_pylist(table: pa.Table) -> list[dict[str, object]]:
    """Return the rows of an output's changes or snapshot as dicts, with `any` columns as Python values.

    Like `table.to_pylist()`, which however shows such values as their msgpack bytes. Lists come back as
    tuples.
    """
    packed = [field.name for field in table.schema if field.metadata == ANY_METADATA]
    rows: list[dict[str, object]] = table.to_pylist()
    for row in rows:
        for name in packed:
            value = row[name]
            if isinstance(value, bytes):
                row[name] = unpack(value)
    return rows
