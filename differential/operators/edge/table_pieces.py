"""Pieces of an output: which rows each of them holds.

    of a collection   its rows at one epoch, sorted and consolidated. They are laid out once, and kept while
                      readers ask for pieces, for at most `READING_SECONDS_MAX` after the last one. Up to
                      `_EPOCHS_MAX` epochs may be read side by side
    of changes        the blocks of the epochs one after another, each in its order

Either order follows from the rows alone. So the pieces add up to the whole, whichever readers ask for them,
and however often. A *share* is the rows with certain hashes: equal rows are in the same share on all workers,
and a reader that takes one share from all workers can sum up the multiplicity of a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.kernels.rows.hashing import partition_by_key_hash
from differential.operators.edge.kept_changes import KeptChanges
from differential.trace.accumulated import Accumulated
from timely.dictionaries import Mark
from timely.limits import PIECE_BYTES_MAX, READING_SECONDS_MAX
from timely.operators.outputs.pieces import Cut, PieceRequest, rows_of_a_piece
from timely.wire.arrow import int64_array

__all__ = ["DIFF", "EPOCH", "TablePieces", "share_of"]

DIFF = "diff"
EPOCH = "epoch"

_BUCKETS = 1 << 12
_LONG_TEXTS = 4
"""A piece that is more than this many times as large as it may be, because of long texts, is cut again."""
_EPOCHS_MAX = 2
"""At most this many epochs have their collections laid out; each takes the memory of the collection."""


@dataclass
class _LaidOut:
    """The rows at one epoch. `is_read`: a reader has got the last piece."""

    collection: Accumulated
    is_negative: bool
    used: float
    is_read: bool = False


class TablePieces:
    """Cuts pieces of one output on one worker.

    Args:
        schema: of its rows.
        bytes_max: of the words of a piece.
        clock: seconds, only their differences count.
    """

    def __init__(
        self,
        schema: Schema,
        bytes_max: int = PIECE_BYTES_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._schema = schema
        self._bytes_max = bytes_max
        self._clock = clock
        self._laid_out: dict[int, _LaidOut] = {}

    def of_collection(self, request: PieceRequest, collect: Callable[[int], Accumulated]) -> Cut:
        """Return a piece of the collection as of `request.stop` - 1, which `collect` returns."""
        epoch = request.stop - 1
        if epoch not in self._laid_out:
            self._make_room()  # before the next one takes as much
            collection = collect(epoch)
            self._laid_out[epoch] = _LaidOut(collection, collection.has_negative(), 0.0)
        laid_out = self._laid_out[epoch]
        rows = laid_out.collection.rows
        cut = self._cut(request, rows, laid_out.collection.between, laid_out.is_negative)
        laid_out.used, laid_out.is_read = self._clock(), request.first < rows == cut.next
        return cut

    def of_changes(self, request: PieceRequest, epochs: Sequence[int], blocks: Sequence[KeptChanges]) -> Cut:
        """Return a piece of the changes of `epochs`, one block for each."""
        ends = np.cumsum([block.rows for block in blocks], dtype=np.int64)
        rows = int(ends[-1]) if len(ends) else 0

        def between(first: int, last: int) -> Int64s:
            parts: list[Int64s] = []
            at = int(np.searchsorted(ends, first, side="right"))
            while at < len(blocks) and ends[at] - blocks[at].rows < last:
                start = int(ends[at]) - blocks[at].rows
                part = blocks[at].between(max(0, first - start), min(last - start, blocks[at].rows))
                part[-2] = epochs[at]
                parts.append(part)
                at += 1
            empty = np.empty((self._schema.width + 2, 0), dtype=np.int64)
            return np.concatenate(parts, axis=1) if parts else empty

        return self._cut(request, rows, between)

    def tidy(self) -> None:
        """Drop collections that no reader has asked for lately."""
        if not self._laid_out:
            return
        now = self._clock()
        self._keep([epoch for epoch, one in self._laid_out.items() if now - one.used <= READING_SECONDS_MAX])

    def symbols(self, mark: Mark) -> None:
        """Show the words of rows that are laid out for the next reader."""
        for one in self._laid_out.values():
            for words in one.collection.blocks():
                mark.words(words[:-2])

    def compared(self) -> object:
        """Return None: what is laid out follows from the rows."""
        return None

    def _make_room(self) -> None:
        """Make room for one more: drop collections that were read to the end, and of the others the ones that
        were not read for longest.
        """
        reading = [epoch for epoch, one in self._laid_out.items() if not one.is_read]
        reading.sort(key=lambda epoch: self._laid_out[epoch].used)
        self._keep(reading[max(0, len(reading) - _EPOCHS_MAX + 1) :])

    def _keep(self, epochs: Sequence[int]) -> None:
        self._laid_out = {epoch: self._laid_out[epoch] for epoch in epochs}

    def _cut(
        self,
        request: PieceRequest,
        rows: int,
        between: Callable[[int, int], Int64s],
        is_negative: bool = False,
    ) -> Cut:
        """Return the rows from `request.first` on: fewer than the words allow if their texts are long."""
        first = min(max(0, request.first), rows)
        length = rows_of_a_piece(self._bytes_max, self._schema.width + 2)
        while True:
            last = min(rows, first + length)
            table = self._table(between(first, last), request)
            if table.nbytes <= _LONG_TEXTS * self._bytes_max or last - first <= 1:
                return Cut(table, last, rows, is_negative)
            length = max(1, (last - first) // 2)

    def _table(self, words: Int64s, request: PieceRequest) -> pa.Table:
        """Return the columns that `request` names, of the rows in its share."""
        if request.parts > 1:
            words = share_of(words, self._schema.width, request.part, request.parts)
        names = [name for name in request.columns if name not in (EPOCH, DIFF)]
        decoded = self._schema.decode(words, SYMBOLS, names)
        columns_by_name = {name: (decoded.schema.field(name), decoded.column(name)) for name in names}
        for name, row in ((EPOCH, -2), (DIFF, -1)):
            columns_by_name[name] = pa.field(name, pa.int64()), pa.chunked_array([int64_array(words[row])])
        fields, columns = zip(*(columns_by_name[name] for name in request.columns), strict=True)
        return pa.Table.from_arrays(list(columns), schema=pa.schema(fields))


def share_of(words: Int64s, width: int, part: int, parts: int) -> Int64s:
    """Return the rows whose first `width` words hash to share `part` of `parts`, in their order."""
    starts = np.array([np.iinfo(np.int64).min], dtype=np.int64)
    owners = (np.arange(_BUCKETS, dtype=np.int64) * parts // _BUCKETS).reshape(1, _BUCKETS)
    grouped, bounds = partition_by_key_hash(np.ascontiguousarray(words), width, parts, starts, owners)
    return np.ascontiguousarray(grouped[:, bounds[part] : bounds[part + 1]])
