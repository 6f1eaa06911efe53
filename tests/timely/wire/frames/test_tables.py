"""Tables and schemas as bytes, there and back; what is none is refused: also `test_messages.py`."""

from __future__ import annotations

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


def test_back_a_schema_is_what_it_was() -> None:
    schema = TABLE.schema.with_metadata({"k": "v"})
    assert schema_from_bytes(schema_to_bytes(schema)).equals(schema, check_metadata=True)
    with pytest.raises(PeerError, match="Arrow schema that cannot be read"):
        schema_from_bytes(b"no schema")
