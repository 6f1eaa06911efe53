"""Types of nested values, as texts and as other libraries have them."""

from __future__ import annotations

import random

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nested_values import nested_type
from pyspark.sql import types as T

from differential.columns.column_types import as_column_type
from differential.columns.foreign.nested_names import nested_parts, split_outside
from differential.columns.schema import Schema
from differential.errors import SchemaError


@given(st.integers(0, 2**32))
def test_a_type_is_read_back_from_its_text_and_from_its_arrow_type(seed: int) -> None:
    type_ = nested_type(random.Random(seed))
    assert as_column_type(str(type_)) == type_
    assert as_column_type(type_.arrow_of_values()).or_null(type_.nullable) == type_
    schema = Schema.of({"x": type_, "y": "int"})
    assert Schema.of(str(schema)) == schema


@pytest.mark.parametrize(
    ("spec", "type_"),
    [
        ("list<item: int64>", "array<int?>"),
        ("ARRAY<INT>", "array<int>"),
        ("map<text,array<bigint?>>", "map<string, array<int?>>"),
        ("struct<a:int,b:struct<c d:int>>", "any"),
        ("struct<a INT, `b``c` STRING?>", "struct<a: int, `b``c`: string?>"),
        ("struct<x: decimal(5, 2), y: map<int, date>>?", "struct<x: decimal(5, 2), y: map<int, date>>?"),
        ("map<array<int>, int>", "any"),
        ("array<any>", "any"),
        (T.ArrayType(T.LongType(), containsNull=False), "array<int>"),
        (T.MapType(T.StringType(), T.ArrayType(T.DateType())), "map<string, array<date?>?>"),
        (
            T.StructType([T.StructField("a", T.IntegerType(), False), T.StructField("b", T.StringType())]),
            "struct<a: int, b: string?>",
        ),
        (T.ArrayType(T.DecimalType(38, 2)), "array<decimal(38, 2)?>"),
        (T.ArrayType(T.DayTimeIntervalType()), "any"),
        (pl.List(pl.Struct({"a": pl.Date})), "array<struct<a: date?>?>"),
        (pl.Array(pl.Int8, 3), "array<int?>"),
        (pl.List(pl.Duration), "any"),
        (pd.ArrowDtype(pa.list_(pa.int64())), "array<int?>"),
        (pa.list_(pa.int64(), 2), "array<int?>"),
        (pa.large_list(pa.binary()), "array<bytes?>"),
        (pa.map_(pa.string(), pa.field("value", pa.bool_(), nullable=False)), "map<string, bool>"),
        (pa.list_(pa.duration("s")), "any"),
        (pa.sparse_union([pa.field("a", pa.int64())]), "any"),
    ],
)
def test_nested_types_of_other_libraries(spec: object, type_: str) -> None:
    assert str(as_column_type(spec)) == type_


def test_what_no_type_can_have_is_refused() -> None:
    with pytest.raises(SchemaError, match="two fields are called 'a'"):
        as_column_type("struct<a: int, a: string>")
    with pytest.raises(SchemaError, match="'array<int' is not a column type"):
        as_column_type("array<int")


def test_commas_within_brackets_and_backticks_part_nothing() -> None:
    assert list(split_outside("a: map<int, int>, b: decimal(3, 1),`c,`: int")) == [
        "a: map<int, int>",
        " b: decimal(3, 1)",
        "`c,`: int",
    ]
    assert nested_parts("int") is None and nested_parts("map<int>") is None
