"""Columns and rows of an output as Spark wants them.

form_*       which columns
written_*    columns of a DataFrame that is written, that of diffs above all
batches_*    rows in batches of exactly that schema
repeated_*   as often as they are there
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T

from timely.errors import MisuseError
from timely.limits import SNAPSHOT_ROWS_MAX
from timely.spark.source.columns import (
    arrow_form,
    as_batches,
    check_requested,
    check_written,
    repeated,
    spark_form,
    with_diff,
)

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("any", pa.binary(), metadata={"naiad": "any"}),
    ]
)


def test_form_is_that_of_the_output_with_its_nulls_and_of_changes_with_epoch_and_diff() -> None:
    form = spark_form(SCHEMA, (), are_changes=False)
    assert [(f.name, f.dataType, f.nullable) for f in form] == [
        ("id", T.LongType(), False),
        ("name", T.StringType(), True),
        ("at", T.TimestampType(), True),
        ("any", T.BinaryType(), True),
    ]
    assert spark_form(SCHEMA, ("name",), are_changes=True).names == ["name", "epoch", "diff"]


def test_form_is_refused_column_by_column() -> None:
    with pytest.raises(MisuseError, match="no column 'a', 'b'; there are id, name, at, any"):
        spark_form(SCHEMA, ("id", "a", "b"), are_changes=False)
    form = spark_form(SCHEMA, (), are_changes=False)
    check_requested(form, T.StructType([form["name"], form["id"]]))
    asked = T.StructType().add("id", "string").add("nam", "string").add("at", "timestamp")
    with pytest.raises(MisuseError, match="'id' is bigint, not string; 'nam' is not there$"):
        check_requested(form, asked)


def test_form_has_no_column_twice_and_epoch_and_diff_only_of_changes() -> None:
    with pytest.raises(MisuseError, match="the option 'columns' names 'id' more than once"):
        spark_form(SCHEMA, ("id", "name", "id"), are_changes=False)
    hint = r"Changes, by .option\('startingEpoch', 0\), have 'diff', which 'columns' need not name$"
    with pytest.raises(MisuseError, match=rf"no column 'diff'; there are .*\. {hint}"):
        spark_form(SCHEMA, ("id", "diff"), are_changes=True)
    form = spark_form(SCHEMA, (), are_changes=False)
    with pytest.raises(MisuseError, match=rf"'diff' is not there\. {hint}"):
        check_requested(form, T.StructType([form["id"], T.StructField("diff", T.LongType())]))


WRITTEN = T.StructType().add("id", "long").add("times", "integer").add("half", "double").add("diff", "string")


@pytest.mark.parametrize(
    ("columns", "diff", "said"),
    [
        (
            "id",
            "times",
            "'diff' names 'times', which the DataFrame does not have: its columns are id bigint$",
        ),
        (
            "id times",
            "Times",
            "'diff' names 'Times', .* its columns are id bigint, times int; 'times' is not one",
        ),
        (
            "id half",
            "half",
            r"diffs, 'half', is double, and has to be of whole numbers \(tinyint, smallint, int",
        ),
        ("id diff", "diff", "diffs, 'diff', is string, and has to be"),
        ("id", "id", "'diff' names 'id', which is one of them: diffs are a column beside those"),
        ("id diff", None, r"'diff' is not one of them: .option\('diff', 'diff'\) if it says how often a row"),
    ],
)
def test_written_diffs_are_refused_with_what_they_are_and_have_to_be(
    columns: str, diff: str | None, said: str
) -> None:
    form = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    with pytest.raises(MisuseError, match=said):
        check_written(T.StructType([WRITTEN[name] for name in columns.split()]), form, diff, "rows")


def test_written_diffs_are_called_diff_and_are_never_null() -> None:
    table = pa.table({"id": [1, 2, 3], "times": [1, None, None]})
    assert with_diff(table, None) is table
    assert with_diff(table.slice(0, 1), "times").to_pydict() == {"id": [1], "diff": [1]}
    with pytest.raises(MisuseError, match=r"diffs, 'times', is null in 2 of 3 rows .* coalesce\(times, 1\)"):
        with_diff(table, "times")


def test_batches_have_exactly_the_schema_that_is_wanted() -> None:
    exact = arrow_form(spark_form(SCHEMA, ("id", "at"), are_changes=False))
    table = pa.table({"id": [1, 2], "at": pa.array([0, None], pa.timestamp("us", "UTC"))})
    (batch,) = as_batches(pa.concat_tables([table.slice(0, 0), table]), exact)
    assert batch.schema.equals(exact) and batch.to_pydict() == table.to_pydict()


@given(st.lists(st.integers(0, 4), max_size=20))
def test_repeated_rows_are_there_as_often_as_is_said(times: list[int]) -> None:
    table = pa.table({"row": np.arange(len(times))})
    found = [
        row for part in repeated(table, np.array(times, dtype=np.int64)) for row in part["row"].to_pylist()
    ]
    assert found == [row for row, count in enumerate(times) for _ in range(count)]


def test_repeated_in_tables_of_bounded_length() -> None:
    parts = list(repeated(pa.table({"row": [7, 8]}), np.array([3 << 20, 1], dtype=np.int64)))
    assert [part.num_rows for part in parts] == [1 << 20] * 3 + [1]
    assert parts[-1].to_pydict() == {"row": [8]}


def test_repeated_less_than_never_or_without_end_is_refused() -> None:
    table = pa.table({"row": [7, 8]})
    with pytest.raises(MisuseError, match="negative number of times"):
        list(repeated(table, np.array([1, -1], dtype=np.int64)))
    with pytest.raises(MisuseError, match="repeats some rows"):
        list(repeated(table, np.array([SNAPSHOT_ROWS_MAX, 1], dtype=np.int64)))
