"""Arrow tables and folders as DataFrames, with all their rows and no others; names of columns as Spark has to
be told them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

__all__ = ["frame_of", "free_name", "quoted", "read_folders", "same_in_spark", "told_apart"]

_OF_PATTERNS = re.compile(r"[\\*?\[\]{}]")


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of the rows of `table`.

    `spark.createDataFrame` of PySpark 4.3 takes the chunks of a table one after another up to the first that
    is empty, and leaves out what is behind it, without a word. Tables put together of several, or filtered,
    have such chunks; here they go before. Of times without a zone it makes those of the session's, which has
    none for the hour that it leaves out in spring; here they stay what they are.
    """
    filled = [batch for batch in table.to_batches() if batch.num_rows]
    # Nor does it take a column of times without any chunk.
    nothing = pa.RecordBatch.from_pylist([], schema=table.schema)
    form = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    frame: DataFrame = spark.createDataFrame(pa.Table.from_batches(filled or [nothing]), form)
    return frame


def read_folders(spark: SparkSession, *folders: Path) -> DataFrame:
    """The Parquet files in `folders`, which are called as they are called: Spark takes `run*` for a pattern,
    and would read what is in `run1` beside it, too.
    """
    return spark.read.parquet(*(_OF_PATTERNS.sub(r"\\\g<0>", str(folder)) for folder in folders))


def quoted(name: str) -> str:
    """The name of a column as expressions have to say it, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A name like `wanted` that no column of `taken` has, capitals or not: Spark would put another column in
    the place of that one, without a word.
    """
    names = {name.lower() for name in taken}
    while wanted.lower() in names:
        wanted += "_"
    return wanted


def told_apart(frame: DataFrame, names: Sequence[str]) -> tuple[DataFrame, dict[str, str]]:
    """Return `frame` with other names for its columns `names`, and the new name of each.

    Spark takes `a` and `A` for one column wherever it is told a name, unless the session says otherwise. The
    new names differ in more than capitals, and have no dots. Columns are renamed by their place.
    """
    taken = list(frame.columns)
    inner = {name: free_name(f"_column_{at}", taken) for at, name in enumerate(names)}
    return frame.toDF(*[inner.get(name, name) for name in taken]), inner


def same_in_spark(spark: SparkSession, names: Iterable[str]) -> tuple[str, str] | None:
    """Return two of `names` that differ by capitals alone, which a file or table of this session cannot have
    both; None if there are none.
    """
    if spark.conf.get("spark.sql.caseSensitive") == "true":
        return None
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other != name:
            return other, name
    return None
