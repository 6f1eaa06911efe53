"""Make DataFrames of Arrow tables and folders, with exactly their rows; write column names for Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

__all__ = ["distinct_names", "frame_of", "free_name", "quoted", "read_folders", "same_in_spark"]

_OF_PATTERNS = re.compile(r"[\\*?\[\]{}]")


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return a DataFrame of the rows of `table`.

    `spark.createDataFrame` of PySpark 4.3 stops at the first empty chunk of a table, and silently drops the
    chunks after it. Concatenated and filtered tables have such chunks; this function removes them first. It
    also keeps times without a zone as they are: PySpark would convert them to the zone of the session, which
    lacks the hour that daylight saving skips in spring.

    Fields of structs may be null in the DataFrame. PySpark builds structs anew, and pyarrow then refuses a
    field without nulls below a struct that is null.
    """
    schema = pa.schema([each.with_type(_with_nulls_inside(each.type)) for each in table.schema])
    if schema != table.schema:
        table = table.cast(schema)
    filled = [batch for batch in table.to_batches() if batch.num_rows]
    # `createDataFrame` also fails for a column of times without any chunk.
    nothing = pa.RecordBatch.from_pylist([], schema=table.schema)
    form = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    frame: DataFrame = spark.createDataFrame(pa.Table.from_batches(filled or [nothing]), form)
    return frame


def _with_nulls_inside(kind: pa.DataType) -> pa.DataType:
    """Return the type with fields of its structs that may be null, at any depth."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _with_nulls_inside(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_nulls_inside(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_with_nulls_inside(kind.item_type)))
    return kind


def read_folders(spark: SparkSession, *folders: Path) -> DataFrame:
    """Return a DataFrame of the Parquet files in `folders`, taking their names literally: Spark treats `run*`
    as a pattern, and would also read the folder `run1` beside it.
    """
    return spark.read.parquet(*(_OF_PATTERNS.sub(r"\\\g<0>", str(folder)) for folder in folders))


def quoted(name: str) -> str:
    """Return a column name quoted for expressions of Spark, so that it may contain dots."""
    return "`" + name.replace("`", "``") + "`"


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return `name`, with as many `_` appended as make it differ from all of `taken`, ignoring case.

    Otherwise Spark would silently replace the column of that name.
    """
    lowered = {one.lower() for one in taken}
    while name.lower() in lowered:
        name += "_"
    return name


def distinct_names(frame: DataFrame, names: Sequence[str]) -> tuple[DataFrame, dict[str, str]]:
    """Return `frame` with other names for its columns `names`, and the new name of each.

    Spark treats `a` and `A` as the same column name, unless the session says otherwise. The new names differ
    in more than case, and have no dots. Columns are renamed by their position.
    """
    taken = list(frame.columns)
    inner = {name: free_name(f"_column_{at}", taken) for at, name in enumerate(names)}
    return frame.toDF(*[inner.get(name, name) for name in taken]), inner


def same_in_spark(spark: SparkSession, names: Iterable[str]) -> tuple[str, str] | None:
    """Return two of `names` that differ in case alone, so that a file or table of this session cannot have
    both; None if there are none.
    """
    if spark.conf.get("spark.sql.caseSensitive") == "true":
        return None
    by_lowered: dict[str, str] = {}
    for name in names:
        other = by_lowered.setdefault(name.lower(), name)
        if other != name:
            return other, name
    return None
