"""Convert tables and schemas of Arrow to bytes, and back.

`frame_to_table` checks its input in full, since a table may come from a stranger (`claims.py`).
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from ...errors import PeerError, RequestError
from ..arrow import aligned_buffer
from ..batch import Frame
from ..claims import checked_table

__all__ = ["frame_to_table", "schema_from_bytes", "schema_to_bytes", "table_to_frame"]

_SIZED_BYTES_MIN: Final = 1 << 18
"""From this size on `table_to_frame` computes the size of the stream before it writes the stream."""


def table_to_frame(table: pa.Table) -> Frame:
    """Return the table as one Arrow IPC stream."""
    if table.nbytes < _SIZED_BYTES_MIN:
        sink = pa.BufferOutputStream()
        _write(table, sink)
        return memoryview(sink.getvalue())
    # A buffer that grows needs up to three times as much memory meanwhile.
    size = pa.MockOutputStream()
    _write(table, size)
    buffer = pa.allocate_buffer(size.size())
    _write(table, pa.FixedSizeBufferWriter(buffer))
    return memoryview(buffer)


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def frame_to_table(frame: memoryview) -> pa.Table:
    """Return the table in an Arrow IPC stream, checked in full; `RequestError` if it is malformed."""
    try:
        return checked_table(aligned_buffer(frame))
    except Exception as error:  # damaged bytes make Arrow raise more than its own errors
        raise RequestError(f"the table is not a valid Arrow IPC stream: {str(error)[:500]}") from error


def schema_to_bytes(schema: pa.Schema) -> bytes:
    """Return an Arrow schema as bytes, for `Describe`."""
    return bytes(schema.serialize())


def schema_from_bytes(packed: bytes) -> pa.Schema:
    """Return the schema in `packed`; the inverse of `schema_to_bytes`. `PeerError` for other bytes."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(packed))
    except Exception as error:  # damaged bytes make Arrow raise more than its own errors
        raise PeerError(f"a worker sent an Arrow schema that cannot be read: {error}") from error
