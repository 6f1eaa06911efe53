"""Tables on the client's side: what it inserts into a collection's input, and what it reads from an output.

The worker sends the client the Arrow schema of an input. `client_table` makes columns from it, and checks the
data against them before they are sent. In tables from an output, lists and other `any` values are packed;
`symbols/arrow_values.py` unpacks them.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from differential.columns.column_types import TYPE_KEY, ColumnType, any_value, as_column_type
from differential.columns.schema import Column, Schema
from differential.columns.symbols.arrow_values import with_values
from differential.columns.tables import to_table
from differential.errors import SchemaError, shown
from timely.client.tables import is_of_pandas
from timely.errors import InternalError
from timely.wire.arrow import to_pandas as table_to_pandas

__all__ = ["client_table", "declared_schema", "to_arrow", "to_pandas", "to_pylist"]


def client_table(data: object, declared: pa.Schema | None, input_name: str) -> pa.Table:
    """Return `data` (Arrow, pandas, numpy, rows, …) as a table of the columns `declared`.

    Raises SchemaError for data that do not fit.
    """
    if declared is None:
        raise InternalError(f"input {input_name!r} came without a schema")
    is_keyed = b"keys" in (declared.metadata or {})
    return to_table(data, declared_schema(declared), input_name, all_keys=is_keyed)


_SCHEMAS_MAX: Final = 256
_schemas: dict[int, tuple[pa.Schema, Schema]] = {}
"""Schemas by the identity of the Arrow schema, which is cheap to compare.

An input keeps one schema object for its whole life. Each entry holds its Arrow schema, so that no other
object can get the same identity.
"""


def declared_schema(declared: pa.Schema) -> Schema:
    """Return the schema whose Arrow form is `declared`: that of an input, an output or an export. Lists and
    other packed values have the type that the metadata of their fields says.
    """
    entry = _schemas.get(id(declared))
    if entry is None:
        entry = declared, Schema(tuple(Column(field.name, _type_of(field)) for field in declared))
        if len(_schemas) >= _SCHEMAS_MAX:
            _schemas.clear()
        _schemas[id(declared)] = entry
    return entry[1]


def _type_of(field: pa.Field) -> ColumnType:
    packed_type = (field.metadata or {}).get(TYPE_KEY)
    if packed_type is not None:
        return as_column_type(packed_type.decode()).or_null(field.nullable)
    try:
        declared = as_column_type(field.type)
    except SchemaError:
        declared = any_value
    if declared.to_arrow() != field.type or declared.metadata is not None:
        raise InternalError(
            f"column {field.name!r} was declared with the Arrow type {field.type}, which no column type has"
        )
    return declared.or_null(field.nullable)


def to_pylist(result: object) -> list[object]:
    """Return a result as Python objects: the rows of a table as dicts, the values of a column, the rows of an
    output as of its last epoch. Lists come back as tuples.

    `result` is what `changes`, `snapshot` and `follow` return, a part of it (a column, a slice), a table that
    Arrow reads from a file, records, or the output itself. The method `to_pylist()` of what an output returns
    does the same; this function also understands a table that has lost its type on the way.
    """
    rows: list[object]
    if isinstance(result, list):
        return result
    if isinstance(result, pa.Table | pa.RecordBatch):
        rows = with_values(_as_table(result)).to_pylist()
        return rows
    own = getattr(result, "to_pylist", None)
    if own is None:
        raise SchemaError(
            f"to_pylist takes a table of an output, a column of it, or the output, not {shown(result)}"
        )
    rows = own()
    return rows


def to_arrow(result: object) -> pa.Table:
    """The same as an Arrow table: of a table, a batch, a frame of pandas or Polars, or an output."""
    if isinstance(result, pa.Table | pa.RecordBatch):
        return with_values(_as_table(result))
    own = getattr(result, "to_arrow", None)
    if own is not None:
        return own()
    if is_of_pandas(result, "DataFrame"):
        return pa.Table.from_pandas(result, preserve_index=False)
    raise SchemaError(f"to_arrow takes a table of an output, or the output, not {shown(result)}")


def to_pandas(result: object) -> object:
    """The same as a DataFrame of pandas: values of `any` columns are objects, not bytes."""
    return table_to_pandas(to_arrow(result))


def _as_table(result: pa.Table | pa.RecordBatch) -> pa.Table:
    return result if isinstance(result, pa.Table) else pa.Table.from_batches([result])
