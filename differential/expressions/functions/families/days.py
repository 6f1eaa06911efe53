"""Functions of days, months, weekdays and seconds since 1970, with the meaning that they have in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from differential.columns.column_types import Bools, ColumnType, Int64s, date, floating, integer
from differential.expressions.functions.function import TIMES, Function, Numpy, Param, Values, always
from differential.expressions.functions.times import DAY_MICROS

__all__ = ["DAYS"]

_LAST_DAY: Final = 2_932_896
"""The last day of year 9999, Python's limit, from 1970 on."""

_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FIRST_WEEKDAY: Final = 3
"""1970-01-01 was a Thursday; Monday is 0."""

_SECONDS_OF_31_DAYS: Final = 31 * 86_400
_T: Final = Param("t", TIMES)


def _split(values: Values, type_: ColumnType) -> tuple[Int64s, Int64s]:
    """Return the days, and the microseconds since their beginning."""
    words = cast("Int64s", values)
    if type_.kind == "date":
        return words, np.zeros_like(words)
    days, rest = np.divmod(words, DAY_MICROS)
    return days, rest


def _months(days: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the months since 1970, the day in them from 0 on, and the number of days that they have."""
    months = days.astype("M8[D]").astype("M8[M]")
    first = months.astype("M8[D]").astype(np.int64)
    after = (months + 1).astype("M8[D]").astype(np.int64)
    return months.astype(np.int64), days - first, after - first


def _last_day(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    days, _ = _split(columns[0], types[0])
    _, day, length = _months(days)
    return days - day + length - 1, None


def _weekday_of(name: str) -> int | None:
    """Return the number of a day of the week, Monday is 0, by its name or the first 2 or 3 letters of it."""
    asked = name.strip().lower()
    for number, weekday in enumerate(_WEEKDAYS):
        if asked in (weekday, weekday[:3], weekday[:2]):
            return number
    return None


def _next_day(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    days, _ = _split(columns[0], types[0])
    target = cast("int", _weekday_of(cast("str", constants[0])))
    moved = days + (target - days - _FIRST_WEEKDAY - 1) % 7 + 1
    return moved, moved <= _LAST_DAY


def _check_weekday(constants: Sequence[object]) -> None:
    if _weekday_of(cast("str", constants[0])) is None:
        raise ValueError(f"{constants[0]!r} is no day of the week: they are {', '.join(_WEEKDAYS)}")


def _months_between(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    """Return whole months from day to same day, or from last to last; else by months of 31 days, as Spark."""
    (days, micros), (start_days, start_micros) = (
        _split(column, type_) for column, type_ in zip(columns, types, strict=True)
    )
    month, day, length = _months(days)
    start_month, start_day, start_length = _months(start_days)
    whole = month - start_month
    is_whole = (day == start_day) | ((day == length - 1) & (start_day == start_length - 1))
    seconds = (day - start_day) * 86_400 + micros // 1_000_000 - start_micros // 1_000_000
    between = whole + seconds / float(_SECONDS_OF_31_DAYS)
    return np.where(is_whole, whole, np.floor(between * 1e8 + 0.5) / 1e8), None


def _make_date(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    year, month, day = (cast("Int64s", column) for column in columns)
    is_there = (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    months = np.where(is_there, (year - 1970) * 12 + month - 1, 0)
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    days = first + np.where(is_there, day - 1, 0)
    return days, is_there & (days.astype("M8[D]").astype("M8[M]").astype(np.int64) == months)


def _unix_seconds(
    columns: Sequence[Values], constants: Sequence[object], types: Sequence[ColumnType]
) -> tuple[Values, Bools | None]:
    words = cast("Int64s", columns[0])
    return (words * 86_400 if types[0].kind == "date" else words // 1_000_000), None


def _function(
    name: str,
    params: tuple[Param, ...],
    run: Numpy,
    gives: ColumnType,
    says: str,
    *,
    spark: str = "",
    polars: str = "",
    calls: tuple[str, ...] | None = None,
) -> Function:
    accessor = None if name == "make_date" else "dt"
    return Function(
        name=name, family="dates and times", accessor=accessor, params=params, gives=always(gives), says=says,
        spark=spark or name, polars=polars, calls=calls, numpy=run,
    )  # fmt: skip


DAYS: Final = (
    _function("last_day", (_T,), _last_day, date, "The last day of its month, a date.",
              polars="dt.month_end"),
    Function(name="next_day", family="dates and times", accessor="dt",
             params=(_T, Param("weekday", ("string",), is_constant=True)), gives=always(date),
             numpy=_next_day, check=_check_weekday, may_lack=True, failure="leaves the years 1 to 9999",
             says="The first day behind it that is this day of the week: 'Monday', 'Mon' or 'mo'.",
             spark="next_day"),
    _function("months_between", (_T, Param("start", TIMES)), _months_between, floating,
              "The months since `start`: whole ones from a day to the same or from last to last; else "
              "of 31 days, to 8 digits."),
    Function(name="make_date", family="dates and times", accessor=None,
             params=(Param("year", ("int",)), Param("month", ("int",)), Param("day", ("int",))),
             gives=always(date), numpy=_make_date, may_lack=True, failure="is no date",
             says="The date of this year, month and day.", spark="make_date", polars="date"),
    _function("unix_seconds", (_T,), _unix_seconds, integer,
              "The whole seconds since 1970 in UTC, rounded down.", spark="unix_seconds",
              polars="dt.epoch('s')", calls=("unix_seconds",)),
)  # fmt: skip
"""The functions that this file defines."""
