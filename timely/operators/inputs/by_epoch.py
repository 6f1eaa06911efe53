"""One append whose rows belong to several epochs: a column of the table has the epoch of each row.

A thousand small epochs that come one by one cost a round trip and a table each. As one table they are encoded
together, and divided afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from progress.compiled.arrays import Bools, Int64s
from progress.errors import MisuseError

from ...limits import APPEND_EPOCHS_MAX
from ...thresholds import FOLDED_ROWS_MIN
from ...wire.arrow import as_int64s, int64_array
from ...wire.batch import Batch
from .codecs import AppendedRows, FoldingCodec, InputCodec, batches_of, counted, with_diffs
from .folded import Waiting

__all__ = ["ByEpoch", "EpochsCodec", "batches_by_epoch", "divided"]

_PIECES_MAX: Final = 64
"""A table in more pieces than this is copied into one."""


@runtime_checkable
class EpochsCodec(Protocol):
    """A codec that encodes rows of several epochs at once."""

    def encode_epochs(
        self, table: pa.Table, diff: int | Int64s, epochs: ByEpoch, words: Sequence[int]
    ) -> Sequence[Batch]:
        """Return what `encode` returns for the rows of each epoch; `table` is that of `epochs` without
        diffs.
        """
        ...


class ByEpoch(NamedTuple):
    """A table, without the column of epochs unless the input has that column; the epochs, ascending; the
    order of its rows by epoch, None if they are in it; and the number of rows up to each epoch's last, in
    that order.
    """

    table: pa.Table
    epochs: list[int]
    order: Int64s | None
    stops: list[int]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield where the rows of each epoch begin and end, in order."""
        return pairwise([0, *self.stops])

    def part(self, begin: int, end: int) -> ByEpoch:
        """Return the epochs from number `begin` to `end`. Requires: the rows are in order."""
        assert self.order is None
        start = self.stops[begin - 1] if begin else 0
        stops = [stop - start for stop in self.stops[begin:end]]
        return ByEpoch(self.table.slice(start, stops[-1]), self.epochs[begin:end], None, stops)


def divided(codec: InputCodec, name: str, table: pa.Table, column: str) -> ByEpoch:
    """Return the rows for the input `name` by the epochs in `column`. Raise `MisuseError` if these are
    no epochs.
    """
    at = table.schema.get_field_index(column)
    if at < 0:
        raise MisuseError(
            f"input {name!r}: append(epoch={column!r}) takes the epoch of each row from that column; "
            f"this table has {table.column_names}"
        )
    table = _in_few_pieces(table)
    numbers = table.column(at)
    if not pa.types.is_integer(numbers.type) or numbers.null_count:
        raise MisuseError(
            f"input {name!r}: epochs are whole numbers without nulls; the column {column!r} is {numbers.type}"
            + (f", {numbers.null_count:,} of them null" if numbers.null_count else "")
            + _numbered(numbers.type, column)
        )
    try:
        epochs = as_int64s(numbers)
    except pa.ArrowInvalid as error:
        raise MisuseError(
            f"input {name!r}: the epochs in {column!r} are numbers of 64 bits: {error}"
        ) from error
    order = None
    if len(epochs) > 1 and (epochs[1:] < epochs[:-1]).any():
        order = np.argsort(epochs, kind="stable")
        epochs = epochs[order]
    different, starts = np.unique(epochs, return_index=True)
    if len(different) > APPEND_EPOCHS_MAX:
        raise MisuseError(
            f"input {name!r}: one append has rows of {APPEND_EPOCHS_MAX:,} epochs at most, this one of "
            f"{len(different):,}: append it in several"
        )
    schema = getattr(codec, "arrow_schema", None)
    is_of_input = schema is not None and column in schema().names
    stops = [*starts[1:].tolist(), len(epochs)] if len(different) else []
    return ByEpoch(table if is_of_input else table.remove_column(at), different.tolist(), order, stops)


def _in_few_pieces(table: pa.Table) -> pa.Table:
    """Return the same rows in few pieces: every operation on a table costs calls for each of its pieces,
    and a table may have one for each epoch.
    """
    few = max(column.num_chunks for column in table.columns) <= _PIECES_MAX
    return table if few else _in_one_piece(table)


def _in_one_piece(table: pa.Table) -> pa.Table:
    """Return the same rows in one piece, or as they are if Arrow cannot join pieces of such columns."""
    try:
        return table.combine_chunks()
    except pa.ArrowException:
        return table


def _numbered(kind: pa.DataType, column: str) -> str:
    """Return a sentence that says how to number times, for behind a point; an empty text for other types."""
    if not pa.types.is_temporal(kind):
        return ""
    return (
        f". Number them, by days for example: pyarrow.compute.days_between(first, table[{column!r}]), first "
        "of the same type; or by seconds since one"
    )


def batches_by_epoch(
    codec: InputCodec, name: str, epochs: ByEpoch, words: Sequence[int], diff: int
) -> list[list[Waiting]]:
    """Return the batches of each epoch, at its time word of `words`; otherwise as `batches_of`."""
    if not isinstance(codec, EpochsCodec):
        return _one_by_one(codec, name, _in_order(name, epochs), words, diff)
    lengths = [stop - start for start, stop in epochs.ranges()]
    if not isinstance(codec, FoldingCodec) or max(lengths, default=0) < FOLDED_ROWS_MIN:
        return _together(codec, name, epochs, words, diff)
    # Large epochs are folded one by one; between them there may still be very many small ones.
    epochs = _in_order(name, epochs)
    batches: list[list[Waiting]] = []
    for is_large, group in groupby(lengths, lambda rows: rows >= FOLDED_ROWS_MIN):
        begin = len(batches)
        end = begin + len(list(group))
        part = epochs.part(begin, end)
        if is_large:
            batches += _one_by_one(codec, name, part, words[begin:end], diff)
            continue
        with counted(f"among those of epochs {part.epochs[0]} to {part.epochs[-1]}, in this order"):
            batches += _together(codec, name, part, words[begin:end], diff)
    return batches


def _together(
    codec: EpochsCodec, name: str, epochs: ByEpoch, words: Sequence[int], diff: int
) -> list[list[Waiting]]:
    """Encode all rows at once."""
    appended = AppendedRows(epochs.table, diff, None) if diff else with_diffs(name, epochs.table)
    if not appended.rows.num_rows:
        return [[] for _ in words]
    if appended.mask is not None:
        epochs = _left_of(epochs, appended.mask)
    with appended.counted():
        batches = codec.encode_epochs(appended.rows, appended.diff, epochs, words)
    return [[batch] if batch.rows else [] for batch in batches]


def _left_of(epochs: ByEpoch, mask: Bools) -> ByEpoch:
    """Return the positions of the rows of `mask`, when only these are left; some epochs may have none. The
    table does not change.
    """
    order = epochs.order
    in_order = mask if order is None else mask[order]
    if order is not None:
        order = (np.cumsum(mask) - 1)[order[in_order]]
    stops = np.cumsum(in_order)[np.array(epochs.stops) - 1]
    return epochs._replace(order=order, stops=stops.tolist())


def _one_by_one(
    codec: InputCodec, name: str, epochs: ByEpoch, words: Sequence[int], diff: int
) -> list[list[Waiting]]:
    """Encode each epoch by itself. Requires: rows are in the order of their epochs."""
    batches: list[list[Waiting]] = []
    for epoch, (start, stop), word in zip(epochs.epochs, epochs.ranges(), words, strict=True):
        with counted(f"among those of epoch {epoch}"):
            batches.append(batches_of(codec, name, epochs.table.slice(start, stop - start), diff, word))
    return batches


def _in_order(name: str, epochs: ByEpoch) -> ByEpoch:
    """Return the same with rows in the order of their epochs, in one piece: each slice looks through all
    pieces before it.
    """
    table = epochs.table
    if epochs.order is not None:
        try:
            table = table.take(int64_array(epochs.order))
        except pa.ArrowException as error:  # not every form of column can be taken from by every release
            raise MisuseError(
                f"input {name!r}: the rows cannot be put in the order of their epochs: {error}. Give them in "
                "that order, or columns of another type"
            ) from error
    return epochs._replace(table=_in_one_piece(table), order=None)
