"""One append whose rows belong to several epochs: a column of the table says for each row to which.

A thousand small epochs cost a way there and back, and a table, each if they come one by one. As one table
they are encoded together, and divided afterwards.
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
from ...wire.arrow import as_int64s, int64_array
from ...wire.batch import Batch
from .codecs import FOLDED_ROWS_MIN, Added, FoldingCodec, InputCodec, batches_of, counted, with_diffs
from .folded import Waiting

__all__ = ["ByEpoch", "EpochsCodec", "batches_by_epoch", "divided"]

_PIECES_MAX: Final = 64
"""A table in more of them is copied into one."""


@runtime_checkable
class EpochsCodec(Protocol):
    """A codec that encodes rows of several epochs at once."""

    def encode_epochs(
        self, table: pa.Table, diff: int | Int64s, given: ByEpoch, words: Sequence[int]
    ) -> Sequence[Batch]:
        """As `encode` of the rows of each of these epochs, `table` being that of `given` without diffs."""
        ...


class ByEpoch(NamedTuple):
    """A table, without what says its epochs unless that is one of the input's columns; the epochs, ascending;
    the order of its rows by epoch, None if they are in it; and how many rows there are up to each epoch's
    last, in that order.
    """

    table: pa.Table
    epochs: list[int]
    order: Int64s | None
    stops: list[int]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Of each epoch from where to where its rows are, in order."""
        return pairwise([0, *self.stops])

    def part(self, begin: int, end: int) -> ByEpoch:
        """Those of the epochs at these places. Requires: the rows are in order."""
        assert self.order is None
        start = self.stops[begin - 1] if begin else 0
        stops = [stop - start for stop in self.stops[begin:end]]
        return ByEpoch(self.table.slice(start, stops[-1]), self.epochs[begin:end], None, stops)


def divided(codec: InputCodec, name: str, table: pa.Table, column: str) -> ByEpoch:
    """The rows for the input `name` by the epochs in `column`. Raises `MisuseError` if these are none."""
    at = table.schema.get_field_index(column)
    if at < 0:
        raise MisuseError(
            f"input {name!r}: append(epoch={column!r}) takes the epoch of each row from that column; "
            f"this table has {table.column_names}"
        )
    table = _in_few_pieces(table)
    said = table.column(at)
    if not pa.types.is_integer(said.type) or said.null_count:
        raise MisuseError(
            f"input {name!r}: epochs are whole numbers without nulls; the column {column!r} is {said.type}"
            + (f", {said.null_count:,} of them null" if said.null_count else "")
            + _numbered(said.type, column)
        )
    try:
        epochs = as_int64s(said)
    except pa.ArrowInvalid as error:
        raise MisuseError(
            f"input {name!r}: the epochs in {column!r} are numbers of 64 bits: {error}"
        ) from error
    order = None
    if len(epochs) > 1 and (epochs[1:] < epochs[:-1]).any():
        order = np.argsort(epochs, kind="stable")
        epochs = epochs[order]
    found, starts = np.unique(epochs, return_index=True)
    if len(found) > APPEND_EPOCHS_MAX:
        raise MisuseError(
            f"input {name!r}: one append has rows of {APPEND_EPOCHS_MAX:,} epochs at most, this one of "
            f"{len(found):,}: append it in several"
        )
    schema = getattr(codec, "arrow_schema", None)
    is_kept = schema is not None and column in schema().names
    stops = [*starts[1:].tolist(), len(epochs)] if len(found) else []
    return ByEpoch(table if is_kept else table.remove_column(at), found.tolist(), order, stops)


def _in_few_pieces(table: pa.Table) -> pa.Table:
    """The same rows: a table that was put together from one of each epoch costs calls for each of these in
    all that is done with it.
    """
    few = max(column.num_chunks for column in table.columns) <= _PIECES_MAX
    return table if few else _in_one_piece(table)


def _in_one_piece(table: pa.Table) -> pa.Table:
    """The same rows in one piece, or as they are: pieces of some forms of columns cannot be put together."""
    try:
        return table.combine_chunks()
    except pa.ArrowException:
        return table


def _numbered(kind: pa.DataType, column: str) -> str:
    """How times are numbered, as a sentence behind a point; nothing for what is no time."""
    if not pa.types.is_temporal(kind):
        return ""
    return (
        f". Number them, by days for example: pyarrow.compute.days_between(first, table[{column!r}]), first "
        "of the same type; or by seconds since one"
    )


def batches_by_epoch(
    codec: InputCodec, name: str, given: ByEpoch, words: Sequence[int], diff: int
) -> list[list[Waiting]]:
    """The batches of each epoch, whose time word is the one of `words` at its place; otherwise as
    `batches_of`.
    """
    if not isinstance(codec, EpochsCodec):
        return _one_by_one(codec, name, _in_order(name, given), words, diff)
    lengths = [stop - start for start, stop in given.ranges()]
    if not isinstance(codec, FoldingCodec) or max(lengths, default=0) < FOLDED_ROWS_MIN:
        return _together(codec, name, given, words, diff)
    # Between epochs of so many rows that they wait folded there may still be very many others.
    given = _in_order(name, given)
    made: list[list[Waiting]] = []
    for is_large, group in groupby(lengths, lambda rows: rows >= FOLDED_ROWS_MIN):
        begin = len(made)
        end = begin + len(list(group))
        part = given.part(begin, end)
        if is_large:
            made += _one_by_one(codec, name, part, words[begin:end], diff)
            continue
        with counted(f"among those of epochs {part.epochs[0]} to {part.epochs[-1]}, in this order"):
            made += _together(codec, name, part, words[begin:end], diff)
    return made


def _together(
    codec: EpochsCodec, name: str, given: ByEpoch, words: Sequence[int], diff: int
) -> list[list[Waiting]]:
    """All are encoded at once."""
    added = Added(given.table, diff, None) if diff else with_diffs(name, given.table)
    if not added.rows.num_rows:
        return [[] for _ in words]
    if added.kept is not None:
        given = _left_of(given, added.kept)
    with added.counted():
        batches = codec.encode_epochs(added.rows, added.diff, given, words)
    return [[batch] if batch.rows else [] for batch in batches]


def _left_of(given: ByEpoch, kept: Bools) -> ByEpoch:
    """Where the rows are if only those are left that are `kept`; of some epochs none may be. The table is as
    it was.
    """
    order = given.order
    in_order = kept if order is None else kept[order]
    if order is not None:
        order = (np.cumsum(kept) - 1)[order[in_order]]
    stops = np.cumsum(in_order)[np.array(given.stops) - 1]
    return given._replace(order=order, stops=stops.tolist())


def _one_by_one(
    codec: InputCodec, name: str, given: ByEpoch, words: Sequence[int], diff: int
) -> list[list[Waiting]]:
    """Each epoch is encoded by itself; rows are in the order of their epochs."""
    made: list[list[Waiting]] = []
    for epoch, (start, stop), word in zip(given.epochs, given.ranges(), words, strict=True):
        with counted(f"among those of epoch {epoch}"):
            made.append(batches_of(codec, name, given.table.slice(start, stop - start), diff, word))
    return made


def _in_order(name: str, given: ByEpoch) -> ByEpoch:
    """The same, rows in the order of their epochs. In one piece: each slice looks through all pieces before
    it.
    """
    table = given.table
    if given.order is not None:
        try:
            table = table.take(int64_array(given.order))
        except pa.ArrowException as error:  # not every form of column can be taken from by every release
            raise MisuseError(
                f"input {name!r}: the rows cannot be put in the order of their epochs: {error}. Give them in "
                "that order, or columns of another type"
            ) from error
    return given._replace(table=_in_one_piece(table), order=None)
