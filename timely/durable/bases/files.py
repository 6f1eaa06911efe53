"""Files of a base: Parquet, or records as a log has them; and whether they are as they were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import StoreError
from ...wire.batch import Frame, bytes_of
from ..records import Record, packed, records_in
from ..store import Store
from .manifest import BaseFile, advice_for
from .rows_form import BUCKETS, BaseRows, BucketRange

__all__ = ["RawWriter", "check_bytes", "checked_file", "raw_records", "read_table", "write_table"]


def write_table(store: Store, path: str, folded: BaseRows, epoch_column: int) -> BaseFile:
    """Write a new Parquet file, which is durable on return. Column number `epoch_column` has the epochs, in
    ascending order.
    """
    sink = BytesIO()
    table = folded.table
    pq.write_table(table, sink, compression="zstd")
    epochs = table.column(epoch_column)
    between = epochs[0].as_py(), epochs[-1].as_py()
    return _put(store, path, sink.getvalue(), table.num_rows, folded.buckets, between, is_raw=False)


def read_table(store: Store, base: int, file: BaseFile) -> pa.Table:
    """Return the rows of a Parquet file of this base; raise `StoreError` if it is damaged."""
    data = checked_file(store, base, file)
    return pq.read_table(pa.BufferReader(pa.py_buffer(data)))


def checked_file(store: Store, base: int, file: BaseFile) -> memoryview:
    """Return the bytes of a file of this base. Raise `StoreError` if they are not those that were written."""
    return check_bytes(store, file.path, file.size_bytes, file.crc, lambda: advice_for(store, base))


def check_bytes(store: Store, path: str, size_bytes: int, crc: int, advice: Callable[[], str]) -> memoryview:
    """Return the bytes of a file. Raise `StoreError`, with advice, if they are not as they were written."""
    data = store.read(path)
    if data is None:
        what = "is missing"
    elif len(data) != size_bytes or crc32(data) != crc:
        what = "is damaged: its bytes are not those that were written"
    else:
        return data
    raise StoreError(f"{store.name}/{path} {what}. {advice()}")


class RawWriter:
    """Makes a file of records, one behind another as in a segment of a log."""

    def __init__(self) -> None:
        self._pieces: list[Frame] = []
        self._crc = 0
        self._epochs: set[int] = set()
        self.rows = 0

    def add(self, epoch: int, head: Sequence[object], frames: Sequence[Frame], rows: int) -> None:
        """Add a record with this number of rows of an epoch."""
        self._epochs.add(epoch)
        pieces, self._crc, _ = packed(head, [bytes(bytes_of(frame)) for frame in frames], self._crc)
        self._pieces += pieces
        self.rows += rows

    def records(self) -> Iterator[tuple[list[object], list[memoryview]]]:
        """Yield head and frames of the records added."""
        data = memoryview(self._data())
        for record in records_in(data, "a file of a base", len(data), False):
            yield record.head, record.frames

    def write(self, store: Store, path: str) -> BaseFile:
        """Write the file, which is durable on return."""
        data = self._data()
        between = min(self._epochs), max(self._epochs)
        return _put(store, path, data, self.rows, BucketRange(0, BUCKETS), between, is_raw=True)

    def _data(self) -> bytes:
        return b"".join(bytes(bytes_of(piece)) for piece in self._pieces)


def raw_records(store: Store, base: int, file: BaseFile) -> Iterator[Record]:
    """Yield the records of a file of this base; raise `StoreError` if it is damaged."""
    data = checked_file(store, base, file)
    yield from records_in(data, f"{store.name}/{file.path}", len(data), False)


def _put(
    store: Store,
    path: str,
    data: bytes,
    rows: int,
    buckets: BucketRange,
    epochs: tuple[int, int],
    is_raw: bool,
) -> BaseFile:
    store.put_new(path, data)
    return BaseFile(path, len(data), crc32(data), rows, buckets, epochs, is_raw)
