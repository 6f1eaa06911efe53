"""A batch that is an Arrow table: all its rows are at the envelope time.

On the wire it is an Arrow IPC stream in one frame, which the receiver checks in full. A large table goes as
several messages of some `TABLE_MESSAGE_BYTES_MAX` each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

import pyarrow as pa

from ...dictionaries import Mark
from ...errors import MisuseError, PeerError, RequestError
from ...limits import TABLE_MESSAGE_BYTES_MAX
from ..batch import Frame, Large, register
from ..claims import check_table
from .tables import frame_to_table, table_to_frame

__all__ = ["TableBatch"]


@register
class TableBatch(Large):
    """A table that one vertex sends to another; nobody writes to it."""

    KIND: ClassVar[int] = 6
    __slots__ = ("table",)

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @classmethod
    def of(cls, rows: pa.Table | pa.RecordBatch) -> Self:
        """Return the batch of a table or of a record batch."""
        return cls(rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows]))

    def __repr__(self) -> str:
        return f"TableBatch({self.rows} rows of {', '.join(self.table.column_names)[:80]})"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    @property
    def size_bytes(self) -> int:
        """The bytes of the rows."""
        return int(self.table.nbytes)

    def messages(self) -> Iterator[TableBatch]:
        """Yield the rows in tables that are small enough for a message each."""
        size = self.table.nbytes
        if size <= TABLE_MESSAGE_BYTES_MAX:
            yield self
            return
        rows = max(1, self.rows * TABLE_MESSAGE_BYTES_MAX // size)
        for start in range(0, self.rows, rows):
            yield TableBatch(self.table.slice(start, rows))

    def shifted(self, keep: int, add: int) -> Self:
        """Itself: rows have no times of their own."""
        del keep, add
        return self

    def rebased(self, step: int) -> Self:
        """Itself: rows have no times of their own."""
        del step
        return self

    def latest(self, shift: int, mask: int) -> int:
        """0: rows have no times of their own."""
        del shift, mask
        return 0

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """Itself: rows have no times of their own."""
        del shift, mask, last
        return self

    def to_frames(self, peer: int) -> list[Frame]:
        """Return one Arrow IPC stream; raises `MisuseError` for a table that the receiver would refuse."""
        del peer
        try:
            self.table.validate(full=True)
            frame = table_to_frame(self.table)
            check_table(self.table, memoryview(frame).nbytes)
        except (pa.ArrowException, ValueError) as error:
            raise MisuseError(
                f"a table with the columns {', '.join(self.table.column_names)[:200]} cannot be sent to "
                f"another worker: {error}. Cast such a column before: table.set_column(…)"
            ) from error
        return [frame]

    def on_sent(self, peer: int) -> None:
        """Do nothing: frames of a table carry nothing besides the table."""

    def symbols(self, mark: Mark) -> None:
        """Do nothing: a table holds values, not words."""

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """Return the table in one Arrow IPC stream; raises `PeerError` if it is malformed, or claims to be
        much more than it is.
        """
        if len(frames) != 1:
            raise PeerError(f"worker {peer} sent a table as {len(frames)} frames, not as one")
        try:
            return cls(frame_to_table(frames[0]))
        except RequestError as error:
            raise PeerError(f"worker {peer} sent a table that cannot be read: {error}") from error

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Return the frames as they are: a table concerns its dataflow only."""
        del peer
        return frames
