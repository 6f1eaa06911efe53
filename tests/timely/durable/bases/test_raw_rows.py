"""Rows that stay as they were logged: of classes that are known, and of others."""

from __future__ import annotations

import pyarrow as pa
import pytest
from simulated_store import SimulatedStore

from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from differential.operators.edge.table_in import TableIn
from timely.durable.bases.coverage import Logs
from timely.durable.bases.files import raw_records
from timely.durable.bases.manifest import Base, BaseFile
from timely.durable.bases.raw_rows import RawRows
from timely.durable.journal import append_batches, batches_in
from timely.wire.batch import Batch, Frame, Records

SCHEMA = Schema.of("word: string")
DETAILS = ["differential.operators.edge.table_in", *TableIn(SCHEMA, "in").raw_form()]


@pytest.fixture
def logs() -> Logs:
    return Logs(SimulatedStore(), [], Base(1))


def take(rows: RawRows, epoch: int, batch: Batch, peer: int) -> None:
    frames: list[Frame] = []
    shape = append_batches(peer, [batch], frames)
    rows.take(epoch, shape, [memoryview(frame).cast("B") for frame in frames], 3, None)  # type: ignore[arg-type]


def texts(word: str) -> UpdateBatch:
    return TableIn(SCHEMA, "in").encode(pa.table({"word": [word]}), 1, 0)


def epochs_in(logs: Logs, files: list[BaseFile]) -> list[object]:
    return [record.head[1] for file in files for record in raw_records(logs.store, 1, file)]


def test_rows_with_texts_are_readable_whatever_was_said_before(logs: Logs) -> None:
    rows = RawRows(DETAILS, [], -1)
    peer = -1_000_001
    take(rows, 0, texts("a"), peer)
    (first,) = rows.write(logs, "base/1-0")
    rows = RawRows(DETAILS, [first], -1)
    take(rows, 1, texts("a"), peer)  # the log has said this text before
    files = rows.write(logs, "base/1-1")
    assert files[0] == first and epochs_in(logs, files) == [0, 1]
    (record,) = raw_records(logs.store, 1, files[1])
    assert len(record.frames) == 3, "words, and the text that they need"


def test_files_of_several_inputs_each_have_the_texts_that_they_need(logs: Logs) -> None:
    """A fold takes the rows of all inputs in one pass: each file is read by itself later."""
    one, other = RawRows(DETAILS, [], -1), RawRows(DETAILS, [], -1)
    for rows in (one, other, one):
        take(rows, 0, texts("the same"), -1_000_004)
    for at, rows in enumerate((one, other)):
        (file,) = rows.write(logs, f"base/1-{at}")
        first, *others = raw_records(logs.store, 1, file)
        assert len(first.frames) == 3, "words, and the text that they need"
        assert all(len(record.frames) == 2 for record in others)


def test_rows_of_a_class_that_is_not_known_stay_as_they_are(logs: Logs) -> None:
    rows = RawRows(DETAILS, [], -1)
    rows.take(4, [(61_234, 2)], [memoryview(b"header"), memoryview(b"rows")], 7, 9)
    (file,) = rows.write(logs, "base/1-0")
    (record,) = raw_records(logs.store, 1, file)
    assert record.head == ["rows", 4, 7, 9, [[61_234, 2]]]
    assert [bytes(frame) for frame in record.frames] == [b"header", b"rows"]


def test_rows_of_dropped_epochs_go(logs: Logs) -> None:
    rows = RawRows(DETAILS, [], -1)
    for epoch in range(6):
        rows.take_plain(epoch, [(epoch,)], [1])
        take(rows, epoch, Records([epoch]), -1_000_002)
    files = rows.write(logs, "base/1-0")
    rows = RawRows(DETAILS, files, 3)
    rows.take_plain(2, [(2,)], [1])
    rows.take_plain(9, [(9,)], [1])
    files = rows.write(logs, "base/1-1")
    assert epochs_in(logs, files) == [4, 4, 5, 5, 9]
    assert RawRows(DETAILS, files, 20).write(logs, "base/1-2") == []


def test_rows_of_many_folds_are_joined(logs: Logs) -> None:
    files: list[BaseFile] = []
    for epoch in range(30):
        rows = RawRows(DETAILS, files, -1)
        take(rows, epoch, texts(f"word {epoch % 3}"), -1_000_003)
        files = rows.write(logs, f"base/1-{epoch}")
        assert len(files) <= 9
    assert epochs_in(logs, files) == list(range(30))
    for file in files:
        for record in raw_records(logs.store, 1, file):
            (batch,) = batches_in(record.head[-1], iter(record.frames), is_mine=True)  # type: ignore[arg-type]
            assert SCHEMA.decode(batch.words, SYMBOLS).num_rows == 1  # type: ignore[attr-defined]
