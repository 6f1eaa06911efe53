"""Arrow tables as DataFrames, with all their rows; names of columns as Spark has to be told them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

__all__ = ["frame_of", "quoted"]


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of the rows of `table`.

    `spark.createDataFrame` of PySpark 4.3 takes the chunks of a table one after another up to the first that
    is empty, and leaves out what is behind it, without a word. Tables put together of several, or filtered,
    have such chunks; here they go before.
    """
    filled = [batch for batch in table.to_batches() if batch.num_rows]
    # Nor does it take a column of times without any chunk.
    nothing = pa.RecordBatch.from_pylist([], schema=table.schema)
    frame: DataFrame = spark.createDataFrame(pa.Table.from_batches(filled or [nothing]))
    return frame


def quoted(name: str) -> str:
    """The name of a column as expressions have to say it, dots and all."""
    return "`" + name.replace("`", "``") + "`"
