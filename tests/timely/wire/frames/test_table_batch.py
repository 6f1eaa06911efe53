"""frames/table_batch.py: tables between workers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from progress.errors import MisuseError, PeerError
from timely.wire.batch import decode, frames_of
from timely.wire.frames import table_batch
from timely.wire.frames.table_batch import TableBatch
from timely.wire.frames.tables import table_to_frame

TABLE = pa.table(
    {"a": pa.array([1, None, 3]), "b": ["x", "é", ""], "c": pa.array(["u", "u", None]).dictionary_encode()}
)


def sent(batch: TableBatch) -> TableBatch:
    frames = [memoryview(bytes(frame)) for frame in frames_of(batch, 1)]
    arrived = decode(TableBatch.KIND, frames, 0)
    assert isinstance(arrived, TableBatch)
    return arrived


def test_tables_come_back_from_their_frames() -> None:
    assert sent(TableBatch(TABLE)).table.equals(TABLE)
    assert sent(TableBatch(TABLE.slice(1, 1))).table.to_pylist() == TABLE.slice(1, 1).to_pylist()
    assert TableBatch.of(TABLE.to_batches()[0]).table.equals(TABLE)
    assert TableBatch.of(TABLE).rows == 3 and repr(TableBatch(TABLE)) == "TableBatch(3 rows of a, b, c)"


def test_tables_that_are_large_go_as_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_batch, "TABLE_MESSAGE_BYTES_MAX", 8_000)
    table = pa.table({"n": range(10_000)})
    parts = list(TableBatch(table).messages())
    assert len(parts) == 10 and pa.concat_tables([part.table for part in parts]).equals(table)
    assert max(len(bytes(frames_of(part, 1)[0])) for part in parts) < 10_000, (
        "a part takes its own rows along"
    )
    small = TableBatch(table.slice(0, 10))
    assert list(small.messages()) == [small]


def test_tables_have_no_times_of_their_own() -> None:
    batch = TableBatch(TABLE)
    assert batch.shifted(-1, 5) is batch.rebased(7) is batch.until(0, 1, 2) is batch
    assert batch.latest(0, 1) == 0


@pytest.mark.parametrize("frames", [[], [b"", b""], [b"no table"], [b""]], ids=repr)
def test_refused_frames_that_are_no_table(frames: list[bytes]) -> None:
    with pytest.raises(PeerError, match="worker 3 sent a table"):
        decode(TableBatch.KIND, [memoryview(frame) for frame in frames], 3)


@pytest.mark.parametrize(
    "column, why",
    [
        (pa.nulls(1_000_000), "cannot hold 1,000,000 rows"),
        (
            pa.Array.from_buffers(
                pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
            ),
            "UTF8",
        ),
        (pa.RunEndEncodedArray.from_arrays([3], ["x"]), "many values"),
    ],
    ids=["nulls", "no text", "runs"],
)
def test_refused_tables_are_refused_where_they_are_sent(column: pa.Array, why: str) -> None:
    with pytest.raises(
        MisuseError, match=f"a table with the columns odd cannot be sent to another worker.*{why}"
    ):
        TableBatch(pa.table({"odd": column})).to_frames(1)


def test_refused_tables_that_claim_more_than_they_are() -> None:
    frame = memoryview(table_to_frame(pa.table({"a": pa.nulls(1_000_000)})))
    with pytest.raises(PeerError, match="cannot hold 1,000,000 rows"):
        decode(TableBatch.KIND, [frame], 0)
