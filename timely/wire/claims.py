"""Does a message of a stranger hold as much as it claims?

A few bytes can stand for gigabytes: nulls need no bytes at all, a billion rows may refer to one value of a
dictionary, a compressed buffer grows a thousandfold. The reader of such a message must find out before it has
allocated the memory. The rule: each row needs at least one bit of the received bytes; compressed data are
refused, and so is every form of column in which a few bytes can be many values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

__all__ = ["check_table", "check_uncompressed", "checked_table", "shown"]

_ROWS_PER_BYTE_MAX = 8
_VIEWED_PER_BYTE_MAX = 16
_SHOWN_CHARS_MAX = 80

_NUMBERS = frozenset(
    {
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.bool_()),
    }
)
"""Types in which each value has bytes, or a bit, of its own: one value for each row of the table."""

# Field numbers in the flatbuffers tables of Arrow's messages (format/Message.fbs).
_HEADER, _DATA, _COMPRESSION = 2, 1, 3


def shown(value: object) -> str:
    """Return the beginning of `repr(value)` for an error message; the type if `value` is nested too
    deeply.
    """
    try:
        return repr(value)[:_SHOWN_CHARS_MAX]
    except RecursionError:
        return f"a {type(value).__name__} that is nested deeply"


def checked_table(stream: pa.Buffer) -> pa.Table:
    """Return the table in an Arrow IPC stream, checked in full. Damaged bytes make Arrow raise more than its
    own errors.
    """
    check_uncompressed(stream)
    table = pa.ipc.open_stream(stream).read_all()
    table.validate()  # a negative length would end the process in `check_table`
    check_table(table, stream.size)
    table.validate(full=True)
    return table


def check_uncompressed(stream: pa.Buffer) -> None:
    """Raise `ValueError` if a message of an Arrow IPC stream is compressed: it shows its size too late."""
    for message in pa.ipc.MessageReader.open_stream(stream):
        if message.type == "schema":
            continue
        metadata = message.metadata.to_pybytes()
        (root,) = struct.unpack_from("<I", metadata)
        batch = _field(metadata, root, _HEADER)
        if message.type == "dictionary" and batch is not None:
            batch = _field(metadata, batch, _DATA)
        if batch is not None and _field(metadata, batch, _COMPRESSION) is not None:
            raise ValueError("it is compressed; rows are sent as they are")


def check_table(table: pa.Table, size_bytes: int) -> None:
    """Raise `ValueError` if a table of `size_bytes` claims to be much more than that.

    Requires: `table.validate()` has passed, since Arrow ends the process when it works with a negative
    length.
    """
    if table.num_rows > _ROWS_PER_BYTE_MAX * size_bytes:
        raise ValueError(f"{size_bytes:,} bytes cannot hold {table.num_rows:,} rows")
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.type in _NUMBERS:  # fast path: most columns
            continue
        what = f"the column {name[:_SHOWN_CHARS_MAX]!r}"
        if bad := next(_unclear(column.type, is_inner=False), None):
            raise ValueError(f"{what} has the type {bad}, in which a few bytes can be many values")
        if _is_view(column.type):
            viewed = sum(map(_viewed, column.chunks))
            if viewed > _VIEWED_PER_BYTE_MAX * size_bytes:
                raise ValueError(f"{what} shows {viewed:,} bytes where {size_bytes:,} came in")
        for chunk in column.chunks:
            if (values := _longest(chunk)) > _ROWS_PER_BYTE_MAX * size_bytes:
                raise ValueError(f"{what} claims {values:,} values in {size_bytes:,} bytes")


def _field(table: bytes, at: int, number: int) -> int | None:
    """Return the offset that a field of the flatbuffers table at `at` refers to; `None` if it is absent."""
    (back,) = struct.unpack_from("<i", table, at)
    (size,) = struct.unpack_from("<H", table, at - back)
    slot = 4 + 2 * number
    if slot >= size:
        return None
    inside = int(struct.unpack_from("<H", table, at - back + slot)[0])
    if inside == 0:
        return None
    offset = int(struct.unpack_from("<I", table, at + inside)[0])
    return at + inside + offset


def _is_view(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(type_) or pa.types.is_binary_view(type_))


def _viewed(array: pa.Array) -> int:
    """Return the total bytes of the values of an array of views; a view has 16 bytes, its length first."""
    words = np.frombuffer(array.buffers()[1] or b"", dtype=np.int32)
    lengths = words[4 * array.offset : 4 * (array.offset + len(array)) : 4]
    return int(lengths.clip(0).sum(dtype=np.int64))


def _unclear(type_: pa.DataType, is_inner: bool) -> Iterator[pa.DataType]:
    """Yield the types in `type_` whose values may share their bytes and whose number nothing else bounds."""
    shares = (
        pa.types.is_run_end_encoded(type_)
        or pa.types.is_list_view(type_)
        or pa.types.is_large_list_view(type_)
        or (is_inner and (pa.types.is_dictionary(type_) or _is_view(type_)))
    )
    if shares or isinstance(type_, pa.BaseExtensionType):
        yield type_
    elif pa.types.is_dictionary(type_):
        if pa.types.is_nested(type_.value_type):
            yield type_
        yield from _unclear(type_.value_type, is_inner=True)
    else:
        for number in range(type_.num_fields):
            yield from _unclear(type_.field(number).type, is_inner=True)


def _longest(array: pa.Array) -> int:
    """Return the largest number of values at any level of `array`."""
    type_ = array.type
    if pa.types.is_struct(type_):
        return max([len(array), *(_longest(array.field(number)) for number in range(type_.num_fields))])
    if pa.types.is_map(type_):
        return max(len(array), _longest(array.keys), _longest(array.items))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return max(len(array), _longest(array.values))
    return len(array)
