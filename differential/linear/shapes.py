"""Shapes of windows over a column of times, and clocks: what time is it at the end of an epoch?

    tumbling(minutes=5)                          one after another: every time is in one window
    sliding(timedelta(hours=1), timedelta(minutes=5))   overlapping
    session(minutes=30, by="user")               as long as something happens
    clock(start, every=minutes(1))               the end of epoch k is start + k · every

For columns of timestamps, lengths are `datetime.timedelta`, or the same written as keywords; for dates, too,
in whole days. For columns of integers they are whole numbers, in whatever unit the column has. A window
includes its start and excludes its end. Windows begin at `origin`, and repeat from there in both directions.
The default origin is the zero of the column: 1970-01-01 UTC for timestamps, 1970-01-01, a Thursday, for
dates. So windows of a day are UTC days; for weeks that begin on Mondays write `origin=date(2024, 1, 1)`. A
moment without a time zone is read as UTC, like values of rows and constants. Spark: `window`; Flink: TUMBLE,
HOP.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from timely.user_code.call_site import call_site

from ..columns.column_types import ColumnType
from ..columns.rows import datetime_to_micros
from ..columns.schema import Schema
from ..errors import SchemaError
from ..expressions.arithmetic.local_times import check_zone
from ..expressions.expression import Expr
from ..other_spellings import written_as
from .sliding import TIME_MAX

__all__ = [
    "Clock",
    "Length",
    "Moment",
    "Session",
    "Sliding",
    "Tumbling",
    "clock",
    "lengths_of",
    "session",
    "sliding",
    "time_type",
    "tumbling",
    "words_of_length",
    "words_of_moment",
]

Length = int | dt.timedelta
Moment = int | dt.datetime | dt.date

_UNITS: Final = {
    "timestamp": dt.timedelta(microseconds=1),
    "date": dt.timedelta(days=1),
    "int": None,
}
_PART: Final = re.compile(r"(\d+) *(microsecond|millisecond|second|minute|hour|day|week)s?\b", re.IGNORECASE)
_WRITTEN: Final = re.compile(rf" *(?:{_PART.pattern} *)+", re.IGNORECASE)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAYS_MAX: Final = 1 << 28
_WINDOWS_MAX: Final = 100_000
"""Most windows of one row: each makes a row of its own."""


@dataclass(frozen=True)
class Tumbling:
    """Windows of `size` one after another, of days in a `zone` if there is one. Made by `tumbling`."""

    size: Length
    origin: Moment | None = None
    zone: str | None = None


@dataclass(frozen=True)
class Sliding:
    """Windows of `size`, one beginning every `every`. Made by `sliding`."""

    size: Length
    every: Length
    origin: Moment | None = None


@dataclass(frozen=True)
class Session:
    """Windows of rows less than `gap` apart, by the columns `by`. Made by `session`."""

    gap: Length
    by: tuple[str | Expr, ...]


@dataclass(frozen=True)
class Clock:
    """At the end of epoch k it is `start` + k · `every`. Made by `clock`."""

    start: Moment
    every: Length


def tumbling(
    size: Length | str | None = None,
    *,
    origin: Moment | None = None,
    zone: str | None = None,
    **parts: float,
) -> Tumbling:
    """Return windows of one length, one after another: `tumbling(minutes=5)`, `tumbling(timedelta(days=1))`.

    For a column of integers: `tumbling(100)`. Spark's texts are lengths, too: `tumbling("10 minutes")`.
    `parts` are those of `datetime.timedelta`. With a `zone`, windows are local days of it, or several, and so
    23 or 25 hours long where the clocks change: `tumbling(days=1, zone="Europe/Rome")`; they begin at the day
    of `origin`. Raises SchemaError for a length that is not positive, and if there is no such zone.
    """
    if zone is not None:
        try:
            check_zone(zone)
        except ValueError as error:
            raise SchemaError(f"tumbling(zone={zone!r}) ({call_site()}): {error}") from error
    return Tumbling(_length("tumbling", size, parts), origin, zone)


@written_as("sliding('1 hour', '10 minutes'): how long they are, and how often one begins")
def sliding(size: Length | str, every: Length | str, *, origin: Moment | None = None) -> Sliding:
    """Return windows of `size`, one beginning every `every`.

    `sliding(timedelta(hours=1), timedelta(minutes=5))`, for instance. A row is in ⌈size / every⌉ windows and
    becomes as many rows. Raises SchemaError for lengths that are not positive, or if a row would be in
    more than 100,000 windows.
    """
    return Sliding(_length("sliding", size, {}), _length("sliding", every, {}), origin)


def session(
    gap: Length | str | None = None, *, by: str | Expr | Iterable[str | Expr] = (), **parts: float
) -> Session:
    """Return windows that follow from the rows: `session(minutes=30, by="user")`.

    Rows of equal `by` (without `by`, all rows) share a window with the next row if that is less than `gap`
    later. A window begins with its first row, and ends `gap` after its last.
    """
    return Session(_length("session", gap, parts), (by,) if isinstance(by, str | Expr) else tuple(by))


def clock(start: Moment, every: Length | str | None = None, **parts: float) -> Clock:
    """Return a clock that gives epochs times: epoch 0 is sealed at `start`, each later one `every` later.

    `clock(datetime(2024, 1, 1, tzinfo=UTC), minutes=1)`, for dates `clock(date(2024, 1, 1), days=1)`, for
    times that are integers `clock(0, 10)`. A datetime without a time zone is read as UTC, as in rows. The
    client that feeds the dataflow must seal accordingly; epochs may be empty. Raises SchemaError for a step
    that is not positive.
    """
    return Clock(start, _length("clock", every, parts))


def _length(what: str, length: Length | str | None, parts: dict[str, float]) -> Length:
    if isinstance(length, str) and not parts and _WRITTEN.fullmatch(length):
        each = [dt.timedelta(**{f"{unit.lower()}s": int(count)}) for count, unit in _PART.findall(length)]
        length = sum(each, dt.timedelta())
    if parts and length is None:
        try:
            length = dt.timedelta(**parts)
        except TypeError as error:
            raise SchemaError(
                f"{what}({', '.join(parts)}=…) ({call_site()}): a length is written with weeks, days, hours, "
                "minutes, seconds, milliseconds, microseconds"
            ) from error
    elif parts or not isinstance(length, int | dt.timedelta) or isinstance(length, bool):
        parted = f", or as in {what}(minutes=5)" if what in ("tumbling", "session", "clock") else ""
        raise SchemaError(
            f"{what} ({call_site()}) takes one length: a timedelta, '5 minutes'{parted}; "
            "or, over a column of integers, a whole number"
        )
    if not length or length != abs(length):
        raise SchemaError(f"{what} ({call_site()}): {length} is not a positive length")
    return length


def time_type(schema: Schema, name: str, what: str) -> ColumnType:
    """Return the type of a column that holds times; SchemaError for a type that cannot."""
    type_ = schema[name].type
    if type_.kind not in _UNITS:
        raise SchemaError(
            f"{what} ({call_site()}): {name!r} is {type_}; times are timestamps, dates, or integers in "
            "a unit of your own"
        )
    return type_


def words_of_length(length: Length | str, type_: ColumnType, what: str) -> int:
    """Return a length in units of a column."""
    unit = _UNITS[type_.kind]
    if isinstance(length, str):
        length = _length(what, length, {})
    if unit is None:
        if isinstance(length, dt.timedelta):
            raise SchemaError(
                f"{what} ({call_site()}): the column of times is {type_}, so lengths are whole numbers in "
                f"its unit, "
                f"not {length}"
            )
        units = length
    else:
        if not isinstance(length, dt.timedelta):
            raise SchemaError(
                f"{what} ({call_site()}): the column of times is {type_}, so lengths are timedeltas, or "
                f"texts as '5 minutes', not {length}"
            )
        units = length // unit
        if unit * units != length:
            raise SchemaError(
                f"{what} ({call_site()}): the column of times is {type_}, so lengths are whole days, as in "
                f"days=1 or weeks=2, not {length}"
            )
    if units > (_DAYS_MAX if type_.kind == "date" else TIME_MAX):
        raise SchemaError(f"{what} ({call_site()}): {length} is too long")
    return units


def words_of_moment(moment: Moment | None, type_: ColumnType, what: str) -> int:
    """Return a moment in units of a column; for None, the column's zero."""
    unit = _UNITS[type_.kind]
    if moment is None:
        return 0
    if unit is None and isinstance(moment, int) and not isinstance(moment, bool):
        units = moment
    elif type_.kind == "date" and isinstance(moment, dt.date) and not isinstance(moment, dt.datetime):
        units = (moment - _EPOCH.date()).days
    elif type_.kind == "timestamp" and isinstance(moment, dt.datetime):
        units = datetime_to_micros(moment)
    else:
        noun = {"int": "whole number", "date": "date"}.get(type_.kind, "datetime")
        raise SchemaError(
            f"{what} ({call_site()}): the column of times is {type_}, so a moment is a {noun}, not {moment!r}"
        )
    if abs(units) > TIME_MAX:
        raise SchemaError(f"{what} ({call_site()}): {moment} is too far away")
    return units


def lengths_of(shape: Tumbling | Sliding, type_: ColumnType) -> tuple[int, int, int]:
    """Return size, every and origin in units of the column."""
    size = words_of_length(shape.size, type_, "window")
    every = words_of_length(shape.every, type_, "window") if isinstance(shape, Sliding) else size
    if -(-size // every) > _WINDOWS_MAX:
        raise SchemaError(
            f"window ({call_site()}): each row would be in {-(-size // every):,} windows, and become as many "
            f"rows; at most {_WINDOWS_MAX:,} may be. Aggregate by a tumbling window of {shape.size} first"
        )
    return size, every, words_of_moment(shape.origin, type_, "window")
