"""The columns of an output as those of a DataFrame, and rows of the one as batches of the other.

Spark takes Arrow batches only if their schema is exactly that of the DataFrame, so every batch is cast to it:
which copies nothing where the types are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from timely.errors import MisuseError
from timely.limits import SNAPSHOT_ROWS_MAX
from timely.wire.arrow import int64_array

__all__ = ["CHANGE_COLUMNS", "arrow_form", "as_batches", "check_asked", "repeated", "spark_form"]

CHANGE_COLUMNS = ("epoch", "diff")
_REPEATED_ROWS_MAX = 1 << 20


def spark_form(schema: pa.Schema, names: Sequence[str], are_changes: bool) -> T.StructType:
    """The columns called `names` (all if there are none) of an output, and epoch and diff if it is its
    changes; `MisuseError` for one that it does not have.
    """
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise MisuseError(
            f"the output has no column {', '.join(map(repr, unknown))}; there are {', '.join(schema.names)}"
        )
    picked = pa.schema([schema.field(name).remove_metadata() for name in names or schema.names])
    form = from_arrow_schema(picked)
    if are_changes:
        for name in CHANGE_COLUMNS:
            form = form.add(name, T.LongType(), False)
    return form


def check_asked(form: T.StructType, asked: T.StructType) -> None:
    """Raise `MisuseError`, column by column, unless each of `asked` is in `form`, in the same type."""
    there = {field.name: field.dataType for field in form.fields}
    wrong = [
        f"{field.name!r} is not there"
        if field.name not in there
        else f"{field.name!r} is {there[field.name].simpleString()}, not {field.dataType.simpleString()}"
        for field in asked.fields
        if there.get(field.name) != field.dataType
    ]
    if wrong:
        listed = ", ".join(f"{name} {kind.simpleString()}" for name, kind in there.items())
        raise MisuseError(f"the schema differs from that of the output ({listed}): {'; '.join(wrong)}")


def arrow_form(form: T.StructType) -> pa.Schema:
    """What Spark wants a batch of these columns to be, to the letter."""
    try:
        return to_arrow_schema(form, timezone="UTC")
    except TypeError:  # PySpark 4.1 knows no other
        return to_arrow_schema(form)


def as_batches(table: pa.Table, form: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of `table` in batches of exactly this schema; its columns are in that order already."""
    assert table.column_names == form.names
    if not table.schema.equals(form):
        columns = [column.cast(field.type) for column, field in zip(table.columns, form, strict=True)]
        table = pa.Table.from_arrays(columns, schema=form)
    yield from (batch for batch in table.to_batches() if batch.num_rows)


def repeated(table: pa.Table, times: npt.NDArray[np.int64]) -> Iterator[pa.Table]:
    """The rows of `table` as often as `times` says, in tables of a bounded length."""
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
    for first in range(0, total, _REPEATED_ROWS_MAX):
        last = min(total, first + _REPEATED_ROWS_MAX)
        yield table.take(int64_array(np.searchsorted(ends, np.arange(first, last), side="right")))
