"""epoch_rows: a DataFrame with an epoch column, checked and laid out.

checked_*   what may not be in it, and how the message says so
laid_out_*  each row once, sorted within its writer, the same whenever it is made again
chunks_*    consecutive epochs, bounded by rows
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from timely.spark.epochs import EpochSize, chunks_of, epoch_rows
from timely.spark.errors import InputFormatError


def frame_of(spark: SparkSession, **columns: Sequence[object]) -> DataFrame:
    return spark.createDataFrame(pa.table({name: pa.array(values) for name, values in columns.items()}))


def test_laid_out_rows_are_all_there_sorted_and_counted(spark: SparkSession) -> None:
    n = 1000
    columns = {
        "user": [k * 7919 % 50 for k in range(n)],
        "epoch": [k * 31 % 7 * 2 for k in range(n)],
        "diff": [1 if k % 3 else -2 for k in range(n)],
    }
    rows = epoch_rows(frame_of(spark, **columns), diff="diff", writers=3)
    assert (rows.columns, rows.frame.columns, rows.writers) == (("user",), ["user", "epoch", "diff"], 3)
    table = rows.frame.withColumn("writer", F.spark_partition_id()).toArrow().to_pylist()
    sent = [(r["writer"], r["epoch"], r["user"], r["diff"]) for r in table]
    assert sent == sorted(sent)
    assert {r["writer"] for r in table} == {0, 1, 2}
    kept = sorted((r["user"], r["epoch"], r["diff"]) for r in table)
    assert kept == sorted(zip(columns["user"], columns["epoch"], columns["diff"], strict=True))
    assert list(rows.sizes) == [0, 2, 4, 6, 8, 10, 12]
    entered = sum(d for d in columns["diff"] if d > 0)
    assert sum(size.entered for size in rows.sizes.values()) == entered
    assert sum(size.left for size in rows.sizes.values()) == -sum(d for d in columns["diff"] if d < 0)
    rows.release()


def test_laid_out_rows_do_not_depend_on_how_they_came(spark: SparkSession) -> None:
    """Other partitions, another order: the same writers with the same rows. A retried task relies on it."""
    frame = spark.range(2000).selectExpr("id % 17 AS a", "cast(id % 5 AS string) AS b", "id % 4 AS epoch")
    one = epoch_rows(frame.coalesce(1), writers=2)
    other = epoch_rows(frame.orderBy(F.rand(5)).repartition(7), writers=2)
    one_sent, other_sent = (
        [tuple(row) for row in rows.frame.withColumn("w", F.spark_partition_id()).collect()]
        for rows in (one, other)
    )
    assert one_sent == other_sent


def test_laid_out_numbers_are_widened_and_diffs_default_to_one(spark: SparkSession) -> None:
    frame = spark.range(3).selectExpr(
        "cast(id AS int) AS a",
        "cast(id AS float) AS b",
        "id = 1 AS c",
        "cast(id AS string) AS `d.e`",
        "0 AS at",
    )
    rows = epoch_rows(frame, epoch="at")
    types = [
        ("a", "bigint"),
        ("b", "double"),
        ("c", "boolean"),
        ("d.e", "string"),
        ("epoch", "bigint"),
        ("diff", "bigint"),
    ]
    assert rows.frame.dtypes == types
    assert rows.sizes == {0: EpochSize(entered=3, left=0)}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"user": [1, None, 3], "epoch": [0, 0, 1]}, "1 row of the DataFrame has no value in column 'user'"),
        ({"user": [1, 2, 3], "epoch": [None, None, 3]}, "2 rows of the DataFrame have no epoch"),
        ({"user": [1, 2], "epoch": [0, -4]}, "an epoch below 0, for example:\n  user 2, epoch -4, diff 1"),
        ({"user": [1, 2], "epoch": [0, 0], "diff": [0, 1]}, "a diff of 0"),
        ({"user": [1, 2], "epoch": [0, 0], "diff": [None, 1]}, "no value in column 'diff'"),
        ({"user": [1], "epoch": ["0"]}, "the epoch column 'epoch' is string, not a whole number"),
        (
            {"user": [1], "when": [0]},
            "there is no column 'epoch' for the epoch; the DataFrame has user, when",
        ),
        (
            {"user": [[1]], "epoch": [0]},
            "column 'user' is array<bigint>. A collection can have columns of these",
        ),
        ({"epoch": [0]}, "no data column"),
    ],
)
def test_checked_what_has_no_place_in_a_collection_is_refused_by_name(
    spark: SparkSession, columns: dict[str, list[object]], message: str
) -> None:
    kept = spark.sparkContext._jsc.getPersistentRDDs().size()
    with pytest.raises(InputFormatError) as raised:
        epoch_rows(frame_of(spark, **columns), diff="diff" if "diff" in columns else None)
    assert message in str(raised.value)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == kept, "Spark forgets what was refused"


def test_checked_two_columns_of_one_name_are_refused(spark: SparkSession) -> None:
    with pytest.raises(InputFormatError, match="the same name: a, a, epoch"):
        epoch_rows(spark.sql("SELECT 1 AS a, 2 AS a, 0 AS epoch"))


def test_checked_names_of_our_own_are_refused_for_data(spark: SparkSession) -> None:
    with pytest.raises(InputFormatError, match="'diff' has a name that is reserved"):
        epoch_rows(spark.sql("SELECT 1 AS diff, 0 AS epoch"))


@given(
    st.dictionaries(st.integers(0, 40), st.integers(0, 18), max_size=20),
    st.integers(0, 20),
    st.integers(0, 60),
    st.integers(1, 30),
)
def test_chunks_are_consecutive_epochs_of_bounded_rows(
    rows: dict[int, int], start: int, epochs: int, rows_max: int
) -> None:
    chunks = chunks_of(rows, range(start, start + epochs), rows_max)
    assert [epoch for chunk in chunks for epoch in chunk] == list(range(start, start + epochs))
    for chunk in chunks:
        filled = [rows[epoch] for epoch in chunk if rows.get(epoch)]
        assert len(filled) <= 1 or sum(filled) <= rows_max
    for chunk, following in zip(chunks, chunks[1:], strict=False):
        assert sum(rows.get(epoch, 0) for epoch in chunk) + rows[following.start] > rows_max, "no sooner"
