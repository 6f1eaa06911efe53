"""A message holds what it claims, or is refused before it has taken memory.

tables_*    rows, values and views against the bytes that came in
streams_*   compressed parts
nested_*    levels of lists and maps
shown_*     what an error says of a value
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from timely.wire.claims import check_table, check_uncompressed, shown


def stream(table: pa.Table, compression: str | None = None) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_tables_a_row_has_one_bit_at_least() -> None:
    nulls = pa.table({"x": pa.nulls(1_000)})
    check_table(nulls, 125)
    with pytest.raises(ValueError, match="124 bytes cannot hold 1,000 rows"):
        check_table(nulls, 124)


def test_tables_inner_values_count_as_rows_do() -> None:
    lists = pa.Array.from_buffers(pa.list_(pa.null(), 100), 100, [None], children=[pa.nulls(10_000)])
    in_struct = pa.StructArray.from_arrays([lists], ["inner"])
    for column in (lists, in_struct):
        check_table(pa.table({"x": column}), 1_250)
        with pytest.raises(ValueError, match="claims 10,000 values in 1,249 bytes"):
            check_table(pa.table({"x": column}), 1_249)


def test_tables_views_show_no_more_than_a_few_times_what_came_in() -> None:
    views = pa.table({"x": pa.array(["v" * 100] * 50, pa.string_view())})
    check_table(views, 313)
    with pytest.raises(ValueError, match="shows 5,000 bytes where 312 came in"):
        check_table(views, 312)


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array([b"a"])),
        pa.StructArray.from_arrays([pa.array(["a"]).dictionary_encode()], ["x"]),
        pa.ListViewArray.from_arrays(pa.array([0]), pa.array([1]), pa.array([1])),
        pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array([[1, 2]])),
    ],
)
def test_tables_few_bytes_cannot_be_many_values(column: pa.Array) -> None:
    with pytest.raises(ValueError, match="few bytes can be many values"):
        check_table(pa.table({"x": column}), 1_000_000)


def test_tables_of_every_plain_form_are_taken() -> None:
    columns = {
        "text": pa.array(["a", "b"]).dictionary_encode(),
        "lists": pa.array([[1], []]),
        "maps": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        "structs": pa.array([{"a": [1]}, None]),
    }
    check_table(pa.table(columns), 1_000)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_streams_compressed_rows_and_dictionaries_are_refused(compression: str) -> None:
    rows = pa.table({"x": np.zeros(1_000, np.int64)})
    texts = pa.table({"x": pa.array(["a" * 1_000] * 2).dictionary_encode()})
    for table in (rows, texts):
        check_uncompressed(stream(table))
        with pytest.raises(ValueError, match="compressed"):
            check_uncompressed(stream(table, compression))


def test_shown_values_are_cut_and_deep_ones_are_named() -> None:
    assert shown("x" * 1_000) == "'" + "x" * 79
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "a list that is nested deeply"
    while deep:  # Python itself would take it apart level by level, and run out of stack
        deep = deep.pop()  # type: ignore[assignment]
