"""Files of a base: what is read is what was written, or an error that names the file."""

from __future__ import annotations

import pyarrow as pa
import pytest
from simulated_store import SimulatedContent, SimulatedStore

from timely.durable.bases.files import RawWriter, checked_file, raw_records, read_table, write_table
from timely.durable.bases.manifest import BaseFile
from timely.durable.bases.rows_form import BaseRows, BucketRange
from timely.errors import StoreError

PATH = "base/000001-x-0.parquet"


@pytest.fixture
def store() -> SimulatedStore:
    return SimulatedStore()


def written(store: SimulatedStore) -> BaseFile:
    table = pa.table({"a": ["x", "y"], "epoch": [3, 8], "diff": [1, -2]})
    return write_table(store, PATH, BaseRows(BucketRange(7, 9), table), 1)


def test_file_of_rows_comes_back(store: SimulatedStore) -> None:
    file = written(store)
    assert (file.rows, file.buckets, file.epochs, file.is_raw) == (2, (7, 9), (3, 8), False)
    assert read_table(store, 1, file).to_pylist() == [
        {"a": "x", "epoch": 3, "diff": 1},
        {"a": "y", "epoch": 8, "diff": -2},
    ]


def test_file_of_records_comes_back(store: SimulatedStore) -> None:
    writer = RawWriter()
    writer.add(5, ["few", 5], (), 1)
    writer.add(2, ["rows", 2], (b"frame", memoryview(b"another")), 3)
    assert [head for head, _ in writer.records()] == [["few", 5], ["rows", 2]]
    file = writer.write(store, PATH)
    assert (file.rows, file.epochs, file.is_raw) == (4, (2, 5), True)
    records = list(raw_records(store, 1, file))
    assert [record.head for record in records] == [["few", 5], ["rows", 2]]
    assert [bytes(frame) for frame in records[1].frames] == [b"frame", b"another"]


@pytest.mark.parametrize("change", ["missing", "shorter", "another"])
def test_file_that_has_changed_is_named(store: SimulatedStore, change: str) -> None:
    file = written(store)
    data = bytearray(store.disk.files.pop(PATH).durable)
    if change == "shorter":
        del data[-1]
    data[3] ^= 1
    if change != "missing":
        store.disk.files[PATH] = SimulatedContent(bytes(data), bytes(data))
    with pytest.raises(StoreError, match=f"{PATH} is (missing|damaged: its bytes are not those)"):
        checked_file(store, 1, file)
