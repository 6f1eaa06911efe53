"""Functions of SQL: numbers of times, which DuckDB is asked for too."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal

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


PARTS = {
    "duckdb": (
        *(f"extract({field} from x)" for field in (
            "dow", "dayofweek", "isodow", "isoyear", "week", "doy", "year", "quarter", "month", "day")),
        "isodow(x)", "dayofweek(x)",
    ),
    "postgres": tuple(f"extract({field} from x)" for field in ("dow", "isodow", "isoyear", "week", "doy")),
}  # fmt: skip


@pytest.mark.parametrize("dialect", PARTS)
def test_parts_of_times_are_counted_as_in_the_dialect(dialect: str) -> None:
    """Spark counts days of the week from 1, Postgres and DuckDB from 0. DuckDB tells both."""
    days = [dt.date(2023, 12, 30) + dt.timedelta(days) for days in range(12)] + [dt.date(1969, 2, 28), None]
    times = [None if day is None else dt.datetime(day.year, day.month, day.day, 23, 59, 58, 999_999, dt.UTC)
             for day in days]  # fmt: skip
    for type_, values in (("date", days), ("timestamp", times)):
        texts = list(PARTS[dialect])
        if (dialect, type_) == ("duckdb", "timestamp"):
            texts += ["extract(second from x)", "extract(seconds from x)"]
        shown = ", ".join(f"{text} as c{place}" for place, text in enumerate(texts))
        with timely.connect(embedded=True) as cluster:
            cluster.sql(f"create table t (x {type_})")
            cluster.flow("t").input("t").insert([(value,) for value in values])
            cluster.flow("t").seal()
            answer = cluster.sql(f"select {shown} from t", dialect=dialect).collect()
        with duckdb.connect() as database:
            database.execute(f"CREATE TABLE t (x {type_})")
            plain = [
                value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value for value in values
            ]
            database.executemany("INSERT INTO t VALUES (?)", [[value] for value in plain])
            wanted = database.execute(f"select {shown} from t").fetchall()
        assert Counter(tuple(row.values()) for row in answer) == Counter(wanted)


def test_days_of_the_week_and_seconds_of_spark_and_postgres_are_not_those_of_duckdb() -> None:
    saturday = dt.datetime(2023, 12, 30, 23, 59, 58, 999_999, dt.UTC)
    text = "select extract(dow from x) as d, extract(second from x) as s from t"
    with timely.connect(embedded=True) as cluster:
        cluster.sql("create table t (x timestamp)")
        cluster.flow("t").input("t").insert([(saturday,)])
        cluster.flow("t").seal()
        for dialect, day in (("spark", 7), ("postgres", 6)):
            (row,) = cluster.sql(text, dialect=dialect).collect()
            assert tuple(row.values()) == (day, Decimal("58.999999"))


def test_isnan_is_that_of_duckdb_and_refused_where_it_is_another() -> None:
    values = [float("nan"), 1.5, float("inf"), None]
    with timely.connect(embedded=True) as cluster, duckdb.connect() as database:
        cluster.sql("create table t (x double, n bigint, s string)")
        cluster.flow("t").input("t").insert([(value, 1, "a") for value in values])
        cluster.flow("t").seal()
        text = "select isnan(x) as x, isnan(n) as n, isnan(null) as m from t"
        answer = cluster.sql(text, dialect="duckdb").collect()
        database.execute("CREATE TABLE t (x DOUBLE, n BIGINT)")
        database.executemany("INSERT INTO t VALUES (?, 1)", [[value] for value in values])
        assert Counter(tuple(row.values()) for row in answer) == Counter(database.execute(text).fetchall())
        for wrong, dialect, why in (
            ("isnan(x)", "postgres", "no function of Postgres"),
            ("isnan(s)", "duckdb", "takes a number; the operand is string"),
            ("isodow(cast('2024-01-01' as date))", "postgres", "in texts of the dialect duckdb only"),
            ("isodow(cast('2024-01-01' as date))", "spark", "in texts of the dialect duckdb only"),
        ):
            with pytest.raises(dd.SqlError, match=why):
                cluster.sql(f"select {wrong} from t", dialect=dialect)
