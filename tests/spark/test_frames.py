"""frames.py: no row of a table is left out, however it is cut; none of another folder is read."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from timely.spark.frames import distinct_names, frame_of, free_name, read_folders, same_in_spark


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


def test_times_without_a_zone_stay_so(spark: SparkSession) -> None:
    at = dt.datetime(2024, 3, 10, 2, 30)
    plain, zoned = (pa.array([at], pa.timestamp("us", zone)) for zone in (None, "UTC"))
    table = pa.table({"at": plain, "zoned": zoned})
    frame = frame_of(spark, table)
    assert frame.dtypes == [("at", "timestamp_ntz"), ("zoned", "timestamp")]
    assert frame.selectExpr("cast(at AS string)").collect()[0][0] == "2024-03-10 02:30:00"


@pytest.mark.parametrize(
    "name", ["plain", "a[b]", "st*r", "q?m", "{x,y}", "[!a]", "back\\slash", "k=v", "a b%20"]
)
def test_folders_are_no_patterns(spark: SparkSession, tmp_path: Path, name: str) -> None:
    for number, folder in enumerate((name, "star", "qum", "x", "b", "st_r")):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"n": [number]}), tmp_path / folder / "0.parquet")
    assert [row.n for row in read_folders(spark, tmp_path / name).collect()] == [0]
    both = read_folders(spark, tmp_path / name, tmp_path / "star")
    assert sorted(row.n for row in both.collect()) == [0, 1]


def test_free_names_are_free_whatever_their_capitals() -> None:
    assert free_name("_at", ["at", "k"]) == "_at"
    assert free_name("_at", ["_AT", "_at_"]) == "_at__"


def test_distinct_names_tell_columns_apart_that_spark_takes_for_one(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2, 3)], "a bigint, A bigint, `b.c` bigint")
    renamed, inner = distinct_names(frame, ["A", "b.c"])
    assert renamed.columns == ["a", inner["A"], inner["b.c"]]
    assert renamed.select("a", inner["A"], inner["b.c"]).collect() == [(1, 2, 3)]


def test_same_in_spark_are_names_that_differ_by_capitals_alone(spark: SparkSession) -> None:
    assert same_in_spark(spark, ["a", "b", "B", "c"]) == ("b", "B")
    assert same_in_spark(spark, ["a", "a_", "b.a"]) is None
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert same_in_spark(spark, ["a", "A"]) is None
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
