"""The rows of all inputs, laid out by epoch, and sent to the workers chunk by chunk.

A job that goes on behind what an earlier one has committed needs no epoch before that by itself: what has
come and gone until then is *condensed*, its sum comes in the last of those epochs. So starting again costs
the rows that are there, not their history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from timely.counted import counted
from timely.operators.inputs.names import ExpectedAppend
from timely.spark.delivering import EpochFeed, TargetFactory
from timely.spark.epochs import DIFF, EPOCH, DiffError, EpochRows, EpochSize, chunks_of, epoch_rows
from timely.spark.errors import InputFormatError
from timely.spark.frames import quoted, told_apart

from .calendar import Calendar

__all__ = ["Layout", "lay_out"]

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_COMES = ("insert", "+", "+1", "update_postimage", "update_after")
_GOES = ("remove", "delete", "-", "-1", "update_preimage", "update_before")
"""What a column of texts may say of a row; the last two of each are those of change feeds."""

_SHOWN_MAX = 4
"""Other words that an error shows."""


@dataclass(frozen=True)
class Layout:
    """Rows of each input by name, and the epochs that are fed: from `epochs.start` on."""

    rows: dict[str, EpochRows]
    epochs: range

    def size(self, epoch: int) -> EpochSize:
        """Rows of all inputs that come and go in an epoch."""
        sizes = [rows.sizes.get(epoch, EpochSize(0, 0)) for rows in self.rows.values()]
        return EpochSize(sum(size.entered for size in sizes), sum(size.left for size in sizes))

    def chunks(self) -> list[range]:
        """What one Spark job for each input sends; see `chunks_of`."""
        known = {epoch for rows in self.rows.values() for epoch in rows.sizes}
        return chunks_of({epoch: self.size(epoch).rows for epoch in known}, self.epochs)

    def send(self, chunk: range, target: TargetFactory) -> dict[int, list[ExpectedAppend]]:
        """Send these epochs of all inputs; what must have arrived when each of them is sealed."""
        expected: dict[int, list[ExpectedAppend]] = {epoch: [] for epoch in chunk}
        for name, rows in self.rows.items():
            if not any(epoch in rows.sizes for epoch in chunk):
                continue
            for epoch, receipts in EpochFeed(rows, name, target).send(chunk).items():
                expected[epoch] += [append for receipt in receipts for append in receipt.expected(name)]
        return expected

    def release(self) -> None:
        """Let Spark forget the rows, if it is still there."""
        for rows in self.rows.values():
            with suppress(Exception):  # Java may be gone, and the rows with it
                rows.release()


def lay_out(
    inputs: Mapping[str, DataFrame],
    fields: Mapping[str, T.StructType],
    calendar: Calendar,
    diff: str | None,
    condensed: int = 0,
) -> Layout:
    """Each input's rows, with the columns `fields`, at the epochs of `calendar`.

    `diff` names a column that says how often a row comes (negative: goes), or "insert" and "remove". Epochs
    before `condensed` are summed up in the last of them. One Spark job for each input.
    """
    writers = max(1, next(iter(inputs.values())).sparkSession.sparkContext.defaultParallelism)
    layout = Layout({}, range(max(0, condensed - 1), calendar.count))
    try:
        for name, given in inputs.items():
            frame, inner = told_apart(given, fields[name].names)
            columns = list(inner.values())
            dated = calendar.dated(*_said_rows(name, frame, columns, diff))
            if condensed:
                dated = _condensed(dated, columns, condensed - 1)
            nullable = {field.name: field.nullable for field in fields[name].fields}
            said = DIFF if DIFF in dated.columns else None
            names = {new: old for old, new in inner.items()}
            try:
                layout.rows[name] = epoch_rows(
                    dated, diff=said, writers=writers, nullable=nullable, names=names
                )
            except InputFormatError as error:
                told = _wrong_diffs(name, frame, diff) if isinstance(error, DiffError) and diff else None
                if told is not None:
                    raise told from None
                raise InputFormatError(f"input {name!r}: {' '.join(str(error).split())}") from None
    except BaseException:
        layout.release()
        raise
    return layout


def _said_rows(
    name: str, frame: DataFrame, columns: Sequence[str], diff: str | None
) -> tuple[DataFrame, list[str]]:
    """The rows with a column `diff` (bigint) if `diff` names one that says how often a row comes; and which
    columns are kept of them.
    """
    if diff is None or diff not in frame.columns:
        return frame, list(columns)
    return frame.withColumn(DIFF, _how_often(name, frame, diff)), [*columns, DIFF]


def _condensed(frame: DataFrame, columns: Sequence[str], last: int) -> DataFrame:
    """Rows of epochs before `last` in that epoch, and what has come and gone until then not at all."""
    if DIFF not in frame.columns:
        return frame.withColumn(EPOCH, F.greatest(F.col(EPOCH), F.lit(last).cast("bigint")))
    by = [quoted(name) for name in columns]
    at = F.greatest(F.col(EPOCH), F.lit(last).cast("bigint")).alias(EPOCH)
    # A sum passes over nulls; what says nothing of how often it comes has to be there to be refused.
    total = F.when(F.count_if(F.col(DIFF).isNull()) == 0, F.sum(DIFF)).alias(DIFF)
    summed = frame.select(*by, at, DIFF).groupBy(*by, EPOCH).agg(total)
    return summed.where((F.col(DIFF) != 0) | F.col(DIFF).isNull())


def _how_often(name: str, frame: DataFrame, diff: str) -> Column:
    kind = frame.schema[diff].dataType
    column = F.col(quoted(diff))
    if isinstance(kind, _WHOLE):
        return column.cast("bigint")
    if isinstance(kind, T.StringType):
        said = F.lower(F.trim(column))
        return F.when(said.isin(*_COMES), F.lit(1)).when(said.isin(*_GOES), F.lit(-1)).cast("bigint")
    whole = f"when(col({diff!r}), 1).otherwise(-1)" if isinstance(kind, T.BooleanType) else ""
    whole = whole or (f"col({diff!r}).cast('bigint')" if isinstance(kind, T.NumericType) else "…")
    raise InputFormatError(
        f"input {name!r}: the column {diff!r}, which diff= names, is {kind.simpleString()}. Whether a row "
        "comes or goes is said by a whole number (1, -1), or by the texts 'insert' and 'remove'. Write "
        f"withColumn({diff!r}, {whole})"
    )


def _wrong_diffs(name: str, frame: DataFrame, diff: str) -> InputFormatError | None:
    """What is said of a column that does not say of all rows how often they come; None if it does. Costs a
    Spark job.
    """
    how_often = _how_often(name, frame, diff)
    wrong = frame.where(how_often.isNull() | (how_often == 0))
    groups = wrong.groupBy(quoted(diff)).count().orderBy(F.desc("count"), quoted(diff)).limit(_SHOWN_MAX + 1)
    found = groups.collect()
    if not found:
        return None
    listed = [(value, counted(rows, "row")) for value, rows in found[:_SHOWN_MAX]]
    said = ", ".join(f"{'null' if value is None else repr(value)} in {rows}" for value, rows in listed)
    said += ", and others" if len(found) > _SHOWN_MAX else ""
    if isinstance(frame.schema[diff].dataType, T.StringType):
        word = next((value for value, _ in listed if value is not None), "new")
        words = (
            f"What comes is said by {_either(_COMES)}, what goes by {_either(_GOES)}. Rename another word: "
            f"df.replace({{{word!r}: 'insert'}}, subset=[{diff!r}])"
        )
    else:
        words = f"It says how often a row comes (1), or goes (-1). Leave others out: where('{diff} != 0')"
    return InputFormatError(f"input {name!r}: the column {diff!r}, which diff= names, is {said}. {words}")


def _either(words: Sequence[str]) -> str:
    *first, last = map(repr, words)
    return f"{', '.join(first)} or {last}"
