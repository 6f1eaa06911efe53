"""Which epochs are there, what does each stand for, and in which of them does a row come?

    one epoch            all rows, at once
    a column             its different values over all inputs, in their order: the first one is epoch 0
    a window             the steps of a sliding, tumbling or growing window over a column of times

Rows of inputs without that column come in the first epoch. The value of the column, or the end of the window,
is the *value* of an epoch, which outputs get with it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from timely.counted import counted
from timely.errors import MisuseError
from timely.spark.epochs import EPOCH
from timely.spark.errors import InputFormatError
from timely.spark.frames import distinct_names, frame_of, free_name, quoted
from timely.spark.windows import EPOCHS_MAX, SlidingWindow

from .spans import Time, Window, seconds_of

__all__ = ["AT_ONCE", "Calendar", "calendar_of"]

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_MICROS = 1_000_000
_DAY = 86_400
_AT = "_epoch_at"
_START = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Calendar(Protocol):
    """Epochs 0 to count - 1."""

    @property
    def count(self) -> int:
        """The number of epochs."""
        ...

    @property
    def column(self) -> str:
        """The name of the column for values of epochs; "" if epochs have no values."""
        ...

    def describe(self) -> str:
        """Return a stable text that differs for calendars with different results."""
        ...

    def values(self) -> pa.Array | None:
        """Return the value of each epoch; None if epochs have no values."""
        ...

    def dated(self, frame: DataFrame, keep: list[str]) -> DataFrame:
        """Return the columns `keep` (those of the input, perhaps diff), and `epoch` (bigint). A window that
        rows leave adds a column diff.
        """
        ...


def calendar_of(inputs: Mapping[str, DataFrame], epochs: str | None, window: Window | None) -> Calendar:
    """Return the epochs of these inputs. Costs a Spark job over all inputs with the column; for a window, one
    for each of them.

    Raises InputFormatError if no input has the column, if its type has no order, and for rows with null in
    it.
    """
    if epochs is not None and window is not None:
        raise MisuseError("epochs are made by a column or by a window: give epochs= or window=, not both")
    named = window.on if window is not None else epochs
    if named is None:
        return AT_ONCE
    dated = {name: _only_one(frame, named) for name, frame in inputs.items() if named in frame.columns}
    if not dated:
        have = "; ".join(f"{name} has {', '.join(frame.columns)}" for name, frame in inputs.items())
        raise InputFormatError(f"no input has the column {named!r} that is to make epochs: {have}")
    kinds = {frame.schema[named].dataType.simpleString(): name for name, frame in dated.items()}
    if len(kinds) > 1:
        types = ", ".join(f"{kind} in {name!r}" for kind, name in kinds.items())
        raise InputFormatError(f"the column {named!r} makes epochs and is {types}. Cast it to one type")
    return _of_column(dated, named) if window is None else _of_window(dated, window)


def _only_one(frame: DataFrame, named: str) -> DataFrame:
    """Return `frame` with other names for all columns but `named`, so that Spark confuses none with it."""
    return distinct_names(frame, [name for name in frame.columns if name != named])[0]


@dataclass(frozen=True)
class _One:
    count: int = 1
    column: str = ""

    def describe(self) -> str:
        return "one"

    def values(self) -> pa.Array | None:
        return None

    def dated(self, frame: DataFrame, keep: list[str]) -> DataFrame:
        return _at_once(frame, keep)


AT_ONCE: Final[Calendar] = _One()
"""One epoch, which has all rows."""


@dataclass(frozen=True)
class _OfColumn:
    column: str
    kind: T.DataType
    distinct: pa.Array
    count: int

    def describe(self) -> str:
        return f"values of {self.column} ({self.kind.simpleString()})"

    def values(self) -> pa.Array | None:
        return self.distinct

    def dated(self, frame: DataFrame, keep: list[str]) -> DataFrame:
        if self.column not in frame.columns:
            return _at_once(frame, keep)
        at = free_name(_AT, keep)
        numbers = pa.array(range(self.count), pa.int64())
        table = pa.Table.from_arrays([self.distinct, numbers], names=[at, EPOCH])
        numbered = frame_of(frame.sparkSession, table)
        numbered = numbered.select(F.col(at).cast(self.kind).alias(at), EPOCH)
        rows = frame.select(*map(quoted, keep), F.col(quoted(self.column)).alias(at))
        return rows.join(F.broadcast(numbered), on=at).select(*map(quoted, keep), EPOCH)


@dataclass(frozen=True)
class _OfWindow:
    window: Window
    kind: T.DataType
    steps: SlidingWindow
    count: int

    @property
    def column(self) -> str:
        return "end"

    def describe(self) -> str:
        return f"{self.window} from {_time_of(self.steps.first_time, self.kind)}"

    def values(self) -> pa.Array | None:
        return pa.array([_time_of(self.steps.end(epoch), self.kind) for epoch in range(self.count)])

    def dated(self, frame: DataFrame, keep: list[str]) -> DataFrame:
        if self.window.on not in frame.columns:
            return _at_once(frame, keep)
        at = free_name(_AT, keep)
        rows = frame.select(*map(quoted, keep), _ticks(self.window.on, self.kind).alias(at))
        return self.steps.changes(rows, time=at, keep=tuple(map(quoted, keep)), epochs=self.count)


def _at_once(frame: DataFrame, keep: list[str]) -> DataFrame:
    return frame.select(*map(quoted, keep), F.lit(0).cast("bigint").alias(EPOCH))


def _of_column(inputs: Mapping[str, DataFrame], named: str) -> _OfColumn:
    kind = next(iter(inputs.values())).schema[named].dataType
    if not isinstance(kind, T.AtomicType):
        raise InputFormatError(
            f"the column {named!r} is {kind.simpleString()}: epochs are made of numbers, dates, times or "
            "texts"
        )
    united: DataFrame | None = None
    for frame in inputs.values():
        values = frame.select(F.col(quoted(named)).alias(named))
        united = values if united is None else united.union(values)
    assert united is not None
    ordered: pa.Table = united.distinct().orderBy(quoted(named)).limit(EPOCHS_MAX + 1).toArrow()
    if ordered.column(0).null_count:
        for name, frame in inputs.items():
            _refuse_nulls(name, frame.where(F.col(quoted(named)).isNull()).count(), named)
    if not ordered.num_rows:
        raise InputFormatError(f"no input has a row, so there is no epoch: {named!r} has no value")
    if ordered.num_rows > EPOCHS_MAX:
        raise InputFormatError(
            f"the column {named!r} has more than {EPOCHS_MAX:,} different values, each of which would be an "
            "epoch. Make epochs of something coarser: a day, an hour (date_trunc), or a window"
        )
    return _OfColumn(named, kind, pa.concat_arrays(ordered.column(0).chunks), ordered.num_rows)


def _of_window(inputs: Mapping[str, DataFrame], window: Window) -> _OfWindow:
    kind = next(iter(inputs.values())).schema[window.on].dataType
    if not isinstance(kind, (T.TimestampType, T.TimestampNTZType, T.DateType, *_WHOLE)):
        raise InputFormatError(
            f"the column {window.on!r} is {kind.simpleString()}: a window goes over timestamps, dates or "
            f"whole numbers of seconds. Write to_timestamp({window.on!r})"
        )
    per_second = 1 if isinstance(kind, (T.DateType, *_WHOLE)) else _MICROS
    length = None if window.length is None else seconds_of(window.length) * per_second
    every = seconds_of(window.every) * per_second
    first, last = (None if time is None else _ticks_of(time, kind) for time in (window.first, window.last))
    least, most = _span(inputs, window.on, kind)
    if least is not None:
        # The last multiple of `every` before the first row: so that row is in the first window, and all
        # windows end at multiples.
        first = (least - 1) // every * every if first is None else first
        last = most if last is None else last
    if first is None or last is None:
        raise InputFormatError(
            f"no input has a row with a time in {window.on!r}, so there is no window over them"
        )
    if (last - first) // every >= EPOCHS_MAX:
        raise InputFormatError(
            f"times in {window.on!r} from {_time_of(first, kind)} to {_time_of(last, kind)} make more than "
            f"{EPOCHS_MAX:,} epochs. Is one of them far off, or in milliseconds? Otherwise take a longer "
            "every="
        )
    steps = SlidingWindow(first, max(first, last), length, every)
    count = steps.epochs if window.epochs is None else min(window.epochs, steps.epochs)
    return _OfWindow(window, kind, steps, count)


def _span(inputs: Mapping[str, DataFrame], on: str, kind: T.DataType) -> tuple[int | None, int | None]:
    """Return the first and the last time of all rows; None if there are no rows."""
    ticks = _ticks(on, kind)
    leasts: list[int] = []
    mosts: list[int] = []
    for name, frame in inputs.items():
        least, most, nulls = frame.agg(F.min(ticks), F.max(ticks), F.count_if(ticks.isNull())).collect()[0]
        _refuse_nulls(name, nulls, on)
        if least is not None:
            leasts.append(least)
            mosts.append(most)
    return min(leasts, default=None), max(mosts, default=None)


def _refuse_nulls(name: str, rows: int, column: str) -> None:
    if rows:
        raise InputFormatError(
            f"input {name!r}: {counted(rows, 'row')} without a value in {column!r}, which says when a row "
            f"comes. Filter with dropna(subset={column!r})"
        )


def _ticks(column: str, kind: T.DataType) -> Column:
    """Return the time as a whole number: microseconds for timestamps, seconds for other types."""
    time = F.col(quoted(column))
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(time)
    if isinstance(kind, T.TimestampNTZType):
        # `timestampdiff` would read it as a time of the session's zone, in which daylight saving skips an
        # hour.
        minutes = F.hour(time) * F.lit(60) + F.minute(time)
        seconds = F.unix_date(time.cast("date")).cast("bigint") * F.lit(_DAY) + minutes * F.lit(60)
        micros = F.extract(F.lit("SECOND"), time) * F.lit(_MICROS)
        return seconds * F.lit(_MICROS) + micros.cast("bigint")
    if isinstance(kind, T.DateType):
        return F.unix_date(time).cast("bigint") * F.lit(_DAY)
    return time.cast("bigint")


def _ticks_of(time: Time, kind: T.DataType) -> int:
    """Return a time of the user in the unit that `_ticks` uses for the column."""
    if isinstance(time, int):
        if not isinstance(kind, _WHOLE):
            raise MisuseError(f"the column is {kind.simpleString()}: give a date or a datetime, not {time}")
        return time
    if not isinstance(time, dt.datetime):
        time = dt.datetime(time.year, time.month, time.day)
    at = time if time.tzinfo is not None else time.replace(tzinfo=dt.UTC)
    micros = (at - _START) // dt.timedelta(microseconds=1)
    return micros if isinstance(kind, T.TimestampType | T.TimestampNTZType) else micros // _MICROS


def _time_of(ticks: int, kind: T.DataType) -> object:
    """Return the time for a number of `_ticks`: a datetime (UTC), or the number if the column has numbers."""
    if isinstance(kind, _WHOLE):
        return ticks
    if isinstance(kind, T.DateType):
        at = _START + dt.timedelta(seconds=ticks)
    else:
        at = _START + dt.timedelta(microseconds=ticks)
    return at
