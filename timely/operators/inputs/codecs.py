"""Codecs of inputs: they turn the tables and plain rows of clients into batches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, NamedTuple, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from progress.compiled.arrays import Bools, Int64s
from progress.errors import MisuseError

from ...failure import add_note
from ...limits import NESTING_LEVELS_MAX
from ...thresholds import FOLDED_ROWS_MIN
from ...wire.arrow import as_int64s, number_array
from ...wire.batch import Batch, Records
from ...wire.frames.record_values import unpack_value
from ...wire.nesting import is_too_deep
from ..imported import ImportCodec
from .folded import Folded, Waiting
from .plain_rows import PlainRow

__all__ = [
    "AppendedRows",
    "FoldingCodec",
    "InputCodec",
    "OrderedCodec",
    "PlainCodec",
    "RecordsIn",
    "ReorderingCodec",
    "as_batch",
    "batches_of",
    "counted",
    "in_order",
    "with_diffs",
]

W = TypeVar("W")


class InputCodec(Protocol):
    """Turns what a client sends into a batch. `timely` ships the one for records; `differential` has one for
    tables.
    """

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> Batch:
        """Return the rows of `table`, inserted (`diff` 1) or removed (-1), at the time `epoch_word`; an
        array has one diff for each row.

        Raises `MisuseError` naming the column and row that does not fit.
        """
        ...

    def describe(self) -> str:
        """Return a stable text for the fingerprint."""
        ...

    def as_import(self) -> ImportCodec:
        """Return what reads the same rows from another dataflow that keeps them; raise `MisuseError` if
        none can.
        """
        ...


@runtime_checkable
class OrderedCodec(Protocol):
    """A codec of an input for which the order of calls within an epoch counts."""

    def ordered(self, batch: Batch, order: int, place: int) -> Batch:
        """Return a batch of its own, with its order among calls, and the position of its first row in
        the call.
        """
        ...


@runtime_checkable
class ReorderingCodec(Protocol):
    """A codec whose rows come back from a base: an `OrderedCodec` for tables."""

    def reordered(self, batch: Batch, orders: Int64s, places: Int64s) -> Batch:
        """Return a batch of its own, with the order among calls of each row, and its position."""
        ...


@runtime_checkable
class PlainCodec(Protocol):
    """A codec that takes few plain rows as they are (`plain_rows.py`)."""

    def checked_rows(self, rows: object, diff: int) -> list[PlainRow]:
        """Return the rows that a client has sent. Raise `MisuseError` if they are not plain: our clients send
        other rows as tables.
        """
        ...

    def encode_rows(self, rows: list[PlainRow], diffs: list[int], epoch_word: int) -> Batch:
        """Return what `encode` returns for a table of these checked rows, each row with its own diff. It
        raises for the same reasons, as far as the check has left any.
        """
        ...


@runtime_checkable
class FoldingCodec(Protocol):
    """A codec that can keep many rows in less memory than batches take (`folded.py`)."""

    def encode_folded(self, table: pa.Table, diff: int | Int64s) -> list[Waiting]:
        """Return what `encode` returns, in pieces that enter one by one."""
        ...


class RecordsIn:
    """Records come as one binary column `record` of msgpack values."""

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> Batch:
        """Return a batch of the unpacked values; records can only be added."""
        del epoch_word
        if not isinstance(diff, int) or diff != 1:
            raise MisuseError(
                "an input of records can only be added to: removing is for differential collections"
            )
        types = [str(type_) for type_ in table.schema.types]
        if table.column_names != ["record"] or types[0] not in ("binary", "large_binary"):
            listed = ", ".join(
                f"{name!r}: {type_}" for name, type_ in zip(table.column_names, types, strict=True)
            )
            raise MisuseError(
                f"an input of records takes one binary column 'record', not {listed[:500] or 'none'}"
            )
        return Records([_record(row, packed) for row, packed in enumerate(table.column(0).to_pylist())])

    def describe(self) -> str:
        """Return the name of the form of rows."""
        return "records"

    def as_import(self) -> ImportCodec:
        """Raise MisuseError: no dataflow keeps records."""
        raise MisuseError("an input of records cannot be imported: no dataflow keeps records")


def _record(row: int, packed: bytes) -> object:
    try:
        record = unpack_value(packed)
    except Exception as error:  # msgpack raises whatever a map's key or a nesting leads to
        raise MisuseError(
            f"the column 'record', row {row}, holds what is not msgpack: {type(error).__name__}: {error}"
        ) from error
    # Fast path: a record with fewer bytes than there may be levels is not too deep.
    if len(packed) > NESTING_LEVELS_MAX and is_too_deep(record):
        raise MisuseError(f"the record in row {row} is nested more than {NESTING_LEVELS_MAX} levels deep")
    return record


class AppendedRows(NamedTuple):
    """The rows of an appended table without those whose diff is 0; their diff, of all or of each; and a
    mask of the table's rows that these are, None if they are all.
    """

    rows: pa.Table
    diff: int | Int64s
    mask: Bools | None

    def counted(self) -> AbstractContextManager[None]:
        """Note, at an error about a row, that its number counts these rows only."""
        return nullcontext() if self.mask is None else counted("without those whose diff is 0")


@contextmanager
def counted(how: str) -> Iterator[None]:
    """Note, at an error about a row, and not about a column, how rows are counted."""
    try:
        yield
    except MisuseError as error:
        if _NAMES_A_ROW.search(str(error)):
            add_note(error, f"rows are counted {how}")
        raise


_NAMES_A_ROW: Final = re.compile(r"\brow \d")


def batches_of(codec: InputCodec, name: str, table: pa.Table, diff: int, word: int) -> list[Waiting]:
    """Return the batches, perhaps folded, of one append to the input `name`; with `diff` 0 the column
    `diff` has the diff of each row. Raise `MisuseError` as `encode` does, and for a column `diff` that does
    not fit.
    """
    if diff != 0:
        return _encoded(codec, table, diff, word)
    appended = with_diffs(name, table)
    if not appended.rows.num_rows:
        return []
    with appended.counted():
        return _encoded(codec, appended.rows, appended.diff, word)


def with_diffs(name: str, table: pa.Table) -> AppendedRows:
    """Return the rows of a table that is appended to the input `name`, with the diffs of its column `diff`.
    Raise `MisuseError` if there is no such column, or it does not hold integers.
    """
    position = table.schema.get_field_index("diff")
    if position < 0:
        raise MisuseError(
            f"input {name!r}: a table that is appended has a column 'diff' of integers, 1 for a row that "
            f"comes, -1 for one that goes; this one has {table.column_names}. Where all rows come, write "
            "table.append_column('diff', pa.array([1] * len(table), 'int64'))"
        )
    column = table.column(position)
    if not pa.types.is_integer(column.type) or column.null_count:
        nulls = f", {column.null_count:,} of them null" if column.null_count else ""
        raise MisuseError(
            f"input {name!r}: the column 'diff' holds integers without nulls: 1 for a row that comes, -1 for "
            f"one that goes; this one is {column.type}{nulls}"
        )
    try:
        diffs = as_int64s(column)
    except pa.ArrowInvalid as error:
        raise MisuseError(f"input {name!r}: the column 'diff' holds integers of 64 bits: {error}") from error
    rows = table.remove_column(position)
    mask = None
    if not diffs.all():
        mask = diffs != 0
        try:
            rows = rows.filter(number_array(mask))
        except pa.ArrowException as error:  # not every form of column can be filtered by every release
            raise MisuseError(f"input {name!r}: rows with the diff 0 cannot be left out: {error}") from error
        diffs = diffs[mask]
    is_one = bool(len(diffs) and (diffs == diffs[0]).all())
    return AppendedRows(rows, int(diffs[0]) if is_one else diffs, mask)


def _encoded(codec: InputCodec, table: pa.Table, diff: int | Int64s, word: int) -> list[Waiting]:
    if table.num_rows >= FOLDED_ROWS_MIN and isinstance(codec, FoldingCodec):
        folded = codec.encode_folded(table, diff)
        if not isinstance(folded, list):
            raise _no_batch(codec, "encode_folded", folded)
        return [as_batch(codec, "encode_folded", each) for each in folded]
    return [as_batch(codec, "encode", codec.encode(table, diff, word))]


def as_batch(codec: object, method: str, result: W) -> W:
    """Return `result`, which this method of a codec has returned. Raise `MisuseError` if it is no batch,
    before the input keeps it, and so before anything has changed.
    """
    if not isinstance(getattr(result, "rows", None), int):
        raise _no_batch(codec, method, result)
    return result


def _no_batch(codec: object, method: str, result: object) -> MisuseError:
    what = "a list of batches" if method == "encode_folded" else "a batch"
    return MisuseError(
        f"{type(codec).__qualname__}.{method} returned a {type(result).__name__}: it returns {what}, such as "
        "timely.Records(…)"
    )


def in_order(codec: OrderedCodec, batches: Iterable[Waiting], order: int, place: int) -> list[Waiting]:
    """Return the batches of a call, at most one, with the order and the position of the call."""
    ordered: list[Waiting] = []
    for batch in batches:
        assert not ordered and not isinstance(batch, Folded), "where order counts a call is one batch"
        ordered.append(as_batch(codec, "ordered", codec.ordered(batch, order, place)))
    return ordered
