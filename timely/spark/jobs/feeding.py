"""Lay out the rows of all inputs by epoch, and send them to the workers chunk by chunk.

A job that continues after the epochs committed by an earlier one does not need each of them: it *condenses*
them, so that the sum of their rows comes in the last of them. So a restart costs the rows that are there, not
their history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from timely.counted import counted
from timely.operators.inputs.names import ExpectedAppend
from timely.spark.delivering import EpochFeed, TargetFactory
from timely.spark.epochs import (
    DIFF,
    EPOCH,
    DiffError,
    EpochRows,
    EpochSize,
    RowsDigest,
    chunks_of,
    digest_before,
    epoch_rows,
)
from timely.spark.errors import InputFormatError
from timely.spark.feeds.change_feed import PROBLEM, PlainFeed
from timely.spark.frames import distinct_names, quoted
from timely.spark.once.fed import joint_digest, summed_digest

from .calendar import AT_ONCE, Calendar

__all__ = ["Layout", "digest_of", "lay_out", "writers_of"]

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_COMES = ("insert", "+", "+1", "update_postimage", "update_after")
_GOES = ("remove", "delete", "-", "-1", "update_preimage", "update_before")
"""The words for rows that come and go in a diff column of texts; the last two of each are from change
feeds.
"""

_SHOWN_MAX = 4
"""How many wrong values an error shows."""


@dataclass(frozen=True)
class Layout:
    """The rows of each input by name, and the epochs to be fed.

    `before`: the digests of earlier rows of each input, if digests are wanted; else empty.
    """

    rows: dict[str, EpochRows]
    epochs: range
    before: dict[str, RowsDigest] = field(default_factory=dict)

    def size(self, epoch: int) -> EpochSize:
        """Return how many rows of all inputs come and go in an epoch."""
        sizes = [rows.sizes.get(epoch, EpochSize(0, 0)) for rows in self.rows.values()]
        return EpochSize(sum(size.entered for size in sizes), sum(size.left for size in sizes))

    def chunks(self) -> list[range]:
        """Return the epochs in chunks; one Spark job for each input sends a chunk. See `chunks_of`."""
        with_rows = {epoch for rows in self.rows.values() for epoch in rows.sizes}
        return chunks_of({epoch: self.size(epoch).rows for epoch in with_rows}, self.epochs)

    def send(self, chunk: range, target: TargetFactory) -> dict[int, list[ExpectedAppend]]:
        """Send these epochs of all inputs; return the appends that each needs when it is sealed."""
        expected: dict[int, list[ExpectedAppend]] = {epoch: [] for epoch in chunk}
        for name, rows in self.rows.items():
            if not any(epoch in rows.sizes for epoch in chunk):
                continue
            for epoch, receipts in EpochFeed(rows, name, target).send(chunk).items():
                expected[epoch] += [append for receipt in receipts for append in receipt.expected(name)]
        return expected

    def digest(self, epoch: int) -> str:
        """Return the digest of the rows of one epoch."""
        return joint_digest({name: rows.digests.get(epoch, (0, 0)) for name, rows in self.rows.items()})

    def digests(self) -> dict[int, str]:
        """Return, by epoch, the digest of all rows up to that epoch, also for the epoch before the first."""
        sums: dict[str, RowsDigest] = dict(self.before)
        digests = {self.epochs.start - 1: joint_digest(sums)}
        for epoch in self.epochs:
            for name, rows in self.rows.items():
                if epoch in rows.digests:
                    sums[name] = summed_digest(sums[name], rows.digests[epoch])
            digests[epoch] = joint_digest(sums)
        return digests

    def release(self) -> None:
        """Let Spark drop the cached rows, if it still runs."""
        for rows in self.rows.values():
            with suppress(Exception):  # if Java has ended, so have the cached rows
                rows.release()


def lay_out(
    inputs: Mapping[str, DataFrame],
    fields: Mapping[str, T.StructType],
    calendar: Calendar,
    diff: str | None,
    condensed: int = 0,
    *,
    feeds: Mapping[str, PlainFeed] | None = None,
    since: int | None = None,
    has_digests: bool = False,
) -> Layout:
    """Lay out the rows of each input, with the columns `fields`, at the epochs of `calendar`.

    `diff` names a column with how often a row comes (negative: goes), or with "insert" and "remove"; `feeds`
    are the inputs whose rows are changes. Epochs before `condensed` are summed up in the last of them; with
    `since` those before it are left out. `has_digests`: make digests of all rows. Costs one Spark job for
    each input, and one more with `since`.
    """
    writers = writers_of(inputs)
    layout = Layout({}, range(max(0, condensed - 1) if since is None else since, calendar.count))
    try:
        for name, original in inputs.items():
            feed = (feeds or {}).get(name)
            frame, inner = distinct_names(original, fields[name].names)
            dated = _dated(name, frame, inner, calendar, diff, feed, condensed)
            rows = dated.drop(PROBLEM)
            column = DIFF if DIFF in rows.columns else None
            if has_digests:
                layout.before[name] = digest_before(since, rows, diff=column) if since else (0, 0)
            if since is not None:
                rows = rows.where(F.col(EPOCH) >= since)
            try:
                layout.rows[name] = epoch_rows(
                    rows,
                    diff=column,
                    writers=writers,
                    nullable=_nullable(fields[name], feed),
                    names={new: old for old, new in inner.items()},
                    has_digests=has_digests,
                )
            except InputFormatError as error:
                precise: InputFormatError | None = None
                if isinstance(error, DiffError) and feed is not None:
                    plainly = _dated(name, frame, inner, calendar, diff, feed)
                    precise = feed.error_in(plainly, inner)
                elif isinstance(error, DiffError) and diff:
                    precise = _wrong_diffs(name, frame, diff)
                if precise is not None:
                    raise precise from None
                raise InputFormatError(f"input {name!r}: {' '.join(str(error).split())}") from None
    except BaseException:
        layout.release()
        raise
    return layout


def _dated(
    name: str,
    frame: DataFrame,
    inner: Mapping[str, str],
    calendar: Calendar,
    diff: str | None,
    feed: PlainFeed | None,
    condensed: int = 0,
) -> DataFrame:
    """Return the rows of an input under their names in `inner`, EPOCH, and DIFF if some go; of a feed also
    PROBLEM.
    """
    columns = list(inner.values())
    if feed is not None:
        dated = calendar.dated(frame, [*columns, feed.change])
        feed.check_updates(dated)
        rows = feed.last_changes(dated, inner, condensed)
        return rows if feed.key or not condensed else _condensed(rows, columns, condensed - 1)
    dated = calendar.dated(*_with_diff(name, frame, columns, diff))
    return _condensed(dated, columns, condensed - 1) if condensed else dated


def _nullable(fields: T.StructType, feed: PlainFeed | None) -> dict[str, bool]:
    """Return whether each column may have nulls. A key that is gone has them beside the key."""
    keys = feed.key if feed is not None else ()
    return {field.name: field.nullable or (bool(keys) and field.name not in keys) for field in fields.fields}


def writers_of(inputs: Mapping[str, DataFrame]) -> int:
    """Return the number of writers of each input; it decides how rows are cut into appends."""
    return max(1, next(iter(inputs.values())).sparkSession.sparkContext.defaultParallelism)


def digest_of(
    inputs: Mapping[str, DataFrame],
    fields: Mapping[str, T.StructType],
    diff: str | None,
    feeds: Mapping[str, PlainFeed],
) -> str:
    """Return the digest of all rows of these inputs, as layouts have it; one Spark job for each."""
    digests: dict[str, RowsDigest] = {}
    for name, original in inputs.items():
        frame, inner = distinct_names(original, fields[name].names)
        rows = _dated(name, frame, inner, AT_ONCE, diff, feeds.get(name)).drop(PROBLEM)
        digests[name] = digest_before(1, rows, diff=DIFF if DIFF in rows.columns else None)
    return joint_digest(digests)


def _with_diff(
    name: str, frame: DataFrame, columns: Sequence[str], diff: str | None
) -> tuple[DataFrame, list[str]]:
    """Return the rows and the names of their columns to keep.

    If the frame has the column `diff`, the rows get a column `diff` (bigint) of how often each comes.
    """
    if diff is None or diff not in frame.columns:
        return frame, list(columns)
    return frame.withColumn(DIFF, _how_often(name, frame, diff)), [*columns, DIFF]


def _condensed(frame: DataFrame, columns: Sequence[str], last: int) -> DataFrame:
    """Return the rows with those of epochs before `last` moved to `last`, and equal rows of an epoch summed
    up, so that a row that has come and gone by then is left out.
    """
    if DIFF not in frame.columns:
        return frame.withColumn(EPOCH, F.greatest(F.col(EPOCH), F.lit(last).cast("bigint")))
    by = [quoted(name) for name in columns]
    at = F.greatest(F.col(EPOCH), F.lit(last).cast("bigint")).alias(EPOCH)
    # A sum ignores nulls; a row whose diff is null must stay null, so that `epoch_rows` refuses it.
    total = F.when(F.count_if(F.col(DIFF).isNull()) == 0, F.sum(DIFF)).alias(DIFF)
    summed = frame.select(*by, at, DIFF).groupBy(*by, EPOCH).agg(total)
    return summed.where((F.col(DIFF) != 0) | F.col(DIFF).isNull())


def _how_often(name: str, frame: DataFrame, diff: str) -> Column:
    kind = frame.schema[diff].dataType
    column = F.col(quoted(diff))
    if isinstance(kind, _WHOLE):
        return column.cast("bigint")
    if isinstance(kind, T.StringType):
        word = F.lower(F.trim(column))
        return F.when(word.isin(*_COMES), F.lit(1)).when(word.isin(*_GOES), F.lit(-1)).cast("bigint")
    whole = f"when(col({diff!r}), 1).otherwise(-1)" if isinstance(kind, T.BooleanType) else ""
    whole = whole or (f"col({diff!r}).cast('bigint')" if isinstance(kind, T.NumericType) else "…")
    raise InputFormatError(
        f"input {name!r}: the column {diff!r}, which diff= names, is {kind.simpleString()}. It has to have "
        "whole numbers (1: a row comes, -1: it goes), or the texts 'insert' and 'remove'. Write "
        f"withColumn({diff!r}, {whole})"
    )


def _wrong_diffs(name: str, frame: DataFrame, diff: str) -> InputFormatError | None:
    """Return the error for a diff column that has, for some rows, no number of times that they come; None if
    it has for all. Costs a Spark job.
    """
    how_often = _how_often(name, frame, diff)
    wrong = frame.where(how_often.isNull() | (how_often == 0))
    groups = wrong.groupBy(quoted(diff)).count().orderBy(F.desc("count"), quoted(diff)).limit(_SHOWN_MAX + 1)
    counts = groups.collect()
    if not counts:
        return None
    listed = [(value, counted(rows, "row")) for value, rows in counts[:_SHOWN_MAX]]
    shown = ", ".join(f"{'null' if value is None else repr(value)} in {rows}" for value, rows in listed)
    shown += ", and others" if len(counts) > _SHOWN_MAX else ""
    if isinstance(frame.schema[diff].dataType, T.StringType):
        word = next((value for value, _ in listed if value is not None), "new")
        words = (
            f"Rows that come have {_either(_COMES)}, rows that go {_either(_GOES)}. Replace other words: "
            f"df.replace({{{word!r}: 'insert'}}, subset=[{diff!r}])"
        )
    else:
        words = f"It says how often a row comes (1), or goes (-1). Leave others out: where('{diff} != 0')"
    return InputFormatError(f"input {name!r}: the column {diff!r}, which diff= names, is {shown}. {words}")


def _either(words: Sequence[str]) -> str:
    *first, last = map(repr, words)
    return f"{', '.join(first)} or {last}"
