"""One append whose rows belong to several epochs: a column of the table says for each row to which.

A thousand small epochs cost a way there and back, and a table, each if they come one by one. As one table
they are encoded together, and divided afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from progress.arrays import Int64s
from progress.errors import MisuseError

from ...failure import add_note
from ...limits import APPEND_EPOCHS_MAX
from ...wire.arrow import as_int64s, int64_array
from ...wire.batch import Batch
from .codecs import FOLDED_ROWS_MIN, InputCodec, batches_of, with_diffs
from .folded import Waiting

__all__ = ["ByEpoch", "EpochsCodec", "batches_by_epoch", "divided"]


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


def divided(codec: InputCodec, name: str, table: pa.Table, column: str) -> ByEpoch:
    """The rows for the input `name` by the epochs in `column`. Raises `MisuseError` if these are none."""
    at = table.schema.get_field_index(column)
    if at < 0:
        raise MisuseError(
            f"input {name!r}: append(epoch={column!r}) takes the epoch of each row from that column; "
            f"this table has {table.column_names}"
        )
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
    if isinstance(codec, EpochsCodec) and not _is_any_large(given):
        rows, diffs = (given.table, diff) if diff else with_diffs(name, given.table)
        if isinstance(diffs, int) or diffs.all():
            return [[batch] for batch in codec.encode_epochs(rows, diffs, given, words)]
    made: list[list[Waiting]] = []
    table = _in_order(name, given)
    for epoch, (start, stop), word in zip(given.epochs, given.ranges(), words, strict=True):
        try:
            made.append(batches_of(codec, name, table.slice(start, stop - start), diff, word))
        except MisuseError as error:
            add_note(error, f"rows are counted among those of epoch {epoch}")
            raise
    return made


def _in_order(name: str, given: ByEpoch) -> pa.Table:
    """The rows in the order of their epochs. In one piece: each slice looks through all pieces before it."""
    table = given.table
    try:
        if given.order is not None:
            table = table.take(int64_array(given.order))
        return table.combine_chunks()
    except pa.ArrowException as error:  # not every form of column can be taken from by every release
        raise MisuseError(
            f"input {name!r}: the rows cannot be put in the order of their epochs: {error}. Give them in "
            "that order, or columns of another type"
        ) from error


def _is_any_large(given: ByEpoch) -> bool:
    """Whether the rows of an epoch are so many that they wait folded."""
    return any(stop - start >= FOLDED_ROWS_MIN for start, stop in given.ranges())
