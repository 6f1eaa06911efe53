"""Functions of dates and timestamps by the Gregorian calendar; weeks begin on Monday.

They are in UTC, unless a `zone` is given: then clocks and calendar are those of the zone, as in Spark with
`spark.sql.session.timeZone`. A date is no instant, and is the same in every zone.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Final, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Bools, ColumnType, Int64s, date, integer, string, timestamp
from differential.expressions.arithmetic.local_times import check_zone, local_of, starts_of, utc_of
from differential.expressions.functions.function import (
    TIMES,
    Function,
    Numpy,
    Param,
    Python,
    Values,
    always,
)
from timely.wire.arrow import int64_array, pc

__all__ = ["CALENDAR", "DAY_MICROS", "days_months_later", "months_later"]

DAY_MICROS: Final = 86_400_000_000
_UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
_DAYS: Final = (-719_162, 2_932_896)
"""The first day of year 1 and the last of year 9999: Python's limits. Arrow would go further."""

_MONTHS: Final = (-12 * 1969, 12 * (9999 - 1970) + 11)
_COUNT_MAX: Final = 4_000_000
"""More days or months than there are between these limits."""

_CODE: Final = re.compile(r"%.?", re.DOTALL)
_CODES: Final = "aAwdbBmyYHIpMSfzZjUWcxX%GuV"
"""The letters of the codes of strftime that Python documents.

Each code is printed as Python prints it, but years always have four digits.
"""

_CODES_SHOWN: Final = " ".join(f"%{code}" for code in _CODES)
_SAMPLE: Final = dt.datetime(2024, 2, 9, 13, 4, 6, 789012, tzinfo=dt.UTC)

_T: Final = Param("t", TIMES)
_TEXT: Final = Param("text", ("string",))
_UNIT: Final = Param("unit", ("string",), is_constant=True, choices=_UNITS)
_FORMAT: Final = Param("format", ("string",), is_constant=True)
_NUMBER: Final = Param("count", ("int",))
_ZONE: Final = Param("zone", ("string",), is_constant=True)
_IF_ZONE: Final = Param("zone", ("string",), is_constant=True, is_optional=True)
_BY_THE_CLOCK: Final = frozenset(("hour", "minute", "second", "millisecond"))


def _local(array: pa.Array, zone: object = None) -> pa.Array:
    """Return the clock times of the array in a zone, by default UTC: so kernels need not look zones up."""
    if not pa.types.is_timestamp(array.type):
        return array
    return array.cast(pa.timestamp("us")) if zone is None else _moved(array, local_of, zone)


def _moved(array: pa.Array, move: Callable[[Int64s, str], Int64s], zone: object) -> pa.Array:
    """Return timestamps without zone; below a null stands any instant, which the move must bear."""
    moved = int64_array(move(_micros(array), cast("str", zone))).cast(pa.timestamp("us"))
    return pc.if_else(array.is_valid(), moved, None) if array.null_count else moved


def _micros(array: pa.Array) -> Int64s:
    whole = array.cast(pa.timestamp("us")).cast(pa.int64())
    values: Int64s = pc.fill_null(whole, 0).to_numpy(zero_copy_only=False)
    return values


def _zone_of(constants: Sequence[object], place: int) -> object:
    return constants[place] if len(constants) > place else None


def _checked_zone(place: int) -> Callable[[Sequence[object]], None]:
    def check(constants: Sequence[object]) -> None:
        if len(constants) > place:
            check_zone(cast("str", constants[place]))

    return check


def _part(
    name: str,
    kernel: Callable[[pa.Array], pa.Array],
    says: str,
    spark: str,
    polars: str,
    calls: tuple[str, ...] | None = None,
) -> Function:
    def run(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
        return kernel(_local(columns[0], _zone_of(constants, 0)))

    return Function(
        name=name,
        family="dates and times",
        accessor="dt",
        params=(_T, _IF_ZONE),
        gives=always(integer),
        says=says,
        spark=spark,
        polars=polars,
        calls=calls,
        arrow=run,
        check=_checked_zone(0),
    )


def _clock(kernel: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    """Return a kernel for a part of the day; it returns 0 for a date."""
    return lambda array: kernel(array.cast(pa.timestamp("us")))


def _truncated(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    array, unit = columns[0], cast("str", constants[0])
    if pa.types.is_date(array.type):
        return pc.floor_temporal(array.cast(pa.timestamp("s")), unit=unit).cast(pa.date32())
    zone = _zone_of(constants, 1)
    if zone is None:
        return pc.floor_temporal(_local(array), unit=unit).cast(array.type)
    local = _micros(pc.floor_temporal(_local(array, zone), unit=unit))
    return _moved(
        array, lambda micros, zone: starts_of(local, micros, zone, unit in _BY_THE_CLOCK), zone
    ).cast(array.type)


def _difference(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    end, start = (_local(column.cast(pa.timestamp("us"))) for column in columns)
    unit = cast("str", constants[0]) if constants else "day"
    if unit == "month":
        years = pc.subtract(pc.year(end), pc.year(start))
        return pc.add(pc.multiply(years, 12), pc.subtract(pc.month(end), pc.month(start)))
    if unit == "week":
        return pc.weeks_between(start, end)
    kernels = {
        "year": pc.years_between, "quarter": pc.quarters_between, "day": pc.days_between,
        "hour": pc.hours_between, "minute": pc.minutes_between, "second": pc.seconds_between,
        "millisecond": pc.milliseconds_between,
    }  # fmt: skip
    return kernels[unit](start, end)


def _day(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    return pc.floor_temporal(_local(columns[0], _zone_of(constants, 0)), unit="day").cast(pa.date32())


def _between_zones(move: Callable[[Int64s, str], Int64s]) -> Numpy:
    def run(
        columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
    ) -> tuple[Values, Bools | None]:
        moved = move(cast("Int64s", columns[0]), cast("str", constants[0]))
        return moved, _within(moved, (_DAYS[0] * DAY_MICROS, (_DAYS[1] + 1) * DAY_MICROS - 1))

    return run


def _add_days(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    times, count = cast("Int64s", columns[0]), cast("Int64s", columns[1])
    per_day = 1 if types[0].kind == "date" else DAY_MICROS
    fits = _within(count, (-_COUNT_MAX, _COUNT_MAX))
    moved = times + np.where(fits, count, 0) * per_day  # a result that wraps is out of bounds, too
    return moved, fits & _within(moved, (_DAYS[0] * per_day, (_DAYS[1] + 1) * per_day - 1))


def _add_months(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    per_day = 1 if types[0].kind == "date" else DAY_MICROS
    return months_later(cast("Int64s", columns[0]), cast("Int64s", columns[1]), per_day)


def months_later(times: Int64s, count: Int64s, per_day: int) -> tuple[Int64s, Bools]:
    """Return the same day of another month, or its last one if it has fewer days; and where there is such a
    month. `per_day`: how many units of `times` a day has.
    """
    days, rest = np.divmod(times, per_day)
    fits = _within(count, (-_COUNT_MAX, _COUNT_MAX))
    moved, target = days_months_later(days, np.where(fits, count, 0))
    fits &= _within(target, _MONTHS)
    return np.where(fits, moved * per_day + rest, 0), fits


def days_months_later(days: Int64s, count: Int64s | int) -> tuple[Int64s, Int64s]:
    """Return the same day of another month, or its last one if it has fewer days; and that month."""
    months = days.astype("M8[D]").astype("M8[M]")
    day = days - months.astype("M8[D]").astype(np.int64)
    target = months.astype(np.int64) + count
    first = target.astype("M8[M]").astype("M8[D]").astype(np.int64)
    after = (target + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return np.minimum(first + day, after - 1), target


def _within(values: Int64s, bounds: tuple[int, int]) -> Bools:
    inside: Bools = (values >= bounds[0]) & (values <= bounds[1])  # np.abs would be negative for the least
    return inside


def _check_format(constants: Sequence[object]) -> None:
    """Raise ValueError for a format with codes that are not among `_CODES`, or without any."""
    form = cast("str", constants[0])
    if "%" not in form:
        raise ValueError(f"{form!r} has no codes: they are those of strftime, as in '%Y-%m-%d %H:%M:%S'")
    for code in _CODE.findall(form):
        if code[1:] not in _CODES or code == "%":
            raise ValueError(f"{form!r} has the code {code!r}; there are {_CODES_SHOWN}")


def _check_printed(constants: Sequence[object]) -> None:
    """Raise ValueError like `_check_format`, and for the codes of a zone where one is given."""
    _check_format(constants)
    _checked_zone(1)(constants)
    if len(constants) > 1 and {"%z", "%Z"} & set(_CODE.findall(cast("str", constants[0]))):
        raise ValueError("%z and %Z are those of UTC, and are not printed in a zone")


def _check_parsed(constants: Sequence[object]) -> None:
    """Raise ValueError like `_check_format`, and for a format in which no text can be read."""
    _check_format(constants)
    form = cast("str", constants[0])
    try:
        dt.datetime.strptime(_SAMPLE.strftime(form), form)
    except re.error as error:
        raise ValueError(f"{form!r} names a code twice") from error
    except ValueError as error:
        raise ValueError(f"no text is read in the form {form!r}: {error}") from error


def _parsed(to: ColumnType) -> Python:
    def parse(value: object, constants: Sequence[object]) -> object:
        try:
            read = dt.datetime.strptime(cast("str", value), cast("str", constants[0]))
        except ValueError:
            return None
        return read.date() if to.kind == "date" else read

    return parse


def _formatted(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    form = cast("str", constants[0])
    is_date = pa.types.is_date(columns[0].type)
    zone = {"%z": "" if is_date else "+0000", "%Z": "" if is_date else "UTC"}
    form = _CODE.sub(lambda match: zone.get(match[0], match[0]), form)
    micros = _local(columns[0], _zone_of(constants, 1)).cast(pa.timestamp("us"))
    # With microseconds, Arrow would print them behind every %S; it has no code for %f.
    seconds = pc.floor_temporal(micros, unit="second").cast(pa.timestamp("s"))
    parts = [pc.strftime(seconds, format=part) if part else part for part in _around_fractions(form)]
    if len(parts) == 1:
        return parts[0]
    digits = pc.utf8_lpad(_microseconds(micros).cast(pa.string()), 6, "0")
    pieces = [piece for part in parts for piece in (digits, part)]
    return pc.binary_join_element_wise(*pieces[1:], "")


def _around_fractions(form: str) -> list[str]:
    """Return the parts of a format between its codes %f; %%f is not such a code."""
    parts, start = [], 0
    for match in _CODE.finditer(form):
        if match[0] == "%f":
            parts.append(form[start : match.start()])
            start = match.end()
    return [*parts, form[start:]]


def _microseconds(array: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(pc.millisecond(array), 1000), pc.microsecond(array))


def _parser(
    name: str, to: ColumnType, says: str, spark: str, polars: str, failure: str | None, usage: str
) -> Function:
    return Function(
        name=name,
        family="dates and times",
        accessor="str",
        params=(_TEXT, _FORMAT),
        gives=always(to),
        says=says,
        spark=spark,
        polars=polars,
        python=_parsed(to),
        may_lack=True,
        failure=failure,
        check=_check_parsed,
        usage=usage,
    )


_BEYOND: Final = "leaves the years 1 to 9999"
_UNREAD: Final = "does not have the given form"

CALENDAR: Final = (
    _part("year", pc.year, "The year.", "year", "dt.year"),
    _part("iso_year", pc.iso_year, "The year that its week is in, by ISO 8601.", "extract(YEAROFWEEK)",
          "dt.iso_year", ()),
    _part("quarter", pc.quarter, "1 to 4.", "quarter", "dt.quarter"),
    _part("month", pc.month, "1 to 12.", "month", "dt.month"),
    _part("week", pc.iso_week, "The week of the year by ISO 8601, 1 to 53.", "weekofyear", "dt.week",
          ("weekofyear",)),
    _part("day", pc.day, "The day of the month.", "dayofmonth", "dt.day",
          ("dayofmonth", "day")),
    _part("day_of_year", pc.day_of_year, "1 to 366.", "dayofyear", "dt.ordinal_day",
          ("dayofyear",)),
    _part("day_of_week", lambda array: pc.day_of_week(array, count_from_zero=False),
          "1 (Monday) to 7 (Sunday).", "dayofweek (Sunday is 1)", "dt.weekday"),
    _part("hour", _clock(pc.hour), "0 to 23.", "hour", "dt.hour"),
    _part("minute", _clock(pc.minute), "0 to 59.", "minute", "dt.minute"),
    _part("second", _clock(pc.second), "0 to 59.", "second", "dt.second"),
    _part("microsecond", _clock(_microseconds),
          "0 to 999,999: the part beyond the second.", "", "dt.microsecond"),
    Function(name="date_trunc", family="dates and times", accessor="dt", params=(_T, _UNIT, _IF_ZONE),
             gives=lambda types: types[0], arrow=_truncated, check=_checked_zone(1),
             says="The beginning of the year, quarter, month, week, day, hour, … that the time is in.",
             spark="date_trunc('month', t)", polars="dt.truncate('1mo')", calls=()),
    Function(name="date", family="dates and times", accessor="dt", params=(_T, _IF_ZONE), gives=always(date),
             arrow=_day, check=_checked_zone(0), says="The day.", spark="to_date, cast('date')",
             polars="dt.date", calls=()),
    Function(name="in_zone", family="dates and times", accessor="dt", numpy=_between_zones(local_of),
             params=(Param("t", ("timestamp",)), _ZONE), gives=always(timestamp), may_lack=True,
             failure=_BEYOND, check=_checked_zone(0), calls=("from_utc_timestamp",),
             says="What clocks in a zone as 'Europe/Rome' show then, as a timestamp.",
             spark="from_utc_timestamp", polars="dt.convert_time_zone(…).dt.replace_time_zone(None)"),
    Function(name="from_zone", family="dates and times", accessor="dt", numpy=_between_zones(utc_of),
             params=(Param("t", ("timestamp",)), _ZONE), gives=always(timestamp), may_lack=True,
             failure=_BEYOND, check=_checked_zone(0), calls=("to_utc_timestamp",),
             says="The instant at which clocks in a zone show this; the first, if they do so twice.",
             spark="to_utc_timestamp", polars="dt.replace_time_zone(…)"),
    Function(name="date_diff", family="dates and times", accessor="dt",
             params=(_T, Param("start", TIMES),
                     Param("unit", ("string",), is_constant=True, choices=_UNITS, is_optional=True)),
             gives=always(integer), arrow=_difference,
             says="The number of days (or other units) that begin after `start` and no later than it.",
             spark="datediff", polars="(t - start).dt.total_days()"),
    Function(name="add_days", family="dates and times", accessor="dt", params=(_T, _NUMBER),
             gives=lambda types: types[0], numpy=_add_days, may_lack=True, failure=_BEYOND,
             says="`count` days later.", spark="date_add", polars="dt.offset_by('1d')", calls=("date_add",)),
    Function(name="add_months", family="dates and times", accessor="dt", params=(_T, _NUMBER),
             gives=lambda types: types[0], numpy=_add_months, may_lack=True, failure=_BEYOND,
             says="`count` months later: the same day, or the last of the month.", spark="add_months",
             polars="dt.offset_by('1mo')"),
    Function(name="format", family="dates and times", accessor="dt", params=(_T, _FORMAT, _IF_ZONE),
             gives=always(string), arrow=_formatted, of_different=True, check=_check_printed,
             says="As text, in a form as '%Y-%m-%d %H:%M:%S'.",
             spark="date_format (other codes)", polars="dt.strftime", calls=("date_format",)),
    _parser("to_date", date, "The date that is written in the form `format`, as '%Y-%m-%d'.", "to_date",
            "str.to_date", _UNREAD, "to_date(x, '%Y-%m-%d'), or x.cast('date')"),
    _parser("to_timestamp", timestamp, "The time that is written in the form `format`.", "to_timestamp",
            "str.to_datetime", _UNREAD, "to_timestamp(x, '%Y-%m-%d %H:%M:%S'), or x.cast('timestamp')"),
    _parser("try_to_date", date, "As `to_date`; null where the form is another.", "try_to_date",
            "str.to_date(strict=False)", None, "try_to_date(x, '%Y-%m-%d'), or x.try_cast('date')"),
    _parser("try_to_timestamp", timestamp, "As `to_timestamp`; null where the form is another.",
            "try_to_timestamp", "str.to_datetime(strict=False)", None,
            "try_to_timestamp(x, '%Y-%m-%d %H:%M:%S'), or x.try_cast('timestamp')"),
)  # fmt: skip
"""The functions that this file defines."""
