"""Arrow tables as no proper client sends them: few bytes that claim to be much, every type, odd names."""

from __future__ import annotations

import decimal
import random
import struct

import numpy as np
import pyarrow as pa

__all__ = ["bombs", "odd_table"]

_ROWS_WRITTEN = (1 << 31) - 2
_ROWS_CLAIMED = 1 << 40


def _stream(column: pa.Array, name: str = "record", compression: str | None = None) -> bytes:
    table = pa.table({name: column})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    # No writer writes so many rows.
    written, claimed = (struct.pack("<q", rows) for rows in (_ROWS_WRITTEN, _ROWS_CLAIMED))
    return bytes(sink.getvalue()).replace(written, claimed)


def _without_bytes(type_: pa.DataType, rows: int = _ROWS_WRITTEN, *buffers: bytes | None) -> pa.Array:
    packed = [None if one is None else pa.py_buffer(one) for one in buffers or (None,)]
    return pa.Array.from_buffers(type_, rows, packed)


def bombs() -> dict[str, bytes]:
    """Streams of some kilobytes at most that stand for gigabytes, by name."""
    shared = pa.DictionaryArray.from_arrays(pa.array(np.zeros(40_000, np.int8)), pa.array([b"\x01" * 40_000]))
    one_view = pa.array([b"v" * 40_000], pa.binary_view()).buffers()
    views = pa.Array.from_buffers(
        pa.binary_view(), 5_000, [None, pa.py_buffer(one_view[1].to_pybytes() * 5_000), one_view[2]]
    )
    lists = pa.Array.from_buffers(
        pa.list_(pa.null(), 1_000), 1_000_000, [None], children=[_without_bytes(pa.null(), 1_000_000_000)]
    )
    zeros = pa.array(np.zeros(1 << 21, dtype=np.int64))
    return {
        "nulls": _stream(_without_bytes(pa.null())),
        "nulls_in_key": _stream(_without_bytes(pa.null()), "key"),
        "one_value_shared": _stream(shared),
        "views_of_one_value": _stream(views),
        "compressed_lz4": _stream(zeros, "key", "lz4"),
        "compressed_zstd": _stream(zeros, "key", "zstd"),
        "lists_of_nulls": _stream(lists),
        "no_bytes_each": _stream(_without_bytes(pa.binary(0), _ROWS_WRITTEN, None, b"")),
        "structs_of_nothing": _stream(_without_bytes(pa.struct([]))),
    }


_COLUMNS: tuple[pa.Array, ...] = (
    pa.array([1, -(2**63), 2**63 - 1]),
    pa.array([1, 2**64 - 1, 0], pa.uint64()),
    pa.array([1, None, 3]),
    pa.array([1, 2, 3], pa.int8()),
    pa.array([float("nan"), -0.0, 1e308]),
    pa.array([1.5, None, 2.0], pa.float32()),
    pa.array([0.5, 1.0, 2.0]).cast(pa.float16()),
    pa.array(["a", "", "ü" * 40]),
    pa.array(["a", None, "b"], pa.large_string()),
    pa.array(["a", "b", "c" * 40], pa.string_view()),
    pa.array([b"\x01", b"\xa1a", b"\x92\x01\x02"]),
    pa.array([b"\x01", None, b"\xc1"]),
    pa.array([b"\x81\x90\x01", b"", b"\x91" * 600 + b"\x00"]),
    pa.array([b"\xdd\xff\xff\xff\xff", b"\xd6\xff\x00\x00\x00\x00", b"\xd4\x05\x00"], pa.large_binary()),
    pa.array([b"abcd", b"efgh", b"ijkl"], pa.binary(4)),
    pa.array([b"a", b"b", b"a"]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None])),
    pa.array([True, False, None]),
    pa.nulls(3),
    pa.array([1, 2, 3]).cast(pa.timestamp("ns")),
    pa.array([-(2**63), 2**63 - 1, 0]).cast(pa.timestamp("s", "Europe/Paris")),
    pa.array([1, 2, 3], pa.int32()).cast(pa.date32()),
    pa.array([-(2**62), 86_400_000, 0]).cast(pa.date64(), safe=False),
    pa.array([1, 2, 3], pa.int64()).cast(pa.duration("us")),
    pa.array([1, 2, 3], pa.int64()).cast(pa.time64("ns")),
    pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("9.99")]),
    pa.array([[1], [], None]),
    pa.array([{"a": 1}, {"a": None}, None]),
    pa.array([[("k", 1)], [], [("k", 2), ("k", 3)]], pa.map_(pa.string(), pa.int64())),
    pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array([5, 6])),
    pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
)
_NAMES = ("record", "key", "value", "text", "number", "truth", "moment", "blob", "extra", "diff", "epoch", "")


def odd_table(choose: random.Random) -> pa.Table:
    """A table of columns of any types under names that an input may have declared."""
    names = [choose.choice(_NAMES) for _ in range(choose.randint(0, 5))]
    columns = [choose.choice(_COLUMNS) for _ in names]
    if names and choose.random() < 0.4:
        names[-1], columns[-1] = "diff", choose.choice(_COLUMNS[:4])
    table = pa.Table.from_arrays(columns, names)
    if choose.random() < 0.2 and names:
        table = pa.concat_tables([table, table.slice(1)])
    return table
