"""Tables and schemas as bytes, there and back; what is none is refused: also `test_messages.py`."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from timely import PeerError, RequestError
from timely.wire.frames import tables
from timely.wire.frames.tables import frame_to_table, schema_from_bytes, schema_to_bytes, table_to_frame

TABLE = pa.table({"a": [1, None], "b": ["x", "y"]})


@pytest.mark.parametrize("sized_bytes_min", [0, 1 << 20])
def test_back_a_table_is_what_it_was(sized_bytes_min: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a large one, of which it is found before how many bytes it takes."""
    monkeypatch.setattr(tables, "_SIZED_BYTES_MIN", sized_bytes_min)
    frame = memoryview(bytes(table_to_frame(TABLE)))
    assert frame_to_table(frame).equals(TABLE)
    for broken in (frame[:-20], frame[9:], memoryview(b"")):
        with pytest.raises(RequestError, match="not a valid Arrow IPC stream"):
            frame_to_table(broken)


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_refused_are_compressed_rows() -> None:
    with pytest.raises(RequestError, match="valid Arrow IPC stream: it is compressed"):
        frame_to_table(memoryview(stream(pa.table({"a": [0] * 1_000}), "zstd")))


def test_refused_are_few_bytes_that_claim_to_be_very_many_values() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1 << 30], pa.int32()), pa.array([7]))
    with pytest.raises(RequestError, match="480 bytes cannot hold 1,073,741,824 rows"):
        frame_to_table(memoryview(stream(pa.table({"a": runs}))))


def test_refused_are_bytes_that_are_no_text() -> None:
    texts = stream(pa.table({"a": ["somebody", "else"]}))
    assert texts.count(b"somebody") == 1
    with pytest.raises(RequestError, match="valid Arrow IPC stream: .*UTF8"):
        frame_to_table(memoryview(texts.replace(b"somebody", b"some\xffody")))


def test_refused_is_a_length_below_zero() -> None:
    """Before anything is done with it: Arrow would end the process."""
    texts = stream(pa.table({"a": pa.array([1 << 40, 1 << 41, 1 << 42], pa.int64())}))
    known = struct.pack("<q", 3)
    places = [at for at in range(len(texts)) if texts[at : at + 8] == known]
    assert places, "the lengths of the batch and of its column"
    for at in places:
        changed = texts[:at] + struct.pack("<q", -3) + texts[at + 8 :]
        with pytest.raises(RequestError, match="valid Arrow IPC stream"):
            frame_to_table(memoryview(changed))


def test_back_a_schema_is_what_it_was() -> None:
    schema = TABLE.schema.with_metadata({"k": "v"})
    assert schema_from_bytes(schema_to_bytes(schema)).equals(schema, check_metadata=True)
    with pytest.raises(PeerError, match="Arrow schema that cannot be read"):
        schema_from_bytes(b"no schema")
