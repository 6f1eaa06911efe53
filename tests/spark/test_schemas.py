"""What Spark says of its columns, as a schema here; and its rows as those of an input."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import differential as dd
import timely
from differential.columns.schema import Schema
from differential.errors import SchemaError

STRUCT = T.StructType(
    [
        T.StructField("i", T.LongType(), nullable=False),
        T.StructField("small", T.ShortType()),
        T.StructField("f", T.DoubleType()),
        T.StructField("p", T.DecimalType(8, 2)),
        T.StructField("b", T.BooleanType()),
        T.StructField("d", T.DateType()),
        T.StructField("t", T.TimestampType()),
        T.StructField("n", T.TimestampNTZType()),
        T.StructField("s", T.StringType()),
        T.StructField("y", T.BinaryType()),
        T.StructField("l", T.ArrayType(T.StringType())),
    ]
)
DAY = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
ROW = (1, 2, 0.5, Decimal("1.50"), True, DAY.date(), DAY, DAY.replace(tzinfo=None), "x", b"x", ["u", "v"])


def test_fields_have_their_types_and_say_whether_they_may_be_null() -> None:
    given = (
        "i: int, small: int?, f: float?, p: decimal(8, 2)?, b: bool?, d: date?, t: timestamp?, "
        "n: timestamp?, s: string?, y: bytes?, l: array<string?>?"
    )
    assert str(Schema.of(STRUCT)) == given
    with pytest.raises(SchemaError, match="column 'took': .*interval.* is not a column type"):
        Schema.of(T.StructType([T.StructField("took", T.DayTimeIntervalType())]))


def test_frame_declares_an_input_and_its_rows_go_in(spark: SparkSession) -> None:
    frame = spark.createDataFrame([ROW, (2, *[None] * 10)], STRUCT)
    assert Schema.of(frame) == Schema.of(STRUCT)

    def build(flow: timely.Dataflow) -> None:
        dd.input(flow, "rows", frame).output("rows")

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert(frame)
        flow.seal()
        answer = flow.output("rows").snapshot()
    back = spark.createDataFrame(answer.drop_columns(["l"])).orderBy("i").collect()
    assert back[0].asDict() == {
        **dict(zip(STRUCT.names[:-1], ROW, strict=False)),
        "t": DAY.replace(tzinfo=None),
    }
    assert tuple(back[1]) == (2, *[None] * 9)
