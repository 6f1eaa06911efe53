"""Schemas of other libraries: an input need not be declared twice."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pytest

from differential.columns.foreign.schemas import foreign_fields
from differential.columns.schema import Schema
from differential.columns.tables import to_table
from differential.errors import SchemaError


@dataclass
class FakeType:
    name: str

    def simpleString(self) -> str:
        return self.name


@dataclass
class FakeField:
    name: str
    dataType: FakeType
    nullable: bool


@dataclass
class FakeStruct:
    fields: list[FakeField]


def test_arrow_says_of_each_field_whether_it_may_be_null() -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.decimal128(9, 2))])
    assert str(Schema.of(schema)) == "a: int, b: decimal(9, 2)?"
    assert Schema.of(schema.empty_table()) == Schema.of(schema)


def test_spark_is_read_by_its_names() -> None:
    struct = FakeStruct(
        [FakeField("a", FakeType("bigint"), False), FakeField("b", FakeType("decimal(10,2)"), True)]
    )
    assert str(Schema.of(struct)) == "a: int, b: decimal(10, 2)?"


def test_pandas_columns_may_be_null_where_numpy_has_nulls() -> None:
    frame = pd.DataFrame({"i": [1], "f": [0.5], "s": ["x"], "t": pd.to_datetime(["2024-01-01"])})
    frame["n"] = pd.array([None], dtype="Int64")
    assert str(Schema.of(frame)) == "i: int, f: float, s: string?, t: timestamp?, n: int?"
    assert str(Schema.of(frame.dtypes)) == "i: int, f: float, s: any?, t: timestamp?, n: int?"
    assert to_table(frame, Schema.of(frame)).num_rows == 1


def test_what_is_no_schema_is_refused() -> None:
    assert foreign_fields({"a": int}) is None
    with pytest.raises(SchemaError, match="no schema"):
        Schema.of(5)
