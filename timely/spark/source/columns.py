"""Convert the columns of an output to those of a DataFrame, and rows of the output to batches for it.

Spark accepts Arrow batches only if their schema is exactly that of the DataFrame, so every batch is cast to
it, which copies nothing if the types are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from timely.errors import MisuseError
from timely.limits import SNAPSHOT_ROWS_MAX
from timely.spark.epochs import DIFF
from timely.wire.arrow import int64_array

__all__ = [
    "CHANGE_COLUMNS",
    "arrow_form",
    "as_batches",
    "check_requested",
    "check_written",
    "repeated",
    "spark_form",
    "with_diff",
]

CHANGE_COLUMNS = ("epoch", "diff")
_REPEATED_PIECE_ROWS = 1 << 20
"""Rows of a table in which rows are repeated; it bounds the memory for them, whatever the multiplicities."""

_MEANT_DIFF = f": .option('diff', {DIFF!r}) if it says how often a row is added"


def spark_form(schema: pa.Schema, names: Sequence[str], are_changes: bool) -> T.StructType:
    """Return the columns `names` of an output (all if `names` is empty), with epoch and diff for its changes.

    Raises `MisuseError` for a name that the output does not have, or that occurs twice.
    """
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise MisuseError(
            f"the output has no column {', '.join(map(repr, unknown))}; there are {', '.join(schema.names)}"
            + _of_changes(unknown)
        )
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise MisuseError(f"the option 'columns' names {', '.join(map(repr, twice))} more than once")
    picked = pa.schema([schema.field(name).remove_metadata() for name in names or schema.names])
    form = from_arrow_schema(picked)
    if are_changes:
        for name in CHANGE_COLUMNS:
            form = form.add(name, T.LongType(), False)
    return form


def check_requested(form: T.StructType, requested: T.StructType) -> None:
    """Raise `MisuseError`, with each wrong column, unless all of `requested` are in `form`, with the same
    type.
    """
    there = {field.name: field.dataType for field in form.fields}
    wrong = [
        f"{field.name!r} is not there"
        if field.name not in there
        else f"{field.name!r} is {there[field.name].simpleString()}, not {field.dataType.simpleString()}"
        for field in requested.fields
        if there.get(field.name) != field.dataType
    ]
    if wrong:
        listed = ", ".join(f"{name} {kind.simpleString()}" for name, kind in there.items())
        hint = _of_changes([field.name for field in requested.fields if field.name not in there])
        raise MisuseError(f"the schema differs from that of the output ({listed}): {'; '.join(wrong)}{hint}")


def check_written(schema: T.StructType, form: pa.Schema, diff: str | None, name: str) -> None:
    """Raise `MisuseError`, with each wrong column, unless rows of `schema` fit the input `name` with the
    columns `form`; `diff` names the column of multiplicities, if there is one.
    """
    there = {field.name: field.type for field in arrow_form(schema)}
    kinds = {field.name: field.dataType.simpleString() for field in from_arrow_schema(form)}
    shown = {field.name: field.dataType.simpleString() for field in schema.fields}
    wrong = [] if diff is None else _wrong_diff(there.pop(diff, None), diff, form, shown)
    for field in form:
        if field.name not in there:
            wrong.append(f"{field.name!r} ({kinds[field.name]}) is missing")
        elif not _fits(there[field.name], field.type):
            wrong.append(f"{field.name!r} is {shown[field.name]}, not {kinds[field.name]}")
    wrong += [
        f"{other!r} is not one of them" + (_MEANT_DIFF if other == DIFF and diff is None else "")
        for other in there
        if other not in form.names
    ]
    if wrong:
        listed = ", ".join(f"{column} {kind}" for column, kind in kinds.items())
        raise MisuseError(f"input {name!r} takes the columns {listed}; {'; '.join(wrong)}")


def _wrong_diff(type_: pa.DataType | None, diff: str, form: pa.Schema, shown: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the column of multiplicities; empty if nothing is."""
    if type_ is None:
        listed = ", ".join(f"{column} {kind}" for column, kind in shown.items())
        return [
            f"the option 'diff' names {diff!r}, which the DataFrame does not have: its columns are {listed}"
        ]
    if diff in form.names:
        return [f"the option 'diff' names {diff!r}, which is one of them: diffs are a column beside those"]
    if not pa.types.is_integer(type_):
        return [
            f"the column of diffs, {diff!r}, is {shown[diff]}, and has to be of whole numbers "
            "(tinyint, smallint, int or bigint)"
        ]
    return []


def with_diff(table: pa.Table, diff: str | None) -> pa.Table:
    """Return the rows as an append takes them: with the column of multiplicities renamed to diff.

    Raises `MisuseError` if that has nulls.
    """
    if diff is None:
        return table
    if nulls := table.column(diff).null_count:
        raise MisuseError(
            f"the column of diffs, {diff!r}, is null in {nulls:,} of {table.num_rows:,} rows that were "
            f"looked at: it says how often each row is added. Write coalesce({diff}, 1) if null means once"
        )
    return table.rename_columns([DIFF if name == diff else name for name in table.column_names])


def _of_changes(missing: Sequence[str]) -> str:
    """Return a hint for missing columns that only changes have; empty if there are none of them."""
    of_changes = [name for name in missing if name in CHANGE_COLUMNS]
    if not of_changes:
        return ""
    listed = " and ".join(map(repr, of_changes))
    return f". Changes, by .option('startingEpoch', 0), have {listed}, which 'columns' need not name"


def _fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Return True if an input of type `target` takes values of type `source`, perhaps not every single
    one.
    """
    if source == target:
        return True
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    alike = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, _is_text, _is_binary)
    return any(is_of(source) and is_of(target) for is_of in alike)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def arrow_form(form: T.StructType) -> pa.Schema:
    """Return the exact schema that Spark requires of a batch of these columns."""
    try:
        return to_arrow_schema(form, timezone="UTC")
    except TypeError:  # PySpark 4.1 has no argument `timezone`
        return to_arrow_schema(form)


def as_batches(table: pa.Table, form: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `table` in batches of exactly this schema; its columns have that order already."""
    assert table.column_names == form.names
    if not table.schema.equals(form):
        columns = [column.cast(field.type) for column, field in zip(table.columns, form, strict=True)]
        table = pa.Table.from_arrays(columns, schema=form)
    yield from (batch for batch in table.to_batches() if batch.num_rows)


def repeated(table: pa.Table, times: npt.NDArray[np.int64]) -> Iterator[pa.Table]:
    """Yield each row of `table` as often as `times` says, in tables of at most `_REPEATED_PIECE_ROWS` rows,
    or the table itself if all are 1. Raises `MisuseError` for a negative number, and for too many rows.
    """
    if (times == 1).all():
        yield table
        return
    if (times < 0).any():
        raise MisuseError(
            "the collection holds rows a negative number of times, so it is no table: read its changes with "
            ".option('startingEpoch', 0)"
        )
    if times.sum(dtype=np.float64) > SNAPSHOT_ROWS_MAX:
        raise MisuseError(
            f"the collection repeats some rows {int(times.max()):,} times, and a snapshot repeats rows up to "
            f"{SNAPSHOT_ROWS_MAX:,} in all: read its changes, or put distinct() or a count before the output"
        )
    ends = np.cumsum(times)
    total = int(ends[-1]) if len(ends) else 0
    for first in range(0, total, _REPEATED_PIECE_ROWS):
        last = min(total, first + _REPEATED_PIECE_ROWS)
        yield table.take(int64_array(np.searchsorted(ends, np.arange(first, last), side="right")))
