"""Which epochs there are: one, the values of a column, the steps of a window.

column_*    different values in their order, over all inputs
window_*    steps over numbers, dates and times; against looking at each row
refused_*   no such column, no value, no order, too many
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from timely.errors import MisuseError
from timely.spark.errors import InputFormatError
from timely.spark.jobs.calendar import _ticks, calendar_of
from timely.spark.jobs.spans import Window, growing, sliding, tumbling


def frame(spark: SparkSession, values: str, columns: str = "k, at") -> DataFrame:
    return spark.sql(f"SELECT * FROM VALUES {values} AS t({columns})")


def dated(calendar_of_frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in calendar_of_frame.collect())


def test_column_without_one_all_rows_come_at_once(spark: SparkSession) -> None:
    rows = frame(spark, "(1, 5), (2, 6)")
    calendar = calendar_of({"rows": rows}, None, None)
    assert (calendar.count, calendar.column, calendar.values()) == (1, "", None)
    assert dated(calendar.dated(rows, ["k", "at"])) == [(1, 5, 0), (2, 6, 0)]


@pytest.mark.parametrize(
    ("values", "in_order"),
    [
        ("(1, 30), (2, 7), (3, 30), (4, -2)", [-2, 7, 30]),
        ("(1, 'b'), (2, 'a'), (3, 'b'), (4, '')", ["", "a", "b"]),
        (
            "(1, date'2024-02-01'), (2, date'2024-01-31'), (3, date'2024-02-01'), (4, date'1999-01-01')",
            [dt.date(1999, 1, 1), dt.date(2024, 1, 31), dt.date(2024, 2, 1)],
        ),
    ],
)
def test_column_values_in_their_order_are_epochs(
    spark: SparkSession, values: str, in_order: list[object]
) -> None:
    rows = frame(spark, values)
    calendar = calendar_of({"rows": rows}, "at", None)
    told = calendar.values()
    assert told is not None and told.to_pylist() == in_order and calendar.count == 3
    assert dated(calendar.dated(rows, ["k"])) == [(1, 2), (2, 1), (3, 2), (4, 0)]


def test_column_of_several_inputs_makes_common_epochs_and_others_are_there_from_the_first(
    spark: SparkSession,
) -> None:
    one, two = frame(spark, "(1, 5), (2, 9)"), frame(spark, "(3, 7)")
    fixed = frame(spark, "(4, 1)", "k, other")
    calendar = calendar_of({"one": one, "two": two, "fixed": fixed}, "at", None)
    told = calendar.values()
    assert told is not None and told.to_pylist() == [5, 7, 9]
    assert dated(calendar.dated(one, ["k"])) == [(1, 0), (2, 2)]
    assert dated(calendar.dated(two, ["k"])) == [(3, 1)]
    assert dated(calendar.dated(fixed, ["k"])) == [(4, 0)]


@pytest.mark.parametrize(
    ("window", "kind"),
    [
        (tumbling("10 seconds", on="at"), "bigint"),
        (sliding("25 seconds", every="10 seconds", on="at"), "timestamp"),
        (growing(every="10 seconds", on="at"), "timestamp_ntz"),
    ],
    ids=["tumbling", "sliding", "growing"],
)
def test_window_holds_what_came_up_to_its_end(spark: SparkSession, window: Window, kind: str) -> None:
    times = {1: 1_000, 2: 1_001, 3: 1_010, 4: 1_017, 5: 1_044, 6: 1_010}
    seconds = frame(spark, ", ".join(f"({key}, {time}L)" for key, time in times.items()))
    made = "at" if kind == "bigint" else f"cast(timestamp_seconds(at) AS {kind}) AS at"
    rows = seconds.selectExpr("k", made)
    calendar = calendar_of({"rows": rows}, None, window)
    ends = [1_000, 1_010, 1_020, 1_030, 1_040, 1_050]
    told = calendar.values()
    assert told is not None and calendar.count == len(ends)
    plain = [end if isinstance(end, int) else int(end.timestamp()) for end in told.to_pylist()]
    assert plain == ends
    changes = [row.asDict() for row in calendar.dated(rows, ["k"]).collect()]
    held: Counter[int] = Counter()
    length = {"tumbling": 10, "sliding": 25, "growing": 1 << 30}[window.kind]
    for epoch, end in enumerate(ends):
        for change in changes:
            if change["epoch"] == epoch:
                held[change["k"]] += change.get("diff", 1)
        wanted = {key for key, time in times.items() if end - length < time <= end}
        assert {key for key, count in held.items() if count} == wanted and set(held.values()) <= {0, 1}


SPRING = [
    dt.datetime(2024, 3, 10, 1, 30),
    dt.datetime(2024, 3, 10, 2, 30),
    dt.datetime(2024, 3, 10, 2, 59, 59, 999_999),
    dt.datetime(2024, 3, 10, 3, 30),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1583, 2, 28),
]
"""Without a zone: in New York there is nothing between two and three on that day."""


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_window_takes_times_without_a_zone_as_they_are_in_every_session(new_york: SparkSession) -> None:
    spring = SPRING[:4]
    rows = frame(new_york, ", ".join(f"({k}, timestamp_ntz'{at}')" for k, at in enumerate(spring)))
    calendar = calendar_of({"rows": rows}, None, growing(every="1 hour", on="at"))
    told = calendar.values()
    assert told is not None
    assert [end.hour for end in told.to_pylist()] == [2, 3, 4]
    assert dated(calendar.dated(rows, ["k"])) == [(0, 0), (1, 1), (2, 1), (3, 2)]


def test_window_counts_microseconds_before_1970_too(new_york: SparkSession) -> None:
    rows = frame(new_york, ", ".join(f"({k}, timestamp_ntz'{at}')" for k, at in enumerate(SPRING)))
    counted = rows.select("k", _ticks("at", T.TimestampNTZType()).alias("ticks")).collect()
    start, micro = dt.datetime(1970, 1, 1), dt.timedelta(microseconds=1)
    assert dict(map(tuple, counted)) == {k: (at - start) // micro for k, at in enumerate(SPRING)}


def test_column_of_times_that_the_session_does_not_have(new_york: SparkSession) -> None:
    rows = frame(new_york, ", ".join(f"({k}, timestamp_ntz'{at}')" for k, at in enumerate(SPRING)))
    calendar = calendar_of({"rows": rows}, "at", None)
    told = calendar.values()
    assert told is not None and told.to_pylist() == sorted(SPRING)
    assert dated(calendar.dated(rows, ["k"])) == [(0, 2), (1, 3), (2, 4), (3, 5), (4, 1), (5, 0)]
    twice = frame(new_york, "(1, timestamp'2024-11-03 05:30:00Z'), (2, timestamp'2024-11-03 06:30:00Z')")
    calendar = calendar_of({"rows": twice}, "at", None)
    assert dated(calendar.dated(twice, ["k"])) == [(1, 0), (2, 1)], "01:30 comes twice on that day"


def test_names_of_our_own_are_free_for_columns(spark: SparkSession) -> None:
    rows = frame(spark, "(1, 10, 5), (2, 20, 6)", "k, _Epoch_At, at")
    for made in ({"epochs": "at", "window": None}, {"epochs": None, "window": growing(every=1, on="at")}):
        calendar = calendar_of({"rows": rows}, **made)  # type: ignore[arg-type]
        assert dated(calendar.dated(rows, ["k", "_Epoch_At"])) == [(1, 10, 0), (2, 20, 1)]


def test_window_over_days_ends_on_days(spark: SparkSession) -> None:
    rows = frame(spark, "(1, date'2024-02-28'), (2, date'2024-03-01')")
    calendar = calendar_of({"rows": rows}, None, tumbling("1 day", on="at"))
    told = calendar.values()
    assert told is not None
    assert [end.date() for end in told.to_pylist()] == [dt.date(2024, 2, 28 + day) for day in (0, 1)] + [
        dt.date(2024, 3, 1)
    ]
    assert dated(calendar.dated(rows, ["k"])) == [(1, 0, 1), (1, 1, -1), (2, 2, 1)]


def test_window_may_begin_and_end_elsewhere_and_stop(spark: SparkSession) -> None:
    rows = frame(spark, "(1, 100L), (2, 119L)")
    window = sliding(10, every=10, on="at", first=95, last=130, epochs=2)
    calendar = calendar_of({"rows": rows}, None, window)
    told = calendar.values()
    assert told is not None and told.to_pylist() == [105, 115]
    assert dated(calendar.dated(rows, ["k"])) == [(1, 0, 1), (1, 1, -1)]
    assert "from 95" in calendar.describe()
    days = frame(spark, "(1, date'2024-02-28')")
    from_day = calendar_of({"rows": days}, None, growing(every="7 days", on="at", first=dt.date(2024, 2, 26)))
    told = from_day.values()
    assert told is not None and told.to_pylist()[0].date() == dt.date(2024, 3, 4)


@pytest.mark.parametrize(
    ("values", "epochs", "window", "message"),
    [
        ("(1, 2)", "day", None, "no input has the column 'day' that is to make epochs: rows has k, at"),
        ("(1, 2), (2, null), (3, null)", "at", None, "input 'rows': 2 rows without a value in 'at'"),
        ("(1, array(1))", "at", None, "'at' is array<int>: epochs are made of numbers"),
        ("(1, 2L), (2, null)", None, tumbling(10, on="at"), "1 row without a value in 'at'"),
        ("(1, 'x')", None, tumbling(10, on="at"), r"'at' is string: a window .* Write to_timestamp\('at'\)"),
        ("(1, 0L), (2, 1341100972000L)", None, tumbling(10, on="at"), "more than 1,000,000 epochs"),
        ("(1, date'2024-01-01')", None, tumbling("1 day", on="at", first=7), "give a date or a datetime"),
    ],
)
def test_refused_columns_that_make_no_epochs(
    spark: SparkSession, values: str, epochs: str | None, window: Window | None, message: str
) -> None:
    with pytest.raises(MisuseError, match=message) as raised:
        calendar_of({"rows": frame(spark, values)}, epochs, window)
    assert "\n" not in str(raised.value)


def test_refused_epochs_without_rows_and_types_that_differ(spark: SparkSession) -> None:
    rows = frame(spark, "(1, 2L)")
    with pytest.raises(InputFormatError, match="no input has a row with a time in 'at'"):
        calendar_of({"rows": rows.limit(0)}, None, tumbling(10, on="at"))
    with pytest.raises(InputFormatError, match="no input has a row, so there is no epoch: 'at' has no value"):
        calendar_of({"rows": rows.limit(0)}, "at", None)
    with pytest.raises(InputFormatError, match="is bigint in 'rows', string in 'more'. Cast it to one type"):
        calendar_of({"rows": rows, "more": frame(spark, "(1, 'x')")}, "at", None)
    with pytest.raises(MisuseError, match="give epochs= or window=, not both"):
        calendar_of({"rows": rows}, "at", tumbling(10, on="at"))
