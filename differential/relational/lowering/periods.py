"""Rows that are there for a while: conditions on now(), by the clock of epochs."""

from __future__ import annotations

from typing import Final

from ...collections.collection import Collection
from ...columns.column_types import date, timestamp
from ...errors import SqlError
from ...expressions.expression import Expr, greatest, least
from ...expressions.functions.times import DAY_MICROS
from ...linear.shapes import Clock, words_of_length, words_of_moment
from ..algebra.relations import PeriodOf
from .domains import Lowers

__all__ = ["present"]

_HOW: Final = "write dd.sql(…, clock=dd.clock(start, minutes=1)) with a datetime, or days and a date"


def present(lower: Lowers, rows: Collection, period: PeriodOf) -> Collection:
    """Return the rows, each in the epochs at whose end all of its bounds hold; a null holds never."""
    for bound in period.bounds:
        if bound.at.type_in(rows.schema).nullable:
            rows = rows.filter(bound.at.is_not_null())
    start, every = _ticks(lower.clock, period)

    def first_epoch(at: Expr) -> Expr:
        return -((start - at) // every)

    starts = [first_epoch(each.at) for each in period.bounds if each.is_start]
    stops = [first_epoch(each.at) for each in period.bounds if not each.is_start]
    return rows.during(
        (starts[0] if len(starts) == 1 else greatest(*starts)) if starts else None,
        (stops[0] if len(stops) == 1 else least(*stops)) if stops else None,
    )


def _ticks(clock: Clock | None, period: PeriodOf) -> tuple[int, int]:
    """Return when epoch 0 ends, and how long an epoch is, in microseconds."""
    if clock is None:
        raise SqlError(f"{period.site}: now() needs a clock: {_HOW}")
    if type(clock.start) is int:
        raise SqlError(f"{period.site}: now() is a time, and the clock counts whole numbers: {_HOW}")
    type_, unit = (timestamp, 1) if hasattr(clock.start, "hour") else (date, DAY_MICROS)
    return words_of_moment(clock.start, type_, "now()") * unit, words_of_length(
        clock.every, type_, "now()"
    ) * unit
