"""Functions of SQL: numbers of times, which DuckDB is asked for too."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest
import sqlglot

import differential as dd
import timely

TIMES = [
    dt.datetime(2024, 2, 29, 12, 30, 0, 987_654, dt.UTC),
    dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 1, dt.UTC),
]
TEXT = (
    "select unix_seconds(seen) s, unix_millis(seen) ms, unix_micros(seen) us, unix_date(cast(seen as date)) d"
)


def test_times_are_numbers_since_1970() -> None:
    with timely.connect(embedded=True) as cluster:
        cluster.sql("create table t (seen timestamp)")
        cluster.flow("t").input("t").insert([(time,) for time in [*TIMES, None]])
        cluster.flow("t").seal()
        found = cluster.sql(f"{TEXT} from t").collect()
    assert {tuple(row.values()) for row in found} == {
        (1_709_209_800, 1_709_209_800_987, 1_709_209_800_987_654, 19_782),
        (0, 0, 0, 0),
        (-1, -1_000, -999_999, -1),
        (None, None, None, None),
    }
    (text,) = sqlglot.transpile(f"{TEXT} from t", read="spark", write="duckdb")
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'; CREATE TABLE t (seen TIMESTAMPTZ)")
        whole = TIMES[0].replace(microsecond=0)  # it rounds to the nearest
        database.execute("INSERT INTO t VALUES (?)", [whole])
        (row,) = database.execute(text).fetchall()
    assert row == (1_709_209_800, 1_709_209_800_000, 1_709_209_800_000_000, 19_782)


def test_a_time_as_a_number_has_the_seconds_that_spark_gives_it() -> None:
    """Our own cast has microseconds. Other dialects have no such cast."""
    with timely.connect(embedded=True) as cluster:
        cluster.sql("create table t (seen timestamp, n bigint)")
        cluster.flow("t").input("t").insert([(time, 90) for time in TIMES] + [(None, None)])
        cluster.flow("t").seal()
        text = "select cast(seen as bigint) s, try_cast(n as timestamp) t from t"
        found = cluster.sql(text).collect()
        at = dt.datetime(1970, 1, 1, 0, 1, 30, tzinfo=dt.UTC)
        assert {tuple(row.values()) for row in found} == {
            (1_709_209_800, at), (0, at), (-1, at), (None, None),
        }  # fmt: skip
        for dialect in ("postgres", "duckdb"):
            for cast in ("cast(seen as bigint)", "cast(n as timestamp)"):
                with pytest.raises(dd.SqlError, match=f"no number in {dialect}.*unix_seconds"):
                    cluster.sql(f"select {cast} from t", dialect=dialect)
