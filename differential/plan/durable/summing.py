"""The rows of an input to which rows are added, and from which they are removed: each is summed up.

Where rows keep their epochs, those of one epoch are summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from timely.durable.bases.rows_form import BUCKETS, BaseRows, BucketRange
from timely.limits import FOLD_LOOSE_ROWS_MAX
from timely.wire.arrow import int64_array, int64s_of
from timely.wire.batch import Batch

from ...columns.column_types import Int64s
from ...columns.rows import PlainWords, Row
from ...columns.symbols.arrow_values import with_values
from ...columns.update_batch import parts_of
from ...columns.worker_symbols import SYMBOLS
from ...kernels.rows.hashing import hashes_of
from ...kernels.rows.sort import sort_parts
from ...operators.edge.table_in import of_base
from ...operators.edge.table_pieces import DIFF, EPOCH
from ..expressions import schema_of
from .views import Views

__all__ = ["SummedRows", "WordRows", "summed_rows"]


def summed_rows(details: Sequence[object], buckets: BucketRange) -> SummedRows:
    """Return no rows of an input with these details; see `rules.py`."""
    return SummedRows(details, buckets)


class WordRows:
    """Rows as words, with the number of their epoch in place of the time.

    Args:
        details: name of the input, columns, keys, plan of its views, their kinds, and whether these may drop
            rows.
        buckets: rows of other buckets are left out.
    """

    def __init__(self, details: Sequence[object], buckets: BucketRange) -> None:
        name, columns, keys, packed, kinds, may_drop = cast(
            "tuple[str, object, Sequence[str], bytes, Sequence[str], bool]", details
        )
        self.name = name
        self.schema = schema_of(columns)
        self.keys = tuple(keys)
        self.views = Views(name, packed, kinds, may_drop) if packed else None
        self._buckets = buckets
        hashed = self.keys or self.schema.names
        self._hashed = np.array([word for key in hashed for word in self.schema.words_of(key)], np.int64)
        self._plain = PlainWords(self.schema, SYMBOLS)
        self._summed: list[Int64s] = []
        self._loose: list[Int64s] = []
        self._summed_rows = self._loose_rows = 0

    @property
    def rows(self) -> int:
        """See `RowsForm`."""
        return self._summed_rows + self._loose_rows

    def words(self) -> Iterator[Int64s]:
        """See `RowsForm`."""
        yield from self._summed
        yield from self._loose

    def take(self, epoch: int, batches: Sequence[Batch], order: int = 0, place: int | None = None) -> None:
        """See `RowsForm`."""
        for batch in batches:
            for words in parts_of(batch):
                dated = words.copy()
                dated[-2] = epoch
                self._add(dated)

    def take_plain(self, epoch: int, rows: Sequence[Sequence[object]], diffs: Sequence[int]) -> None:
        """See `RowsForm`."""
        if rows:
            plain = cast("list[Row]", [tuple(row) for row in rows])
            self._add(self._plain.of(plain, [epoch] * len(plain), list(diffs)))

    def take_table(self, table: pa.Table) -> None:
        """See `RowsForm`."""
        width = self.schema.width
        words: Int64s = np.empty((width + 2, table.num_rows), np.int64)
        self.schema.encode_into(words, table.select(self.schema.names), SYMBOLS, self.name)
        words[width] = int64s_of(table.column(len(self.schema)))
        words[width + 1] = int64s_of(table.column(len(self.schema) + 1))
        self._add(words)

    def folded(self, ranges: Sequence[BucketRange], summed: int, first: int) -> Iterator[BaseRows]:
        """See `RowsForm`."""
        words = self.as_of(self.taken(), summed, first)
        if words.shape[1] == 0:
            return
        buckets = self.buckets_of(words)
        for each in ranges:
            own = words[:, (buckets >= each.first) & (buckets < each.stop)]
            if own.shape[1]:
                own = np.ascontiguousarray(own[:, np.argsort(own[-2], kind="stable")])
                yield BaseRows(each, self.table(own))

    def empty(self) -> pa.Table:
        """See `RowsForm`."""
        return self.table(np.empty((self.columns, 0), np.int64))

    def values(self, table: pa.Table) -> pa.Table:
        """See `RowsForm`."""
        return with_values(table)

    def taken(self) -> Int64s:
        """Return all rows that were taken, sorted and consolidated by row and epoch."""
        self._sum_up()
        return self._summed[0] if self._summed else np.empty((self.columns, 0), np.int64)

    @property
    def columns(self) -> int:
        """The words of a row here, epoch and diff included."""
        return self.schema.width + 2

    def as_of(self, words: Int64s, summed: int, first: int) -> Int64s:
        """Return the rows, where those up to the epoch `summed` are one change."""
        raise NotImplementedError

    def table(self, words: Int64s) -> pa.Table:
        """Return rows as a base has them."""
        table = self.schema.decode(words, SYMBOLS)
        table = of_base(table)
        table = table.append_column(pa.field(EPOCH, pa.int64(), nullable=False), int64_array(words[-2]))
        return table.append_column(pa.field(DIFF, pa.int64(), nullable=False), int64_array(words[-1]))

    def buckets_of(self, words: Int64s) -> Int64s:
        """Return the bucket of each row."""
        return hashes_of(words, self._hashed) & (BUCKETS - 1)

    def add(self, words: Int64s) -> None:
        """Take rows of any bucket; the array belongs to this object then."""
        self._add(words)

    def _add(self, words: Int64s) -> None:
        first, stop = self._buckets
        if (first, stop) != (0, BUCKETS) and words.shape[1]:
            buckets = self.buckets_of(words)
            words = np.ascontiguousarray(words[:, (buckets >= first) & (buckets < stop)])
        if words.shape[1]:
            self._loose.append(words)
            self._loose_rows += words.shape[1]
            if self._loose_rows >= max(FOLD_LOOSE_ROWS_MAX, self._summed_rows):
                self._sum_up()

    def _sum_up(self) -> None:
        parts, self._loose, self._loose_rows = [*self._summed, *self._loose], [], 0
        if parts:
            words = sort_parts(parts)
            self._summed, self._summed_rows = [words], words.shape[1]


class SummedRows(WordRows):
    """Rows that are inserted and removed."""

    def as_of(self, words: Int64s, summed: int, first: int) -> Int64s:
        """See `WordRows`."""
        is_old = words[-2] <= summed
        if not is_old.any():
            return words
        moved = words.copy()
        if self.views is None:
            moved[-2, is_old] = summed
            return sort_parts([moved])
        moved[-2] = self.views.epochs(words, summed, first)
        moved = sort_parts([moved])
        if self.views.may_drop and moved.shape[1]:
            is_needed = self.views.needed(moved, summed) | (moved[-2] > summed)
            moved = np.ascontiguousarray(moved[:, is_needed])
        return moved
