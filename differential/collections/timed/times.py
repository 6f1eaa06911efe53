"""Times as data: windows over a column of times, rows that leave as time passes, rows that come too late."""

from __future__ import annotations

from typing import Self

from timely.user_code.call_site import call_site

from ...columns.column_types import ColumnType, integer
from ...errors import SchemaError
from ...expressions.expression import Expr, ExprLike, as_expr, col, lit
from ...linear.shapes import (
    Clock,
    Length,
    Sliding,
    Tumbling,
    lengths_of,
    time_type,
    words_of_length,
    words_of_moment,
)
from ...plan.nodes import During, OnTime, Select, Slide
from ..groups import GroupOperators

__all__ = ["TimeOperators"]

_START, _STOP = "(from epoch)", "(to epoch)"


class TimeOperators(GroupOperators):
    """What looks at times: at a column of them, or at epochs."""

    def window(
        self, time: str, shape: Tumbling | Sliding, *, start: str = "window_start", end: str = "window_end"
    ) -> Self:
        """Each row with the window around its `time` in two more columns; once for each, if it is in several.

        `window("at", dd.tumbling(minutes=5))`, then `group_by("window_start", …)`. Rows whose time is null
        are in none. Linear: no state, what comes out is the work. Spark: `window(col, "5 minutes")`; Rust:
        a `flat_map`. Raises SchemaError if the column holds no times, or the lengths are not those of its
        type.
        """
        type_ = time_type(self.schema, time, "window")
        for name in (start, end):
            if name in self.schema or start == end:
                raise SchemaError(
                    f"window ({call_site()}): there is a column {name!r} already; name the new ones by "
                    f"start=… and "
                    "end=…"
                )
        if not isinstance(shape, Tumbling | Sliding):
            raise SchemaError(
                f"window ({call_site()}) takes dd.tumbling(minutes=5) or dd.sliding(size, every), not "
                f"{shape!r}"
            )
        size, every, origin = lengths_of(shape, type_)
        if isinstance(shape, Sliding):
            return self.with_node(Slide(self.node, time, (size, every, origin), (start, end)))
        rows, at = self, as_expr(col(time))
        if type_.nullable:
            rows, at = self.filter(at.is_not_null()), at.fill_null(lit(0).cast(type_.not_null()))
        first = at - (at.cast("int") - origin) % size
        kept: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        return rows.with_node(Select(rows.node, tuple({**kept, start: first, end: first + size}.items())))

    def during(self, start: ExprLike | None = None, stop: ExprLike | None = None) -> Self:
        """The rows, each in the epochs from `start` to before `stop`: expressions over its columns, integers;
        None, or null: no bound.

        A row leaves by itself when epoch `stop` is complete. Law: accumulated at epoch e, what has come in
        by then and has start ≤ e < stop; in loops, too. No state here: the removal is sent at once, for
        its epoch, and kept by whoever waits for that. When the last input is closed all epochs are
        complete, and what is to leave has left. Materialize: a temporal filter by `mz_now()`.
        """
        columns: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        for name, bound in ((_START, start), (_STOP, stop)):
            columns[name] = lit(None, "int?") if bound is None else as_expr(bound)
        made = self.with_node(Select(self.node, tuple(columns.items())))
        for name in (_START, _STOP):
            if made.schema[name].type.kind != "int":
                raise SchemaError(
                    f"during ({call_site()}): epochs are integers, and {columns[name]!r} is "
                    f"{made.schema[name].type}; with a column of times write last(…, clock=…)"
                )
        return made.with_node(During(made.node))

    def last(self, time: str, size: Length, *, clock: Clock) -> Self:
        """The rows of the last `size` by their `time`: those with now - size < time ≤ now, where now is
        what `clock` says at the end of the epoch: `last("at", timedelta(hours=24), clock=dd.clock(start,
        minutes=1))`.

        A row enters when its time has come and leaves when it is as old as `size`, without being asked;
        one that comes in later than that is never there. Rows whose time is null are not there. As
        `during` otherwise.
        """
        type_ = time_type(self.schema, time, "last")
        length = words_of_length(size, type_, "last")
        rows, at = self._timed(time)
        return rows.during(_epoch_at(at, clock, 0, type_), _epoch_at(at, clock, length, type_))

    def split_late(self, time: str, allowed: Length, *, clock: Clock) -> tuple[Self, Self]:
        """(on time, late): updates that come in while the clock says no more than `time` + `allowed`, and
        those that come in later. Null is never late.

        Updates, not rows: when a row is late its removal is, too; but a row that was in time and is
        removed late stays among those on time, and is owed (negative) among the late. So what is on time
        no longer changes once the clock has passed: results by windows are final then. Both together are
        what comes in. No state.
        """
        type_ = time_type(self.schema, time, "split_late")
        length = words_of_length(allowed, type_, "split_late") if allowed else 0
        at = as_expr(col(time)).cast(integer.or_null(type_.nullable))
        every = words_of_length(clock.every, type_, "split_late")
        start = words_of_moment(clock.start, type_, "split_late")
        columns: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        columns[_STOP] = (at + (length - start)) // every
        made = self.with_node(Select(self.node, tuple(columns.items())))
        return made.with_node(OnTime(made.node, "on time")), made.with_node(OnTime(made.node, "late"))

    def _timed(self, time: str) -> tuple[Self, Expr]:
        """The rows that have a time, and their time as an integer."""
        if not self.schema[time].type.nullable:
            return self, col(time).cast("int")
        return self.filter(col(time).is_not_null()), col(time).cast("int?").fill_null(0)


def _epoch_at(at: Expr, clock: Clock, after: int, type_: ColumnType) -> Expr:
    """The first epoch at whose end the clock says at least `at` + `after`."""
    every = words_of_length(clock.every, type_, "last")
    start = words_of_moment(clock.start, type_, "last")
    return -((start - after - at) // every)
