"""A DataFrame with an epoch column, checked and laid out for sending.

Rows are hashed over `writers` partitions and sorted within each by epoch, then by every other column. Both
are decided by the rows alone, so a partition that Spark has to make again (a lost executor, a retried task)
is the same row for row. So `delivering.py` can number its appends, and the workers count each of them once.

    columns   what is left for the input when epoch and diff are taken away, in the DataFrame's order
    diff      how often a row is added (or, if negative, taken away): a column, or 1 for every row without one
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from timely.spark.errors import InputFormatError
from timely.spark.frames import quoted
from timely.spark.lost import java_watched

__all__ = ["DIFF", "EPOCH", "DiffError", "EpochRows", "EpochSize", "chunks_of", "epoch_rows"]

EPOCH = "epoch"
DIFF = "diff"
_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_ALLOWED = (
    *_INTEGERS,
    T.FloatType,
    T.DoubleType,
    T.BooleanType,
    T.StringType,
    T.BinaryType,
    T.TimestampType,
    T.DateType,
)
_ALLOWED_NAMES = "whole numbers, float, double, boolean, string, binary, timestamp, date"


class EpochSize(NamedTuple):
    """How many rows of an epoch are added and taken away, multiplicities counted."""

    entered: int
    left: int

    @property
    def rows(self) -> int:
        """Both together."""
        return self.entered + self.left


class DiffError(InputFormatError):
    """Rows that do not say how often they come: who knows what they say in place of that tells it better."""


@dataclass(frozen=True)
class EpochRows:
    """Checked rows, partitioned by writer, sorted within each, and cached.

    `frame` has the data `columns` in their order, under these names or others, then epoch and diff (bigint).
    `sizes` names each epoch that has rows, ascending.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    writers: int
    sizes: Mapping[int, EpochSize]

    def release(self) -> None:
        """Let Spark forget the cached rows."""
        self.frame.unpersist()


def chunks_of(rows: Mapping[int, int], epochs: range, rows_max: int = 262_144) -> list[range]:
    """`epochs`, cut so that each piece has at most `rows_max` rows in all, or is one epoch; `rows` says how
    many an epoch has. A piece is what one Spark job sends, so it bounds what the workers hold of epochs that
    are not sealed yet.
    """
    chunks: list[range] = []
    first, waiting = epochs.start, 0
    for epoch in sorted(epoch for epoch in rows if epoch in epochs):
        if epoch > first and waiting + rows[epoch] > rows_max:
            chunks.append(range(first, epoch))
            first, waiting = epoch, 0
        waiting += rows[epoch]
    if first < epochs.stop:
        chunks.append(range(first, epochs.stop))
    return chunks


@java_watched()
def epoch_rows(
    frame: DataFrame,
    *,
    epoch: str = EPOCH,
    diff: str | None = None,
    writers: int = 2,
    nullable: Mapping[str, bool] | None = None,
    names: Mapping[str, str] | None = None,
) -> EpochRows:
    """Check `frame`, lay its rows out for `writers` writers, and count them by epoch: one Spark job.

    `epoch` and `diff` name columns; without `diff` every row is added once. `nullable` says of each data
    column whether the input takes nulls in it, for who has held its type against that of the input already;
    without it no column has nulls, and types are those that need no declaration. `names` says what the input
    calls each column, if `frame` has other names (`told_apart`). Raises `InputFormatError`
    for a column that is missing or of a type that has no place in a collection, for nulls where none may be,
    negative epochs and diffs of 0.
    """
    if writers < 1:
        raise ValueError(f"writers is 1 or more, not {writers}")
    columns = _checked_schema(frame, epoch, diff, are_known=nullable is not None)
    diffs = F.lit(1) if diff is None else F.col(quoted(diff))
    plain = frame.select(
        *(_widened(frame, name) for name in columns),
        F.col(quoted(epoch)).cast("bigint").alias(EPOCH),
        diffs.cast("bigint").alias(DIFF),
    )
    by_content = [F.col(quoted(name)) for name in columns]
    laid_out = (
        plain.repartition(writers, *by_content, EPOCH)
        .sortWithinPartitions(EPOCH, *by_content, DIFF)
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    called = {name: name for name in columns} if names is None else dict(names)
    full = tuple(name for name in columns if nullable is None or not nullable[called[name]])
    try:
        sizes = _checked_sizes(laid_out, full, called)
        return EpochRows(laid_out, tuple(called[name] for name in columns), writers, sizes)
    except BaseException:
        with suppress(Exception):  # Java may be gone, and the rows with it
            laid_out.unpersist()
        raise


def _checked_schema(frame: DataFrame, epoch: str, diff: str | None, are_known: bool) -> tuple[str, ...]:
    """The names of the data columns; `are_known`: their types have been checked."""
    types = {field.name: field.dataType for field in frame.schema.fields}
    if len(types) < len(frame.columns):
        raise InputFormatError(
            f"two columns of the DataFrame have the same name: {', '.join(frame.columns)}. Rename one."
        )
    for role, name in ((EPOCH, epoch), (DIFF, diff)):
        if name is not None and name not in types:
            raise InputFormatError(
                f"there is no column {name!r} for the {role}; the DataFrame has {', '.join(types)}."
            )
        if name is not None and not isinstance(types[name], _INTEGERS):
            raise InputFormatError(
                f"the {role} column {name!r} is {types[name].simpleString()}, not a whole number. "
                "Cast it to bigint."
            )
    columns = tuple(name for name in types if name not in (epoch, diff))
    for name in columns:
        if not are_known and not isinstance(types[name], _ALLOWED):
            raise InputFormatError(
                f"column {name!r} is {types[name].simpleString()}. A collection can have columns of these "
                f"types: {_ALLOWED_NAMES}. Cast it, or take it out with drop({name!r})."
            )
        if name in (EPOCH, DIFF):
            raise InputFormatError(
                f"the data column {name!r} has a name that is reserved for the {name}. Rename it."
            )
    if not columns:
        raise InputFormatError("the DataFrame has no data column besides the epoch and the diff.")
    return columns


def _widened(frame: DataFrame, name: str) -> Column:
    """Narrow numbers as bigint or double: a collection knows one width of each."""
    column, kind = F.col(quoted(name)), frame.schema[name].dataType
    if isinstance(kind, _INTEGERS):
        return column.cast("bigint").alias(name)
    return column.cast("double").alias(name) if isinstance(kind, T.FloatType) else column


def _checked_sizes(
    frame: DataFrame, columns: tuple[str, ...], called: Mapping[str, str]
) -> dict[int, EpochSize]:
    """Rows by epoch, ascending, counted in the same job that looks for nulls in `columns` and whatever else
    may not be in them. `called` says how messages name a column.
    """
    refuse = partial(_refuse, frame, called)
    nulls = [
        F.count_if(F.isnull(quoted(name))).alias(f"null {at}") for at, name in enumerate((*columns, DIFF))
    ]
    counts: pa.Table = (
        frame.groupBy(EPOCH)
        .agg(
            F.sum(F.greatest(F.col(DIFF), F.lit(0))).alias("entered"),
            F.sum(F.greatest(-F.col(DIFF), F.lit(0))).alias("left"),
            F.count_if(F.col(DIFF) == 0).alias("zeros"),
            *nulls,
        )
        .toArrow()  # and sorted here: Spark would look at the rows once more, to know where to cut
    )
    found: dict[str, list[int | None]] = counts.to_pydict()
    for at, name in enumerate((*columns, DIFF)):
        refuse(
            sum(n or 0 for n in found[f"null {at}"]),
            F.isnull(quoted(name)),
            f"no value in column {called.get(name, name)!r}",
            DiffError if name == DIFF else InputFormatError,
        )
    refuse(sum(e is None for e in found[EPOCH]), F.isnull(EPOCH), "no epoch")
    refuse(sum(e is not None and e < 0 for e in found[EPOCH]), F.col(EPOCH) < 0, "an epoch below 0")
    refuse(sum(n or 0 for n in found["zeros"]), F.col(DIFF) == 0, "a diff of 0", DiffError)
    sizes = zip(found[EPOCH], found["entered"], found["left"], strict=True)
    ordered = sorted((epoch, entered or 0, left or 0) for epoch, entered, left in sizes if epoch is not None)
    return {epoch: EpochSize(entered, left) for epoch, entered, left in ordered}


def _refuse(
    frame: DataFrame,
    called: Mapping[str, str],
    count: int,
    which: Column,
    what: str,
    error: type[InputFormatError] = InputFormatError,
) -> None:
    """Raise if there are such rows, showing the first of them."""
    if count == 0:
        return
    shown = frame.where(which).limit(1).collect()[0].asDict()
    row = ", ".join(f"{called.get(name, name)} {value!r}" for name, value in shown.items())
    total = frame.where(which).count()
    rows = "1 row of the DataFrame has" if total == 1 else f"{total:,} rows of the DataFrame have"
    raise error(
        f"{rows} {what}, for example:\n  {row}\n"
        "Every value has to be there, epochs are 0 or more, diffs are not 0: filter such rows out."
    )
