"""Local times around changes of the clocks: against Python's zoneinfo, a walk by minutes, and DuckDB."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from clock_changes import CHANGES, MINUTE, instants
from duckdb_values import against_duckdb
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.columns.rows import Row
from differential.errors import ExpressionError, RowError
from differential.expressions.arithmetic.local_times import local_of, utc_of

T = Schema.of("v: timestamp?")


def words(times: list[dt.datetime]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Times in microseconds since 1970, by the clock."""
    epoch = dt.datetime(1970, 1, 1)
    return np.array([(t.replace(tzinfo=None) - epoch) // dt.timedelta(microseconds=1) for t in times])


def day_begins(at: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    """The first minute of the last two days at which the clock shows the day of `at`, or later."""
    day = at.astimezone(zone).date()
    walk = (at + (n - 2 * 1440) * MINUTE for n in range(2 * 1440 + 1))
    return next(each for each in walk if each.astimezone(zone).date() >= day)


def hour_begins(at: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    """The last minute, up to `at`, at which a clock shows a full hour, or comes from another hour."""
    while True:
        shown, before = at.astimezone(zone), (at - MINUTE).astimezone(zone)
        if shown.minute == 0 or before.replace(minute=0, tzinfo=None) != shown.replace(minute=0, tzinfo=None):
            return at
        at -= MINUTE


@pytest.mark.parametrize("zone", CHANGES)
def test_clocks_show_what_pythons_do_and_are_read_as_by_python(zone: str) -> None:
    times = instants(zone)
    info = ZoneInfo(zone)
    local = [time.astimezone(info).replace(tzinfo=None) for time in times]
    assert local_of(words(times), zone).tolist() == words(local).tolist()
    clocks = [time.replace(tzinfo=None) + n * 15 * MINUTE for time in local[:60] for n in (-4, -1, 0, 1, 4)]
    read = [clock.replace(tzinfo=info).astimezone(dt.UTC) for clock in clocks]
    assert utc_of(words(clocks), zone).tolist() == words(read).tolist()


@pytest.mark.parametrize("zone", CHANGES)
def test_days_and_hours_begin_where_a_walk_by_minutes_finds_them(zone: str) -> None:
    times = instants(zone)
    rows: list[Row] = [(time,) for time in times]
    info = ZoneInfo(zone)
    days = [day_begins(time, info) for time in times]
    assert values_of(col.v.dt.date_trunc("day", zone), rows, T) == days
    assert values_of(col.v.dt.date_trunc("hour", zone), rows, T) == [hour_begins(t, info) for t in times]
    assert values_of(col.v.dt.date(zone), rows, T) == [time.astimezone(info).date() for time in times]
    firsts = [time.astimezone(info).date().replace(day=1) for time in times]
    assert values_of(dd.trunc(col.v, "month", zone), rows, T) == firsts


@pytest.mark.parametrize("zone", CHANGES)
def test_parts_of_local_times_are_those_of_duckdb(zone: str) -> None:
    v, names = col.v, ("year", "quarter", "month", "day", "hour", "minute", "second")
    claims = [(getattr(v.dt, name)(zone), f"{name}(v)") for name in names]
    claims += [
        (v.dt.week(zone), "week(v)"), (v.dt.iso_year(zone), "isoyear(v)"),
        (v.dt.day_of_year(zone), "dayofyear(v)"),
        (v.dt.day_of_week(zone), "isodow(v)"), (dd.dayofweek(v, zone), "dayofweek(v) + 1"),
        (v.dt.date(zone), "v::DATE"), (v.dt.format("%d.%m.%Y %H:%M", zone), "strftime(v, '%d.%m.%Y %H:%M')"),
    ]  # fmt: skip
    if zone not in ("America/Havana", "America/Toronto"):  # midnights that are there twice, or skipped
        claims += [
            (v.dt.date_trunc(unit, zone), f"date_trunc('{unit}', v)") for unit in ("day", "week", "month")
        ]
    against_duckdb("timestamp?", [None, *instants(zone)], claims, zone)


def test_a_local_time_of_no_day_or_of_two_is_read_as_by_spark() -> None:
    def read(*clock: int) -> object:
        expr = dd.to_utc_timestamp(col.v, "Europe/Rome")
        return values_of(expr, [(dt.datetime(*clock, tzinfo=dt.UTC),)], T)[0]  # type: ignore[misc,arg-type]

    assert read(2024, 3, 31, 2, 30) == dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC), "03:30 by the clock"
    assert read(2024, 10, 27, 2, 30) == dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC), "the first"
    assert values_of(dd.from_utc_timestamp(col.v, "Asia/Tokyo"), [(None,)], T) == [None]


def test_a_date_is_the_same_in_every_zone() -> None:
    rows: list[Row] = [(dt.date(2024, 3, 31),)]
    schema = Schema.of("v: date")
    for zone in ("Pacific/Apia", "America/New_York"):
        assert values_of(col.v.dt.day(zone), rows, schema) == [31]
        assert values_of(col.v.dt.hour(zone), rows, schema) == [0]
        assert values_of(col.v.dt.date_trunc("month", zone), rows, schema) == [dt.date(2024, 3, 1)]


def test_far_from_today_there_is_a_time_or_an_error() -> None:
    first = dt.datetime(1, 1, 1, 0, 30, tzinfo=dt.UTC)
    last = dt.datetime(9999, 12, 31, 23, 30, tzinfo=dt.UTC)
    with pytest.raises(RowError, match="leaves the years 1 to 9999"):
        values_of(col.v.dt.in_zone("America/New_York"), [(first,)], T)
    assert values_of(col.v.dt.year("America/New_York"), [(first,), (last,)], T) == [0, 9999]
    assert values_of(col.v.dt.year("Asia/Tokyo"), [(first,), (last,)], T) == [1, 10000]
    wide = Schema.of("v: int")
    assert len(values_of(col.v.cast("timestamp").dt.hour("Asia/Tokyo"), [(2**62,), (-(2**62),)], wide)) == 2


@pytest.mark.parametrize(
    "zone", ["", "Europe/Atlantis", "../etc/passwd", "/etc/localtime", "\x00", "a" * 500]
)
def test_what_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(ExpressionError, match="is no time zone that this machine knows"):
        col.v.dt.hour(zone).type_in(T)
    with pytest.raises(ExpressionError, match="are not printed in a zone"):
        col.v.dt.format("%H %z", "Europe/Rome").type_in(T)
