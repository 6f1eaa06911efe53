"""A DataFrame with an epoch column, checked and laid out for sending.

`epoch_rows` hashes rows over `writers` partitions and sorts each by epoch, then by every other column. Both
depend on the rows alone, so a partition that Spark has to compute again (a lost executor, a retried task) is
the same row for row. So `delivering.py` can number its appends, and the workers count each of them once.

    columns   the columns for the input: those of the DataFrame without epoch and diff, in its order
    diff      how often a row is added (or, if negative, removed): a column, or 1 for every row without one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from timely.errors import import_from
from timely.spark.errors import InputFormatError
from timely.spark.frames import quoted
from timely.spark.lost import java_watched

__all__ = [
    "DIFF",
    "DIGEST_MODULUS",
    "EPOCH",
    "DiffError",
    "EpochRows",
    "EpochSize",
    "RowsDigest",
    "chunks_of",
    "digest_before",
    "epoch_rows",
]

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


RowsDigest: TypeAlias = tuple[int, int]
"""The sum over rows of the hash of a row times its diff, for two parts of the hash, modulo `DIGEST_MODULUS`:
the same for the same rows in any order, also if equal rows are summed up.
"""

DIGEST_MODULUS: Final = 1 << 31
"""So small that no product or sum leaves 64 bits."""


class EpochSize(NamedTuple):
    """How many rows an epoch adds and removes, counted with multiplicity."""

    entered: int
    left: int

    @property
    def rows(self) -> int:
        """The sum of both."""
        return self.entered + self.left


class DiffError(InputFormatError):
    """The diff of a row is null or 0. A class of its own, so that a caller that makes diffs of something else
    can raise a more precise error.
    """


import_from("timely.spark", [DiffError])


@dataclass(frozen=True)
class EpochRows:
    """Checked rows, partitioned by writer, sorted within each, and cached.

    `frame` has the data `columns` in their order, under these names or others, then epoch and diff (bigint).
    `sizes` names each epoch that has rows, ascending; so does `digests`, if they are wanted.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    writers: int
    sizes: Mapping[int, EpochSize]
    digests: Mapping[int, RowsDigest] = field(default_factory=dict)

    def release(self) -> None:
        """Let Spark drop the cached rows."""
        self.frame.unpersist()


def chunks_of(rows: Mapping[int, int], epochs: range, rows_max: int = 262_144) -> list[range]:
    """Cut `epochs` into pieces that have at most `rows_max` rows each, or are a single epoch.

    `rows` is the number of rows of each epoch. One Spark job sends one piece, so `rows_max` bounds the rows
    of unsealed epochs that the workers hold.
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
    has_digests: bool = False,
) -> EpochRows:
    """Check `frame`, lay its rows out for `writers` writers, and count them by epoch: one Spark job.

    `epoch` and `diff` name columns; without `diff` every row is added once. A caller that has already
    compared the types with those of the input passes `nullable`: for each data column, whether the input
    takes nulls in it. Without it no column may have nulls, and every type must be one that needs no
    declaration. `names` maps the columns of `frame` to those of the input, if they differ (`distinct_names`).
    `has_digests`: make a digest of the rows of each epoch.
    Raises `InputFormatError` for a column that is missing or of a type that a collection cannot have, for
    nulls where none may be, negative epochs and diffs of 0.
    """
    if writers < 1:
        raise ValueError(f"writers is 1 or more, not {writers}")
    columns = _checked_schema(frame, epoch, diff, are_checked=nullable is not None)
    plain = _plain(frame, columns, epoch, diff)
    by_content = [F.col(quoted(name)) for name in columns]
    laid_out = (
        plain.repartition(writers, *by_content, EPOCH)
        .sortWithinPartitions(EPOCH, *by_content, DIFF)
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    input_names = {name: name for name in columns} if names is None else dict(names)
    full = tuple(name for name in columns if nullable is None or not nullable[input_names[name]])
    try:
        sizes, digests = _checked_sizes(laid_out, full, input_names, columns if has_digests else ())
        return EpochRows(laid_out, tuple(input_names[name] for name in columns), writers, sizes, digests)
    except BaseException:
        with suppress(Exception):  # if Java has ended, so have the cached rows
            laid_out.unpersist()
        raise


def _checked_schema(frame: DataFrame, epoch: str, diff: str | None, are_checked: bool) -> tuple[str, ...]:
    """Return the names of the data columns; `are_checked`: their types have been checked before."""
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
        if not are_checked and not isinstance(types[name], _ALLOWED):
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
    """Return the column, cast to bigint or double if it has narrower numbers: a collection has one width."""
    column, kind = F.col(quoted(name)), frame.schema[name].dataType
    if isinstance(kind, _INTEGERS):
        return column.cast("bigint").alias(name)
    return column.cast("double").alias(name) if isinstance(kind, T.FloatType) else column


@java_watched()
def digest_before(stop: int, frame: DataFrame, *, diff: str | None = None) -> RowsDigest:
    """Return the digest of the rows of epochs before `stop`, as `epoch_rows` makes it: one Spark job that
    moves no rows.
    """
    columns = _checked_schema(frame, EPOCH, diff, are_checked=True)
    plain = _plain(frame, columns, EPOCH, diff).where(F.col(EPOCH) < stop)
    (sums,) = plain.agg(*_digest_sums(columns)).collect()
    return _digest_of(sums["low"], sums["high"])


def _plain(frame: DataFrame, columns: Sequence[str], epoch: str, diff: str | None) -> DataFrame:
    """Return the data columns in the widths of a collection, then epoch and diff."""
    diffs = F.lit(1) if diff is None else F.col(quoted(diff))
    return frame.select(
        *(_widened(frame, name) for name in columns),
        F.col(quoted(epoch)).cast("bigint").alias(EPOCH),
        diffs.cast("bigint").alias(DIFF),
    )


def _digest_sums(columns: Sequence[str]) -> list[Column]:
    """Return the two sums of a digest. The hash leaves nulls out, so where they are is hashed, too."""
    parts = [part for name in columns for part in (F.col(quoted(name)), F.isnull(quoted(name)))]
    hashed, modulus = F.xxhash64(*parts), F.lit(DIGEST_MODULUS).cast("bigint")
    halves = {"low": F.pmod(hashed, modulus), "high": F.shiftrightunsigned(hashed, 33)}
    diff = F.pmod(F.col(DIFF), modulus)
    return [F.sum(F.pmod(half * diff, modulus)).alias(name) for name, half in halves.items()]


def _digest_of(low: int | None, high: int | None) -> RowsDigest:
    return (low or 0) % DIGEST_MODULUS, (high or 0) % DIGEST_MODULUS  # without rows there is no sum


def _checked_sizes(
    frame: DataFrame, columns: tuple[str, ...], input_names: Mapping[str, str], digested: Sequence[str] = ()
) -> tuple[dict[int, EpochSize], dict[int, RowsDigest]]:
    """Count the rows of each epoch, ascending, in the same job that looks for nulls in `columns`, and for
    invalid epochs and diffs. `input_names` has the name of each column for messages. Return also the digests
    of rows over the columns `digested`, if there are any.
    """
    refuse = partial(_refuse, frame, input_names)
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
            *(_digest_sums(digested) if digested else ()),
        )
        .toArrow()  # sorted here: Spark would read the rows once more, to choose the bounds of partitions
    )
    lists: dict[str, list[int | None]] = counts.to_pydict()
    for at, name in enumerate((*columns, DIFF)):
        refuse(
            sum(n or 0 for n in lists[f"null {at}"]),
            F.isnull(quoted(name)),
            f"no value in column {input_names.get(name, name)!r}",
            DiffError if name == DIFF else InputFormatError,
        )
    refuse(sum(e is None for e in lists[EPOCH]), F.isnull(EPOCH), "no epoch")
    refuse(sum(e is not None and e < 0 for e in lists[EPOCH]), F.col(EPOCH) < 0, "an epoch below 0")
    refuse(sum(n or 0 for n in lists["zeros"]), F.col(DIFF) == 0, "a diff of 0", DiffError)
    sizes = zip(lists[EPOCH], lists["entered"], lists["left"], strict=True)
    ordered = sorted((epoch, entered or 0, left or 0) for epoch, entered, left in sizes if epoch is not None)
    digests: dict[int, RowsDigest] = {}
    if digested:
        sums = zip(lists[EPOCH], lists["low"], lists["high"], strict=True)
        digests = {epoch: _digest_of(low, high) for epoch, low, high in sums if epoch is not None}
    return {epoch: EpochSize(entered, left) for epoch, entered, left in ordered}, digests


def _refuse(
    frame: DataFrame,
    input_names: Mapping[str, str],
    count: int,
    which: Column,
    what: str,
    error: type[InputFormatError] = InputFormatError,
) -> None:
    """Raise `error` if `count`, the number of rows for which `which` holds, is not 0; show one of the
    rows.
    """
    if count == 0:
        return
    shown = frame.where(which).limit(1).collect()[0].asDict()
    row = ", ".join(f"{input_names.get(name, name)} {value!r}" for name, value in shown.items())
    total = frame.where(which).count()
    rows = "1 row of the DataFrame has" if total == 1 else f"{total:,} rows of the DataFrame have"
    raise error(
        f"{rows} {what}, for example:\n  {row}\n"
        "Every value has to be there, epochs are 0 or more, diffs are not 0: filter such rows out."
    )
