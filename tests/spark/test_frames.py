"""frames.py: no row of a table is left out, however it is cut."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from timely.spark.frames import frame_of


@pytest.mark.parametrize("sizes", [[3, 0, 4], [0, 3], [3, 0], [0, 0, 1, 0, 0, 2], [0], []])
def test_chunks_without_rows_hide_none(spark: SparkSession, sizes: list[int]) -> None:
    numbers = iter(range(100))
    chunks = [pa.array([next(numbers) for _ in range(size)], pa.int64()) for size in sizes]
    table = pa.table({"n": pa.chunked_array(chunks, pa.int64())})
    frame = frame_of(spark, table)
    assert frame.columns == ["n"]
    assert sorted(row.n for row in frame.collect()) == list(range(sum(sizes)))


def test_nothing_at_all_has_its_columns(spark: SparkSession) -> None:
    schema = pa.schema([("t", pa.timestamp("us")), ("l", pa.list_(pa.string())), ("n", pa.int64())])
    frame = frame_of(spark, schema.empty_table())
    assert frame.columns == ["t", "l", "n"] and frame.count() == 0


def test_columns_may_be_cut_in_different_places(spark: SparkSession) -> None:
    first = pa.chunked_array([[0, 1, 2], [3, 4, 5, 6]], pa.int64())
    second = pa.chunked_array([["a", "b", "c", "d", "e"], [], ["f", "g"]], pa.string())
    rows = frame_of(spark, pa.table({"n": first, "s": second})).collect()
    assert [tuple(row) for row in sorted(rows)] == list(enumerate("abcdefg"))
