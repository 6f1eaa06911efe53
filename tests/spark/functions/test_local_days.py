"""Local days and hours are those of Spark with this session time zone, around changes of the clocks."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from clock_changes import CHANGES, instants
from expression_values import values_of

import differential as dd
from differential import Schema, col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
PARTS = ("year", "month", "weekofyear", "day", "dayofyear", "hour", "minute", "second")
MIDNIGHT_TWICE = "America/Havana"
"""There Spark begins one day at two instants: for times behind the change at the second midnight."""

MIDNIGHT_SKIPPED = "America/Toronto"
"""There Spark begins a day at 01:00, so that some times of the day are before its beginning."""


@pytest.mark.parametrize("zone", [zone for zone in CHANGES if zone != MIDNIGHT_SKIPPED])
def test_days_weeks_hours_and_their_parts_are_those_of_spark(spark: SparkSession, zone: str) -> None:
    from pyspark.sql import functions as F

    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    times = instants(zone)
    micros = [(time - epoch) // dt.timedelta(microseconds=1) for time in times]
    units = [unit for unit in UNITS if (zone, unit) != (MIDNIGHT_TWICE, "day")]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        x = F.timestamp_micros(F.col("v"))
        columns = [F.unix_micros(F.date_trunc(unit, x)) for unit in units]
        columns += [getattr(F, part)(x) for part in PARTS]
        columns += [F.unix_date(x.cast("date")), F.from_unixtime(F.unix_timestamp(x)), F.dayofweek(x)]
        frame = spark.createDataFrame([(value, at) for at, value in enumerate(micros)], "v bigint, at int")
        named = [column.alias(f"c{at}") for at, column in enumerate(columns)]
        theirs = [tuple(row) for row in frame.orderBy("at").select(*named).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    v = col.v
    ours = [dd.unix_micros(dd.date_trunc(unit, v, zone)) for unit in units]
    ours += [getattr(dd, part)(v, zone) for part in PARTS]
    ours += [dd.unix_date(v.dt.date(zone)), dd.from_unixtime(dd.unix_timestamp(v), zone=zone)]
    ours += [dd.dayofweek(v, zone)]
    schema = Schema.of("v: timestamp")
    have = [values_of(expr, [(time,) for time in times], schema) for expr in ours]
    for place, expr in enumerate(ours):
        for time, value, row in zip(times, have[place], theirs, strict=True):
            assert value == row[place], f"{expr} at {time}: {value} here, {row[place]} in Spark"
