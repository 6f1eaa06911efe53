"""What a client does with the data that it gives to a collection's input, and gets from an output.

The worker tells the client an Arrow schema; the columns are declared by it, and checked before sending. In
what comes back lists and other `any` values are packed, which `to_pylist` undoes.
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
    """`data` (Arrow, pandas, numpy, rows, …) as a table of the columns `declared`; SchemaError for what does
    not fit.
    """
    if declared is None:
        raise InternalError(f"input {input_name!r} came without a schema")
    is_keyed = b"keys" in (declared.metadata or {})
    return to_table(data, _schema_of(declared), input_name, all_keys=is_keyed)


_SCHEMAS_MAX: Final = 256
_schemas: dict[int, tuple[pa.Schema, Schema]] = {}
"""By identity, which costs nothing to compare: an input's schema is one object as long as it is there. Each
is held, so that no other gets its identity.
"""


def _schema_of(declared: pa.Schema) -> Schema:
    known = _schemas.get(id(declared))
    if known is None:
        known = declared, Schema(tuple(Column(field.name, _type_of(field)) for field in declared))
        if len(_schemas) >= _SCHEMAS_MAX:
            _schemas.clear()
        _schemas[id(declared)] = known
    return known[1]


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
    """The rows of an output's changes or snapshot, values of `any` columns as what they are.

    As `table.to_pylist()`, which shows such values as the bytes that msgpack makes of them. Lists come back
    as tuples.
    """
    packed = [field.name for field in table.schema if field.metadata == ANY_METADATA]
    rows: list[dict[str, object]] = table.to_pylist()
    for row in rows:
        for name in packed:
            value = row[name]
            if isinstance(value, bytes):
                row[name] = unpack(value)
    return rows
