"""Collections at the edge of stages written by hand: rows become records, and records become rows.

A record is a pair (row, diff): a tuple of values in the order of the columns, and how often the row comes, or
goes if the number is below 0. It travels at the time of the change, in loops too. Both vertices keep nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Int64s
from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch, parts_of
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SchemaError, shown
from differential.operators.edge.kept_changes import by_time
from progress.times.anchor import Rebase
from timely.counted import counted
from timely.dictionaries import Mark
from timely.operators.inputs.codecs import with_diffs
from timely.operators.vertex import Vertex
from timely.wire.batch import Batch, Records
from timely.wire.frames.table_batch import TableBatch

__all__ = ["IntoRecordsVertex", "OutOfRecordsVertex"]

_DIFF_BITS: Final = 63


class _EdgeVertex(Vertex):
    """Keeps nothing from one activation to the next."""

    word_times: ClassVar[bool] = True
    keeps: ClassVar[str] = "nothing"

    def __init__(self, schema: Schema, site: str) -> None:
        self._schema = schema
        self._site = site

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it keeps nothing."""

    def rebase(self, by: Rebase) -> None:
        """Do nothing: it keeps no time."""


class IntoRecordsVertex(_EdgeVertex):
    """Sends each change of a collection as a record (row, diff), at its own time."""

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Send the changes of each time as one message, in the order in which they have come in."""
        del port
        for _, batch in messages:
            for part in parts_of(batch):
                if part.shape[1]:
                    for time, words in by_time(part):
                        rows = self._rows(words)
                        self.send(0, Records(list(zip(rows, words[-1].tolist(), strict=True))), time)

    def _rows(self, words: Int64s) -> list[Row]:
        try:
            return decode_rows(self._schema, words, SYMBOLS)
        except (OverflowError, ValueError) as error:
            raise SchemaError(
                f"stream() ({self._site}): a row of ({self._schema}) has a date or a timestamp of a year "
                f"before 1 or beyond 9999, which Python does not have ({error}). Drop such rows by filter(…)"
            ) from error


class OutOfRecordsVertex(_EdgeVertex):
    """Sends records (row, diff) as changes of a collection with the columns of `schema`."""

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Send the rows of each message at its time."""
        del port
        for word, batch in messages:
            if isinstance(batch, TableBatch):
                self._send_table(batch.table, word)
                continue
            if not isinstance(batch, Records):
                raise SchemaError(
                    f"{self._call()} takes records (row, diff), and got a {type(batch).__name__}. What a "
                    "stage sends as batches of updates becomes a collection by dd.from_stream(…)"
                )
            rows, diffs = self._parted(batch.records)
            words = np.empty((self._schema.width + 2, len(rows)), np.int64)
            words[:-2] = self._encoded(rows)
            words[-2] = word
            words[-1] = diffs
            if not all(diffs):
                words = np.ascontiguousarray(words[:, words[-1] != 0])
            self.send(0, UpdateBatch(words, self._schema.symbol_words), word)

    def _send_table(self, table: pa.Table, word: int) -> None:
        """Send the rows of a table, which has the columns of the schema, and `diff`."""
        appended = with_diffs(self._call(), table)
        words = np.empty((self._schema.width + 2, appended.rows.num_rows), np.int64)
        self._schema.encode_into(words, appended.rows, SYMBOLS, self._call())
        words[-2] = word
        words[-1] = appended.diff
        self.send(0, UpdateBatch(words, self._schema.symbol_words), word)

    def _parted(self, records: list[object]) -> tuple[Sequence[Row], Sequence[int]]:
        """Return rows and diffs. Raise SchemaError about the first record that is no such pair."""
        length = len(self._schema)
        if set(map(type, records)) <= _SEQUENCES and set(map(len, cast("list[Row]", records))) == {2}:
            rows, diffs = zip(*cast("list[tuple[Row, int]]", records), strict=True)
            if (
                set(map(type, rows)) <= _SEQUENCES
                and set(map(type, diffs)) == {int}
                and set(map(len, rows)) == {length}
                and max(diffs).bit_length() <= _DIFF_BITS
                and min(diffs).bit_length() <= _DIFF_BITS
            ):
                return rows, diffs
        for record in records:
            self._check(record)
        pairs = [cast("tuple[Row, int]", record) for record in records]  # of classes beneath tuple and list
        return [tuple(row) for row, _ in pairs], [int(diff) for _, diff in pairs]

    def _check(self, record: object) -> None:
        if (
            not isinstance(record, (tuple, list))
            or len(record) != 2
            or not isinstance(record[0], (tuple, list))
        ):
            raise SchemaError(
                f"{self._call()} takes records (row, diff), where a row is a tuple of {self._columns()}, and "
                f"got {shown(record)}. {self._how_to_write(record)}"
            )
        row, diff = record
        if not isinstance(diff, int) or isinstance(diff, bool) or diff.bit_length() > _DIFF_BITS:
            raise SchemaError(
                f"{self._call()}: the diff of a record (row, diff) is a whole number of 64 bits, 1 for a row "
                f"that comes, -1 for one that goes, and not {shown(diff)} as in {shown(record)}"
            )
        if len(row) != len(self._schema):
            raise SchemaError(
                f"{self._call()}: the row of {shown(record)} has {counted(len(row), 'value')}, where a row "
                f"is a tuple of {self._columns()}"
            )

    def _how_to_write(self, record: object) -> str:
        if isinstance(record, dict):
            names = ", ".join(f"record[{name!r}]" for name in self._schema.names)
            return f"Write stream.map(lambda record: (({names},), 1))"
        if isinstance(record, (tuple, list)) and len(record) == len(self._schema):
            return "Where each record is a row that comes, write stream.map(lambda row: (row, 1))"
        return "Write stream.map(lambda record: ((…,), 1)), with a value for each column"

    def _encoded(self, rows: Sequence[Row]) -> Int64s:
        try:
            return encode_rows(self._schema, rows, SYMBOLS, "")
        except SchemaError:
            for row in rows:
                try:
                    encode_rows(self._schema, [row], SYMBOLS, "")
                except SchemaError as error:
                    raise SchemaError(
                        f"{self._call()}: the row {shown(row)} does not fit ({self._schema}): {error}"
                    ) from None
            raise

    def _call(self) -> str:
        return f"dd.collection ({self._site})"

    def _columns(self) -> str:
        return f"{counted(len(self._schema), 'value')} ({self._schema})"


_SEQUENCES: Final = frozenset({tuple, list})
