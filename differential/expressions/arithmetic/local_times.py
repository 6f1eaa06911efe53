"""Clock times of a named time zone: from instants in UTC, and back, across changes of the clocks.

A *change* is an instant at which the offset of a zone from UTC becomes another one. Where clocks are put
forward, local times between are *skipped*; where they are put back, local times are there *twice*. A skipped
local time stands for the instant as far behind the change as it is behind the last time before, and one that
is there twice for its first instant: so do Java, Spark and PostgreSQL.

Changes come from Python's `zoneinfo`, so every worker needs the same version of the zones (of the system, or
of the package `tzdata`). They are looked up once for each zone and year, and kept as arrays; so a column
costs a binary search per row. (Arrow's own lookup needs the zones in a system's folder, and knows no rule
beyond the last change that a file lists.)
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from functools import lru_cache
from typing import Final

import numpy as np

from differential.columns.column_types import Bools, Int64s

__all__ = ["check_zone", "local_of", "starts_of", "utc_of"]

_SECOND: Final = 1_000_000
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_STEP: Final = dt.timedelta(days=1)
"""How far apart offsets are compared. Two changes of a zone are 3 days apart, or more (Freetown in 1939)."""

_YEARS: Final = (1, 9999)
_NEAR_YEARS_MAX: Final = 100
"""Up to so many years, all between the first and the last instant are looked up, without a search."""


def check_zone(zone: str) -> None:
    """Raise ValueError if there is no such time zone."""
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"{zone!r} is no time zone that this machine knows; they are named as 'Europe/Rome' or 'UTC'"
        ) from error


def local_of(micros: Int64s, zone: str) -> Int64s:
    """Return the clock times in `zone` at these instants, both in microseconds since 1970."""
    local: Int64s = micros + _offsets(micros, zone)
    return local


def utc_of(local: Int64s, zone: str) -> Int64s:
    """Return the instants at which clocks in `zone` show these times; see the module's docstring."""
    at, before, after = _changes_around(local, zone)
    # Up to this local time the offset before a change counts: where it is skipped, or there twice, too.
    ends = at + np.maximum(before[:-1], after)
    instants: Int64s = local - before[np.searchsorted(ends, local, side="right")]
    return instants


def starts_of(local: Int64s, micros: Int64s, zone: str, is_by_the_clock: bool) -> Int64s:
    """Return the instants at which stretches of local time begin that contain the instants `micros`.

    `local`: the local times at which they begin. If that is skipped, the stretch begins with the change. If
    it is there twice, a day, and what is longer, begins the first time; but an hour, or what is shorter, is
    there twice itself (`is_by_the_clock`).
    """
    at, before, after = _changes_around(np.concatenate((local, micros)), zone)
    starts = utc_of(local, zone)
    if not at.size:
        return starts
    place = np.searchsorted(at + np.minimum(before[:-1], after), local, side="right") - 1
    ends = at + np.maximum(before[:-1], after)
    is_skipped = (place >= 0) & (after[place] > before[place]) & (local < ends[place])
    starts = np.where(is_skipped, at[place], starts)
    if is_by_the_clock:
        own = _offsets(micros, zone)
        again = local - own
        is_again: Bools = _offsets(again, zone) == own
        starts = np.where(is_again, again, starts)
    return starts


def _offsets(micros: Int64s, zone: str) -> Int64s:
    at, before, _ = _changes_around(micros, zone)
    offsets: Int64s = before[np.searchsorted(at, micros, side="right")]
    return offsets


def _changes_around(micros: Int64s, zone: str) -> tuple[Int64s, Int64s, Int64s]:
    """Return the changes near these instants: when, the offsets around them (one more), those behind each."""
    if not micros.size:
        return _changes(zone, (1970,))
    # Local times are up to a day away from UTC, so the years around count, too.
    bounds = np.array([micros.min(), micros.max()])
    low, high = np.clip(_years(bounds) + (-1, 1), *_YEARS).tolist()
    if high - low <= _NEAR_YEARS_MAX:
        return _changes(zone, tuple(range(low, high + 1)))
    years = np.unique(_years(micros))
    near = np.unique(np.clip(np.concatenate((years - 1, years, years + 1)), *_YEARS))
    return _changes(zone, tuple(near.tolist()))


def _years(micros: Int64s) -> Int64s:
    years: Int64s = micros.astype("M8[us]").astype("M8[Y]").astype(np.int64) + 1970
    return years


@lru_cache(maxsize=64)
def _changes(zone: str, years: tuple[int, ...]) -> tuple[Int64s, Int64s, Int64s]:
    at: list[int] = []
    offsets: list[int] = [_changes_of_year(zone, years[0])[0]]
    for year in years:
        first, changes = _changes_of_year(zone, year)
        if first != offsets[-1]:  # it changed in a year that no instant is near to: when, matters to none
            at.append(_micros(dt.datetime(year, 1, 1, tzinfo=dt.UTC)))
            offsets.append(first)
        for instant, offset in changes:
            at.append(instant)
            offsets.append(offset)
    before = np.array(offsets, dtype=np.int64)
    return np.array(at, dtype=np.int64), before, before[1:]


@lru_cache(maxsize=20_000)
def _changes_of_year(zone: str, year: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the offset with which a year begins in UTC, and its changes: when, and the offset behind."""
    info = zoneinfo.ZoneInfo(zone)
    last = dt.datetime(year, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
    low = dt.datetime(year, 1, 1, tzinfo=dt.UTC)
    first = offset = _offset(info, low)
    changes: list[tuple[int, int]] = []
    while low < last:
        high = min(last, low + _STEP) if last - low > _STEP else last
        if _offset(info, high) != offset:
            instant = _first_behind(info, low, high)
            offset = _offset(info, instant)
            changes.append((_micros(instant), offset))
            high = instant
        low = high
    return first, tuple(changes)


def _first_behind(info: zoneinfo.ZoneInfo, low: dt.datetime, high: dt.datetime) -> dt.datetime:
    """Return the first second behind `low`, and no later than `high`, with another offset than at `low`."""
    offset = _offset(info, low)
    seconds = int((high - low).total_seconds())
    same, other = 0, seconds
    while other - same > 1:
        middle = (same + other) // 2
        if _offset(info, low + dt.timedelta(seconds=middle)) == offset:
            same = middle
        else:
            other = middle
    return low + dt.timedelta(seconds=other)


def _offset(info: zoneinfo.ZoneInfo, instant: dt.datetime) -> int:
    try:
        offset = instant.astimezone(info).utcoffset()
    except OverflowError:  # the local time is in year 0 or 10000, which Python has not: ask a day away
        day = dt.timedelta(days=1 if instant.year == _YEARS[0] else -1)
        offset = (instant + day).astimezone(info).utcoffset()
    return 0 if offset is None else round(offset.total_seconds()) * _SECOND


def _micros(instant: dt.datetime) -> int:
    return (instant - _EPOCH) // dt.timedelta(microseconds=1)
