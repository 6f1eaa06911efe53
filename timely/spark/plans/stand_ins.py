"""DataFrames that stand for inputs while a query is read: their columns, and no rows.

Each column has the name of the input in its metadata. Spark keeps metadata where it reads a
DataFrame twice, with new numbers for its columns. A query that asks for their rows gets an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NoReturn

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

__all__ = ["INPUT_KEY", "NO_ROWS", "stand_in", "under_names"]

INPUT_KEY: Final = "timely.input"
NO_ROWS: Final = "a query of DataFrames has asked for rows while it was read"


def stand_in(spark: SparkSession, name: str, fields: T.StructType) -> DataFrame:
    """Return a DataFrame with these columns that stands for an input."""

    def refused(row: object) -> NoReturn:
        raise RuntimeError("a query of DataFrames has asked for rows while it was read")

    columns = [
        T.StructField(field.name, field.dataType, field.nullable, {**field.metadata, INPUT_KEY: name})
        for field in fields.fields
    ]
    nothing = spark.sparkContext.parallelize([0], 1).map(refused)
    return spark.createDataFrame(nothing, T.StructType(columns), verifySchema=False)


@contextmanager
def under_names(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Inside, let temporary views of these names be these DataFrames."""
    before: dict[str, DataFrame | None] = {}
    try:
        for name, frame in frames.items():
            before[name] = _view(spark, name)
            frame.createOrReplaceTempView(name)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.catalog.dropTempView(name)
            else:
                old.createOrReplaceTempView(name)


def _view(spark: SparkSession, name: str) -> DataFrame | None:
    """Return the temporary view of a name; None if there is none, or if the name is that of a table."""
    try:
        is_there = spark.catalog.getTable(name).isTemporary
    except AnalysisException:
        return None
    return spark.table(name) if is_there else None
