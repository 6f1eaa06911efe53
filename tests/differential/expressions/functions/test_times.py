"""Functions of dates and timestamps: against Python's calendar."""

from __future__ import annotations

import calendar
import datetime as dt

import pytest
from expression_values import NOON, values_of
from hypothesis import example, given
from hypothesis import strategies as st

from differential import Schema, col, lit
from differential.columns.rows import Row
from differential.errors import ExpressionError, RowError
from differential.expressions.expression import Expr
from differential.expressions.functions.times import DAY_MICROS

TIMES = Schema.of("t: timestamp, d: date, e: date?, n: int, s: string")
moments = st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2400, 1, 1), timezones=st.just(dt.UTC))
days = st.dates(dt.date(1600, 1, 1), dt.date(2400, 1, 1))
rows_of_times = st.lists(
    st.tuples(moments, days, st.none() | days, st.integers(-3000, 3000), st.just("")), min_size=1, max_size=5
)


def month_later(day: dt.date, months: int) -> dt.date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def monday(day: dt.date) -> dt.date:
    return day - dt.timedelta(days=day.weekday())


CODES = [f"%{code}" for code in "aAwdbBmyYHIpMSfzZjUWcxX%GuV"]


@given(rows_of_times, st.lists(st.sampled_from([*CODES, "f", ":", "é", " "]), min_size=1, max_size=6))
@example([(NOON, NOON.date(), None, 0, "")], ["%f", "%f", "%%", "f", "%f"])
def test_every_code_prints_what_python_prints(
    rows: list[tuple[dt.datetime, dt.date, dt.date | None, int, str]], parts: list[str]
) -> None:
    form = "".join([*parts, "%z"])
    printed = [t.strftime(form) for t, *_ in rows]
    assert values_of(col.t.dt.format(form), list(rows), TIMES) == printed
    assert values_of(col.e.dt.format(form), list(rows), TIMES) == [
        e and e.strftime(form) for _, _, e, *_ in rows
    ]


@pytest.mark.parametrize("code", CODES)
def test_each_code_alone_is_printed_and_read(code: str) -> None:
    assert values_of(col.t.dt.format(code), [(NOON, NOON.date(), None, 0, "")], TIMES) == [
        NOON.strftime(code)
    ]
    if code not in ("%G", "%V"):  # which Python reads only together
        form = f"%Y-%m-%d {code}" if code in "%f%p%I%%" else code
        (found,) = values_of(
            col.s.str.to_timestamp(form), [(NOON, NOON.date(), None, 0, NOON.strftime(form))], TIMES
        )
        assert isinstance(found, dt.datetime)


def test_a_fraction_is_read_back() -> None:
    form = "%Y-%m-%dT%H:%M:%S.%f%z"
    rows: list[Row] = [(NOON, NOON.date(), None, 0, "")]
    assert values_of(col.t.dt.format(form), rows, TIMES) == ["2024-02-29T12:34:56.000789+0000"]
    assert values_of(col.t.dt.format(form).str.to_timestamp(form), rows, TIMES) == [NOON]


@given(rows_of_times)
def test_against_pythons_calendar(rows: list[tuple[dt.datetime, dt.date, dt.date | None, int, str]]) -> None:
    claims = [
        (col.t.dt.year(), lambda t, d, e, n: t.year),
        (col.d.dt.quarter(), lambda t, d, e, n: (d.month + 2) // 3),
        (col.d.dt.month(), lambda t, d, e, n: d.month),
        (col.t.dt.week(), lambda t, d, e, n: t.isocalendar().week),
        (col.d.dt.day(), lambda t, d, e, n: d.day),
        (col.d.dt.day_of_year(), lambda t, d, e, n: d.timetuple().tm_yday),
        (col.e.dt.day_of_week(), lambda t, d, e, n: e and e.isoweekday()),
        (col.t.dt.hour(), lambda t, d, e, n: t.hour),
        (col.d.dt.hour(), lambda t, d, e, n: 0),
        (col.t.dt.minute(), lambda t, d, e, n: t.minute),
        (col.t.dt.second(), lambda t, d, e, n: t.second),
        (col.t.dt.microsecond(), lambda t, d, e, n: t.microsecond),
        (col.d.dt.date_trunc("year"), lambda t, d, e, n: d.replace(month=1, day=1)),
        (col.d.dt.date_trunc("week"), lambda t, d, e, n: monday(d)),
        (col.t.dt.date_trunc("hour"), lambda t, d, e, n: t.replace(minute=0, second=0, microsecond=0)),
        (col.t.dt.date_trunc("month").cast("date"), lambda t, d, e, n: t.date().replace(day=1)),
        (col.d.dt.date_diff(col.e), lambda t, d, e, n: e and (d - e).days),
        (col.d - col.e, lambda t, d, e, n: e and (d - e).days),
        (col.t.dt.date_diff(col.d), lambda t, d, e, n: (t.date() - d).days),
        (col.d.dt.date_diff(col.t, "month"), lambda t, d, e, n: (d.year - t.year) * 12 + d.month - t.month),
        (col.d.dt.date_diff(col.t, "week"), lambda t, d, e, n: (monday(d) - monday(t.date())).days // 7),
        (col.d.dt.date_diff(col.t, "year"), lambda t, d, e, n: d.year - t.year),
        (col.d.dt.add_days(col.n), lambda t, d, e, n: d + dt.timedelta(days=n)),
        (col.t.dt.add_days(col.n), lambda t, d, e, n: t + dt.timedelta(days=n)),
        (col.d.dt.add_months(col.n), lambda t, d, e, n: month_later(d, n)),
        (col.t.dt.add_months(col.n), lambda t, d, e, n: month_later(t, n)),
        (col.t.dt.format("%Y-%m-%d %H:%M:%S"), lambda t, d, e, n: t.strftime("%Y-%m-%d %H:%M:%S")),
        (col.d.dt.format("%d.%m.%Y").str.to_date("%d.%m.%Y"), lambda t, d, e, n: d),
        (col.t.cast("date"), lambda t, d, e, n: t.date()),
        (col.t.cast("string").cast("timestamp"), lambda t, d, e, n: t),
        (col.d.cast("string").cast("date"), lambda t, d, e, n: d),
    ]
    for expr, plain in claims:
        assert values_of(expr, list(rows), TIMES) == [plain(*row[:4]) for row in rows], expr


def test_texts_are_read_in_the_form_that_is_given_and_no_other() -> None:
    row: Row = (NOON, NOON.date(), None, 0, "30.2.2024")
    with pytest.raises(RowError, match=r"does not have the given form in the row with s='30.2.2024'"):
        values_of(col.s.str.to_date("%d.%m.%Y"), [row], TIMES)
    assert values_of(col.s.str.try_to_date("%d.%m.%Y"), [row], TIMES) == [None]
    read = lit("29.2.2024 1:02:03.5").str.to_timestamp("%d.%m.%Y %H:%M:%S.%f")
    assert values_of(read, [row], TIMES) == [dt.datetime(2024, 2, 29, 1, 2, 3, 500_000, dt.UTC)]


@pytest.mark.parametrize("count", [2**31, 2**62, -(2**62), -(2**63), 10**9, 100_000 * 365, -(10**6)])
def test_what_leaves_the_range_of_times_stops_the_dataflow(count: int) -> None:
    row: Row = (NOON, NOON.date(), None, count, "")
    for expr in (col.t.dt.add_days(col.n), col.d.dt.add_months(col.n), col.t.dt.add_months(col.n)):
        with pytest.raises(RowError, match="leaves the years"):
            values_of(expr, [row], TIMES)
    assert DAY_MICROS == 86_400 * 10**6


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        (col.t.dt.date_trunc("fortnight"), "takes one of year, quarter"),
        (col.s.dt.year(), "year takes date or timestamp for 't'"),
        (col.s.str.to_date("yyyy-MM-dd"), "has no codes: they are those of strftime"),
        (col.t.dt.format("%Q"), "has the code '%Q'; there are %a %A %w"),
        (col.t.dt.format("%Y %"), "has the code '%'; there are"),
        (col.d.dt.format("%-d.%m."), "has the code '%-'; there are"),
        (col.s.str.to_date("%F"), "has the code '%F'; there are"),
        (col.s.str.to_date("%G-%V"), "no text is read in the form '%G-%V': ISO year directive"),
        (col.d + 1, "add_days"),
        (col.d == "2024-01-01", r"write dt.date\(2024, 2, 29\)"),
    ],
)
def test_what_has_no_meaning_says_what_to_write(expr: Expr, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        expr.type_in(TIMES)


def test_the_first_and_the_last_day_can_be_reached_and_none_beyond() -> None:
    first, last = dt.date(1, 1, 1), dt.date(9999, 12, 31)
    ends: list[Row] = [(NOON, first, None, 1, ""), (NOON, last, None, -1, "")]
    assert values_of(col.d.dt.add_days(col.n), ends, TIMES) == [dt.date(1, 1, 2), dt.date(9999, 12, 30)]
    assert values_of(col.d.dt.add_months(col.n), ends, TIMES) == [dt.date(1, 2, 1), dt.date(9999, 11, 30)]
    for day, count in ((first, -1), (last, 1)):
        at = dt.datetime.combine(day, dt.time(23, 59, 59, 999_999), dt.UTC)
        assert values_of(col.t.dt.add_days(col.n), [(at, day, None, 0, "")], TIMES) == [at]
        for expr in (col.d.dt.add_days(col.n), col.t.dt.add_days(col.n), col.t.dt.add_months(col.n)):
            with pytest.raises(RowError, match="leaves the years 1 to 9999"):
                values_of(expr, [(at, day, None, count, "")], TIMES)
