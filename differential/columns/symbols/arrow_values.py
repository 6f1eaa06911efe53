"""Packed values in Arrow tables that clients receive: `to_pylist()` and `as_py()` give the values.

A column of type `any` holds the msgpack form of its values. Here it is an Arrow extension type over these
bytes, so that a value is a value wherever Arrow makes Python objects: of a table, a column, a row. Lists come
back as tuples. Workers know the bytes alone; tables on the way to them hold the bytes again.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from differential.columns.column_types import ANY_METADATA, TYPE_KEY, as_column_type
from differential.columns.nested.arrays import nested_array
from differential.columns.symbols.packing import unpack
from timely.wire.arrow import pc

__all__ = ["AnyScalar", "AnyType", "with_values"]

_STORAGES: Final = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)


class AnyScalar(pa.ExtensionScalar):  # type: ignore[misc]  # Arrow has no types
    """One value of a column of type `any`."""

    def as_py(self, **options: object) -> object:
        """Return the value; None for null. `options` are about maps of Arrow, which this is not."""
        packed = self.value
        return None if packed is None else unpack(packed.as_py())


class AnyType(pa.ExtensionType):  # type: ignore[misc]  # as above
    """The Arrow type of such a column."""

    storage_metadata = ANY_METADATA
    """What says of the bytes alone that they are packed values."""

    def __init__(self, storage: pa.DataType | None = None) -> None:
        super().__init__(pa.binary() if storage is None else storage, "differential.any")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> AnyType:
        # Polars and DuckDB store bytes as `large_binary` or as views. Arrow would read these as the storage
        # that the type names, whatever they are.
        del serialized
        if not any(is_stored(storage_type) for is_stored in _STORAGES):
            raise TypeError(f"values of differential.any are stored as bytes, not as {storage_type}")
        return cls(storage_type)

    def __arrow_ext_scalar_class__(self) -> type[AnyScalar]:
        return AnyScalar


_ANY: Final = AnyType()
pa.register_extension_type(_ANY)


def with_values(table: pa.Table) -> pa.Table:
    """Return the table with packed columns as columns of values. No bytes of `any` columns are copied."""
    for at, field in enumerate(table.schema):
        packed_type = (field.metadata or {}).get(TYPE_KEY)
        if packed_type is None or isinstance(field.type, AnyType):
            continue
        if packed_type != b"any":
            table = table.set_column(at, *_nested(field, table.column(at), packed_type.decode()))
            continue
        chunks = [pa.ExtensionArray.from_storage(_ANY, _plain(chunk)) for chunk in table.column(at).chunks]
        typed = pa.field(field.name, _ANY, field.nullable, field.metadata)
        table = table.set_column(at, typed, pa.chunked_array(chunks, _ANY))
    return table


def _nested(field: pa.Field, column: pa.ChunkedArray, written: str) -> tuple[pa.Field, pa.ChunkedArray]:
    """Return a column of arrays, structs or maps; each different value is unpacked once."""
    type_ = as_column_type(written)
    arrow = type_.arrow_of_values()
    chunks = []
    for chunk in column.chunks:
        encoded = _plain(chunk).dictionary_encode()
        payloads, indices = encoded.dictionary.to_pylist(), encoded.indices
        if indices.null_count:
            # `take` would put nulls below a null, into fields that have none, and Parquet refuses that.
            indices = pc.fill_null(indices, len(payloads))
            payloads.append(None)
        chunks.append(nested_array(payloads, type_).take(indices))
    metadata = {key: value for key, value in field.metadata.items() if key != TYPE_KEY}
    return pa.field(field.name, arrow, field.nullable, metadata or None), pa.chunked_array(chunks, arrow)


def _plain(chunk: pa.Array) -> pa.Array:
    return chunk if chunk.type == pa.binary() else chunk.cast(pa.binary())
