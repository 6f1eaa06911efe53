"""From Spark's columns to an input's and back; what cannot travel is named with its type and a way out.

refused_*   columns without a place in a collection
fitted_*    what a builder declares against what a DataFrame has
back_*      packed values as Spark's types, or as text
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from differential.columns.column_types import ANY_METADATA
from differential.columns.symbols.arrow_values import with_values
from differential.columns.symbols.packing import pack, unpack
from timely.spark.errors import InputFormatError, OutputError
from timely.spark.jobs.columns import SparkForm, fitted_fields, input_fields, nested_types


def test_fields_are_those_of_the_frame_without_the_ones_that_say_when(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS k, 'x' AS t, date'2024-01-01' AS day, -1 AS diff")
    fields = input_fields("rows", frame, ["day", "diff"])
    assert fields.simpleString() == "struct<k:int,t:string>"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("map(array('a'), 1)", r"is map<array<string>,int>, which .* withColumn\('x', map_entries\('x'\)\)"),
        ("array(map(array('a'), 1))", r"is array<map<array<string>,int>>, which .* Write withColumn"),
        ("interval '1' day", r"is interval day, which .*cast\('string'\)\), or drop\('x'\)"),
        ("null", r"is void, which .*cast\('string'\)\), or another type"),
        ("collate('a', 'UTF8_LCASE')", r"is string collate UTF8_LCASE, which .*cast\('string'\)\): texts"),
        ("array(timestamp_ntz'2024-03-10 02:30:00')", r"is array<timestamp_ntz>, which .*to_json\('x'\)"),
        ("parse_json('1')", r"is variant, which .*drop\('x'\)"),
    ],
)
def test_refused_column_by_name_type_and_what_to_write(
    spark: SparkSession, column: str, message: str
) -> None:
    with pytest.raises(InputFormatError, match=f"input 'rows': column 'x' {message}") as raised:
        input_fields("rows", spark.sql(f"SELECT 1 AS k, {column} AS x"), [])
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1 AS k, 2 AS k", "two columns are called 'k'"),
        ("SELECT 1 AS k, 2 AS epoch", "a column cannot be called 'epoch', which tables of changes use"),
        ("SELECT 1 AS k, 2 AS Diff", "a column cannot be called 'Diff', which tables of changes use"),
        ("SELECT 1 AS day", r"no column besides those that say when rows come \(day\)"),
    ],
)
def test_refused_names(spark: SparkSession, query: str, message: str) -> None:
    with pytest.raises(InputFormatError, match=message):
        input_fields("rows", spark.sql(query), ["day"])


def test_fitted_columns_are_those_declared_in_their_order(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 'u' AS more, cast(2 AS smallint) AS dst, array(1) AS tags, 1L AS src")
    packed = pa.field("tags", pa.binary(), False, metadata=ANY_METADATA)
    declared = pa.schema([pa.field("src", pa.int64(), False), pa.field("dst", pa.int64(), True), packed])
    fields = fitted_fields("edges", frame, declared, [])
    assert [(field.name, field.nullable) for field in fields] == [
        ("src", False),
        ("dst", True),
        ("tags", False),
    ]
    with pytest.raises(InputFormatError, match="'src' is string in the query and bigint in the DataFrame"):
        fitted_fields("edges", frame, pa.schema([("src", pa.string())]), [])
    with pytest.raises(InputFormatError, match="takes src, cost; the DataFrame has no cost, but more, dst"):
        fitted_fields("edges", frame, pa.schema([("src", pa.int64()), ("cost", pa.int64())]), [])


def packed_table(*values: object) -> pa.Table:
    """A column `tags` of packed values."""
    field = pa.field("tags", pa.binary(), metadata=ANY_METADATA)
    array = pa.array([None if each is None else pack(each) for each in values], pa.binary())
    return pa.Table.from_arrays([array], schema=pa.schema([field]))


def test_back_a_nested_column_has_the_type_of_the_input_of_its_name(spark: SparkSession) -> None:
    frame = spark.sql("SELECT array(named_struct('a', 1L, 'b', 'x')) AS tags")
    nested = nested_types({"rows": input_fields("rows", frame, [])})
    form = SparkForm("result", nested, unpack)
    table = form.of(packed_table([{"a": 1, "b": "x"}], None))
    assert table.to_pylist() == [{"tags": [{"a": 1, "b": "x"}]}, {"tags": None}]
    assert spark.createDataFrame(table).dtypes == [("tags", "array<struct<a:bigint,b:string>>")]
    with pytest.raises(OutputError, match="output 'result': column 'tags' is list.* something else here"):
        form.of(packed_table("text"))


def test_back_what_is_in_no_input_is_text() -> None:
    form = SparkForm("result", {}, unpack)
    assert form.of(packed_table([1, "é"], {"a": 2}, "plain", None)).column("tags").to_pylist() == [
        '[1, "é"]',
        '{"a": 2}',
        "plain",
        None,
    ]
    values = with_values(packed_table([1, "é"], b"plain bytes", None))
    assert form.of(values).equals(form.of(packed_table([1, "é"], b"plain bytes", None))), "as a flow has them"
    untouched = pa.table({"k": [1]})
    assert form.of(untouched) is untouched
