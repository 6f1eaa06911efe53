"""Schemas of other libraries: an input need not be declared twice. Spark's own: in `tests/spark/`."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import differential as dd
import timely
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


DAY = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
FRAME = pl.DataFrame(
    {
        "i": pl.Series([1, 2], dtype=pl.UInt16),
        "f": [0.5, None],
        "p": pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(8, 2)),
        "b": [True, None],
        "d": [DAY.date(), None],
        "t": [DAY, None],
        "n": pl.Series([DAY.replace(tzinfo=None), None], dtype=pl.Datetime("ns")),
        "s": ["x", None],
        "c": pl.Series(["x", None], dtype=pl.Categorical),
        "e": pl.Series(["x", None], dtype=pl.Enum(["x", "y"])),
        "y": [b"x", None],
        "l": [[1, 2], None],
        "m": [{"k": 1}, None],
    }
)


def test_polars_columns_have_their_types_and_may_be_null() -> None:
    given = (
        "i: int?, f: float?, p: decimal(8, 2)?, b: bool?, d: date?, t: timestamp?, n: timestamp?, "
        "s: string?, c: string?, e: string?, y: bytes?, l: array<int?>?, m: struct<k: int?>?"
    )
    assert [str(Schema.of(spec)) for spec in (FRAME, FRAME.schema, FRAME.lazy())] == [given] * 3
    alone = given.replace("?,", ",").removesuffix("?")
    assert str(Schema.of(dict(FRAME.schema))) == alone, "types alone say nothing of nulls"


def test_polars_frame_declares_an_input_and_goes_in_and_out_of_it() -> None:
    def build(flow: timely.Dataflow) -> None:
        dd.input(flow, "rows", FRAME).output("rows")

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert(FRAME)
        flow.input("rows").remove(FRAME.tail(1))
        flow.seal()
        back = pl.from_arrow(flow.output("rows").snapshot())
        assert isinstance(back, pl.DataFrame)
        plain = FRAME.select(pl.exclude("i", "n", "c", "e"))
        assert back.select(plain.columns).equals(plain.head(1))
        assert back.select("i", "c", "e").rows() == [(1, "x", "x")]
        assert back["n"].to_list() == [DAY]


def test_polars_columns_that_no_type_takes_are_named() -> None:
    spec = pl.DataFrame({"at": [1], "took": [dt.timedelta(1)]})
    with pytest.raises(SchemaError, match="column 'took': \"Duration.* is not a column type"):
        Schema.of(spec)
    with pytest.raises(SchemaError, match="column 'a': 'Time' is not a column type"):
        Schema.of({"a": pl.Time})


@pytest.mark.parametrize("data", [FRAME.lazy(), FRAME["s"]], ids=["lazy", "series"])
def test_polars_things_that_are_no_table_are_told_what_to_write(data: object) -> None:
    with pytest.raises(SchemaError, match=r"is not a table.\n.*collect\(\).*to_frame\(\)"):
        to_table(data, Schema.of("s: string?"))


def test_polars_columns_of_objects_are_refused_for_what_comes_are_addresses() -> None:
    frame = pl.DataFrame({"n": [1, 2], "a": [{1, 2}, {3}]})
    for kind in ("any", "bytes"):
        with pytest.raises(SchemaError, match=r"column 'a': Polars .*dtype Object.*\n.* frame\.rows\(\)"):
            to_table(frame, Schema.of(f"n: int, a: {kind}"))
    assert to_table(frame.select("n"), Schema.of("n: int")).num_rows == 2
