"""Days and months against DuckDB and a slow twin of Spark's rules."""

from __future__ import annotations

import calendar
import datetime as dt
import math

import pytest
from duckdb_values import against_duckdb
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.columns.rows import Row
from differential.errors import ExpressionError, RowError
from differential.expressions.expression import Expr

FIRST, LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)
DATES = [dt.date(2024, 1, 25) + dt.timedelta(days=17 * n) for n in range(-60, 60)]
DATES += [
    FIRST,
    LAST,
    dt.date(1900, 2, 28),
    dt.date(2000, 2, 29),
    dt.date(1969, 12, 31),
    dt.date(1582, 10, 10),
]
TIMES = [dt.datetime(day.year, day.month, day.day, n % 24, n % 60, 3 * n % 60, 7 * n, tzinfo=dt.UTC)
         for n, day in enumerate(DATES)]  # fmt: skip


def of(expr: Expr, *values: object, type_: str) -> list[object]:
    """The values of an expression over `v`."""
    return values_of(expr, [(value,) for value in values], Schema.of(f"v: {type_}"))


def test_days_are_those_of_duckdb() -> None:
    v = col.v
    both = [
        (v.dt.last_day(), "last_day(v)"), (dd.dayofweek(v), "dayofweek(v) + 1"),
        (dd.weekday(v), "isodow(v) - 1"), (v.dt.iso_year(), "isoyear(v)"),
        (dd.dayname(v), "left(dayname(v), 3)"), (dd.monthname(v), "left(monthname(v), 3)"),
        (dd.extract("doy", v), "extract(doy from v)"), (dd.date_part("WEEK", v), "extract(week from v)"),
        (v.dt.date(), "v::DATE"),
        *((dd.trunc(v, unit), f"date_trunc('{word}', v)::DATE") for unit, word in (
            ("YEAR", "year"), ("mm", "month"), ("quarter", "quarter"), ("Mon", "month"))),
    ]  # fmt: skip
    against_duckdb("date?", [None, *DATES], [*both, (dd.unix_date(v), "v - DATE '1970-01-01'")])
    seconds = [
        (dd.unix_seconds(v), "floor(epoch(v))::BIGINT"),
        (dd.unix_timestamp(v), "epoch_us(v) // 1000000"), (dd.unix_micros(v), "epoch_us(v)"),
        (dd.extract("SECOND", v), "((epoch_us(v) % 60000000 + 60000000) % 60000000 / 1e6)::DECIMAL(8, 6)"),
        (dd.date_trunc("WEEK", v), "date_trunc('week', v)"), (dd.date_trunc("DD", v), "date_trunc('day', v)"),
        (dd.from_unixtime(v.dt.unix_seconds()), "strftime(v, '%Y-%m-%d %H:%M:%S')"),
        (dd.timestamp_micros(v.cast("int")), "v"),
        (dd.timestamp_millis(dd.unix_millis(v)), "date_trunc('ms', v)"),
    ]  # fmt: skip
    within = [None, *(time for time in TIMES if time.year > 1)]
    against_duckdb("timestamp?", within, [*both, *seconds])


def test_the_next_day_of_a_name_is_a_week_away_at_most() -> None:
    for name, number in (
        ("Mon", 1),
        ("tu", 2),
        ("WEDNESDAY", 3),
        ("Thu", 4),
        ("fr", 5),
        ("sat", 6),
        ("SU", 7),
    ):
        for day, found in zip(DATES, of(col.v.dt.next_day(name), *DATES[:-5], type_="date"), strict=False):
            assert isinstance(found, dt.date) and found.isoweekday() == number and 0 < (found - day).days <= 7
    with pytest.raises(ExpressionError, match="'Mo n' is no day of the week"):
        col.v.dt.next_day("Mo n").type_in(Schema.of("v: date"))
    with pytest.raises(RowError, match="leaves the years 1 to 9999"):
        of(col.v.dt.next_day("Mon"), LAST, type_="date")


def months_between(end: dt.datetime, start: dt.datetime) -> float:
    """What Spark's documentation says, one pair at a time."""
    whole = (end.year - start.year) * 12 + end.month - start.month
    lasts = [t.day == calendar.monthrange(t.year, t.month)[1] for t in (end, start)]
    if end.day == start.day or all(lasts):
        return float(whole)
    in_day = [t.hour * 3600 + t.minute * 60 + t.second for t in (end, start)]
    seconds = (end.day - start.day) * 86_400 + in_day[0] - in_day[1]
    return math.floor((whole + seconds / (31 * 86_400)) * 1e8 + 0.5) / 1e8


def test_months_between_are_counted_as_by_spark() -> None:
    pairs = [(end, start) for end in TIMES[::7] for start in TIMES[::5]]
    rows: list[Row] = [(end, start) for end, start in pairs]
    have = values_of(dd.months_between(col.a, col.b), rows, Schema.of("a: timestamp, b: timestamp"))
    assert have == [months_between(end, start) for end, start in pairs]
    documented: list[Row] = [(dt.datetime(1997, 2, 28, 10, 30, tzinfo=dt.UTC), dt.date(1996, 10, 30))]
    schema = Schema.of("a: timestamp, b: date")
    assert values_of(dd.months_between(col.a, col.b), documented, schema) == [3.94959677]


def test_a_date_is_made_of_three_numbers_or_there_is_none() -> None:
    schema = Schema.of("y: int, m: int, d: int?")
    rows: list[Row] = [(day.year, day.month, day.day) for day in DATES]
    made = dd.make_date(col.y, col.m, col.d)
    assert values_of(made, [*rows, (2024, 1, None)], schema) == [*DATES, None]
    for wrong in ((2023, 2, 29), (0, 1, 1), (10000, 1, 1), (2024, 13, 1), (2024, 4, 31), (2024, 1, 2**62)):
        with pytest.raises(RowError, match="is no date"):
            values_of(made, [wrong], schema)


def test_a_field_that_does_not_exist_is_told_with_those_that_do() -> None:
    with pytest.raises(
        ExpressionError, match=r"extract\('fortnight', …\) .* there is no such field. There are: year"
    ):
        dd.extract("fortnight", col.v)
