"""The entries of an upsert input: the last one of each key counts.

A base has the value of each key, at one epoch; it has nothing of keys that were deleted. Where entries keep
their epochs, it has the last entry of each key in each epoch, with its order, because more entries of that
epoch may follow in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from timely.durable.bases.rows_form import BucketRange
from timely.wire.arrow import int64_array, int64s_of
from timely.wire.batch import Batch

from ...columns.column_types import Int64s
from ...columns.schema import Column, Schema
from ...columns.update_batch import words_of
from ...columns.worker_symbols import SYMBOLS
from ...operators.edge.table_in import of_base
from ...operators.edge.table_pieces import DIFF, EPOCH
from ...operators.timed.keyed_io import KeyedTableIn
from .summing import WordRows

__all__ = ["LatestRows", "latest_rows"]

_ORDER_COLUMNS = ("order", "place")


def latest_rows(details: Sequence[object], buckets: BucketRange) -> LatestRows:
    """Return no rows of an upsert input with these details; see `rules.py`."""
    return LatestRows(details, buckets)


class LatestRows(WordRows):
    """Entries, laid out so that sorting puts them in their order: key, epoch, order (2 words), whether there
    is a value, value; then 0 and 1 in place of epoch and diff.
    """

    def __init__(self, details: Sequence[object], buckets: BucketRange) -> None:
        super().__init__(details, buckets)
        self._codec = KeyedTableIn(self.schema, self.name, self.keys)
        laid_out = self.schema.reordered(self.keys)
        self._kw = laid_out.picked(self.keys).width
        self._hashed = np.arange(self._kw)
        """Where the words of the entry's columns go."""
        self._positions = [
            word if word < self._kw else word + 4
            for column in self.schema
            for word in laid_out.words_of(column.name)
        ]

    @property
    def columns(self) -> int:
        """See `WordRows`."""
        return self.schema.width + 6

    def take(self, epoch: int, batches: Sequence[Batch], order: int = 0, place: int | None = None) -> None:
        """See `RowsForm`."""
        for batch in batches:
            ordered = batch if place is None else self._codec.ordered(batch, order, place)
            self._take_entries(words_of(ordered), epoch)

    def take_plain(self, epoch: int, rows: Sequence[Sequence[object]], diffs: Sequence[int]) -> None:
        """Raise: entries always have an order, and plain rows have none."""
        raise AssertionError("an upsert input logs no plain rows")

    def take_table(self, table: pa.Table) -> None:
        """See `RowsForm`."""
        count = len(self.schema)
        epochs, diffs, orders, places = (int64s_of(table.column(count + at)) for at in range(4))
        entries = self._codec.encode(table.select(self.schema.names), diffs, 0)
        self._take_entries(self._codec.reordered(entries, orders, places).words, epochs)

    def _take_entries(self, entries: Int64s, epochs: int | Int64s) -> None:
        width, kw = self.schema.width, self._kw
        words: Int64s = np.zeros((self.columns, entries.shape[1]), np.int64)
        words[self._positions] = entries[:width]
        words[kw] = epochs
        words[kw + 1 : kw + 3] = entries[width + 1 : width + 3]
        words[kw + 3] = entries[width]
        words[-1] = 1
        self.add(words)

    def as_of(self, words: Int64s, summed: int, first: int) -> Int64s:
        """See `WordRows`. The result has its epochs in place of the time, too."""
        if words.shape[1] == 0:
            return words
        kw = self._kw
        ends = np.maximum(words[kw], summed)
        is_last = np.ones(words.shape[1], np.bool_)
        is_last[:-1] = (words[:kw, 1:] != words[:kw, :-1]).any(axis=0) | (ends[1:] != ends[:-1])
        is_last &= (words[kw] > summed) | (words[kw + 3] != 0)
        last = np.ascontiguousarray(words[:, is_last])
        last[-2] = np.maximum(last[kw], summed)
        return last

    def table(self, words: Int64s) -> pa.Table:
        """See `WordRows`."""
        kw, width = self._kw, self.schema.width
        entries = np.ascontiguousarray(words[[*self._positions, -2, -1]])
        has_value = words[kw + 3] != 0
        order = np.argsort(~has_value, kind="stable")  # values in front of deletions, which have only keys
        values = self.schema.decode(np.ascontiguousarray(entries[:, has_value]), SYMBOLS)
        gone = np.ascontiguousarray(entries[:, ~has_value])
        nullable = Schema(
            tuple(Column(c.name, c.type.or_null(c.name not in self.keys)) for c in self.schema)
        ).to_arrow()
        parts = [pa.Table.from_arrays(values.columns, schema=nullable)]
        if gone.shape[1]:
            keys = self.schema.decode(gone, SYMBOLS, self.keys)
            arrays = [
                keys.column(field.name) if field.name in self.keys else pa.nulls(gone.shape[1], field.type)
                for field in nullable
            ]
            parts.append(pa.Table.from_arrays(arrays, schema=nullable))
        table = of_base(pa.concat_tables(parts))
        numbers = (words[-2], np.where(has_value, 1, -1), words[kw + 1], words[kw + 2])
        for name, column in zip((EPOCH, DIFF, *_ORDER_COLUMNS), numbers, strict=True):
            table = _with_numbers(table, name, column[order])
        assert entries.shape[0] == width + 2
        back = np.argsort(order, kind="stable")
        return cast("pa.Table", table.take(int64_array(back))) if gone.shape[1] else table


def _with_numbers(table: pa.Table, name: str, numbers: Int64s) -> pa.Table:
    free = name
    while free in table.column_names:  # `order` and `place` may be columns of the input
        free += "_"
    return table.append_column(pa.field(free, pa.int64(), nullable=False), int64_array(numbers))
