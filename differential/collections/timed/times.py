"""Times as data: windows over a column of times, rows that leave as time passes, and late rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self, TypeVar

from timely.user_code.call_site import call_site

from ...columns.column_types import ColumnType, integer
from ...columns.schema import Column, Schema
from ...errors import SchemaError
from ...expressions.expression import Expr, ExprLike, as_expr, col, lit
from ...expressions.functions.times import DAY_MICROS
from ...linear.shapes import (
    Clock,
    Length,
    Session,
    Sliding,
    Tumbling,
    lengths_of,
    time_type,
    words_of_length,
    words_of_moment,
)
from ...other_spellings import written_as
from ...plan.nodes import Concat, During, Filter, OnTime, Select, Slide, Sweep
from ..grouping_sets import SubtotalOperators
from ..handle import Name, Names, in_innermost_loop, name_of, names_of

__all__ = ["TimeOperators"]

_START, _STOP = "(from epoch)", "(to epoch)"
_TIME, _SIDE = "(time)", "(side)"

H = TypeVar("H", bound=SubtotalOperators)


class TimeOperators(SubtotalOperators):
    """Operators that use a column of times, or epochs."""

    @written_as(
        "window('time', dd.tumbling(minutes=5)), or, by keys, dd.session(minutes=30, by='user'); its own two "
        "columns have the names start='window_start' and end='window_end', unless you give others"
    )
    def window(
        self,
        time: Name,
        shape: Tumbling | Sliding | Session,
        *,
        start: str = "window_start",
        end: str = "window_end",
    ) -> Self:
        """Each row with the window around its `time` in two more columns, called `start` and `end`.

        These are times of the type of `time`; `end` is not in the window. A row occurs once for each window
        that it is in.

        `window("at", dd.tumbling(minutes=5))`, then `group_by("window_start", …)`. Rows whose time is null
        are in no window. Tumbling and sliding windows are linear: no state, and the work is in what comes
        out. Sessions store rows by key and time, and a change costs its session. Spark: `window(col, "5
        minutes")`; Rust: a `flat_map`. Raises SchemaError if the column holds no times, if the lengths are
        not those of its type, and if there is a column `start` or `end` already, as behind another window.
        """
        time = name_of(time, "window", self)
        type_ = time_type(self.schema, time, "window")
        _check_new(self.schema, time, {"start": start, "end": end})
        if isinstance(shape, Session):
            return self._sessions(time, shape, (start, end))
        if not isinstance(shape, Tumbling | Sliding):
            raise _no_shape(shape)
        size, every, origin = lengths_of(shape, type_)
        if isinstance(shape, Sliding):
            return self.with_node(Slide(self.node, time, (size, every, origin), (start, end)))
        rows, at = self, as_expr(col(time))
        if type_.nullable:
            rows, at = self.filter(at.is_not_null()), at.fill_null(lit(0).cast(type_.not_null()))
        if shape.zone is not None:
            first, last = _local_days(at, type_, (size, origin), shape.zone)
        elif type_.kind == "date":
            day = at.cast("int") - (at.cast("int") - origin) % size
            first, last = day.cast("date"), (day + size).cast("date")
        else:
            first = at - (at.cast("int") - origin) % size
            last = first + size
        columns: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        return rows.with_node(Select(rows.node, tuple({**columns, start: first, end: last}.items())))

    def during(self, start: ExprLike | None = None, stop: ExprLike | None = None) -> Self:
        """The rows, each in the epochs from `start` to before `stop`; None, or null: no bound.

        The bounds are columns, or expressions over them, of integers. A row leaves by itself when epoch
        `stop` is complete. Law: accumulated at epoch e, the rows that have come in by then with start ≤ e <
        stop; in loops, too. No state here: the removal is sent at once, for its epoch, and stored by the
        operators that wait for that epoch. When the last input is closed all epochs are complete, and all
        rows with a `stop` have left. Materialize: a temporal filter by `mz_now()`.
        """
        columns: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        for name, bound in ((_START, start), (_STOP, stop)):
            expr = col(bound) if isinstance(bound, str) else bound
            columns[name] = lit(None, "int?") if expr is None else as_expr(expr)
        bounded = self.with_node(Select(self.node, tuple(columns.items())))
        for name in (_START, _STOP):
            if bounded.schema[name].type.kind != "int":
                raise SchemaError(
                    f"during ({call_site()}): epochs are integers, and {columns[name]!r} is "
                    f"{bounded.schema[name].type}; with a column of times write last(…, clock=…)"
                )
        return bounded.with_node(During(bounded.node))

    @written_as(
        "last('time', timedelta(hours=1), clock=dd.clock(start, minutes=1)); for the last row in an order, "
        "order_by('time').last()"
    )
    def last(self, time: Name, size: Length | str, *, clock: Clock) -> Self:
        """The rows of the last `size` by their `time`: those with now - size < time ≤ now.

        Here now is the time of `clock` at the end of the epoch: `last("at", timedelta(hours=24),
        clock=dd.clock(start, minutes=1))`. A row enters when its time has come and leaves by itself when it
        is as old as `size`; one that comes in later than that is never there. Rows whose time is null are not
        there. Otherwise as `during`.
        """
        time = name_of(time, "last", self)
        type_ = time_type(self.schema, time, "last")
        length = words_of_length(size, type_, "last")
        rows, at = self._timed(time)
        return rows.during(_epoch_at(at, clock, 0, type_), _epoch_at(at, clock, length, type_))

    def split_late(self, time: Name, allowed: Length | str, *, clock: Clock) -> tuple[Self, Self]:
        """(on time, late): updates that come in while the clock says no more than `time` + `allowed`, and
        later ones.

        Null is never late. Lateness is decided for each update, not for each row. The removal of a late row
        is late, too. But if a row came in time and its removal comes late, the row stays among those on time,
        and the removal is a −1 among the late. So the rows on time no longer change once the clock has
        passed: results by windows are final then. Both together are all updates. No state.
        """
        time = name_of(time, "split_late", self)
        type_ = time_type(self.schema, time, "split_late")
        length = words_of_length(allowed, type_, "split_late") if allowed else 0
        at = as_expr(col(time)).cast(integer.or_null(type_.nullable))
        every = words_of_length(clock.every, type_, "split_late")
        start = words_of_moment(clock.start, type_, "split_late")
        columns: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        columns[_STOP] = (at + (length - start)) // every
        bounded = self.with_node(Select(self.node, tuple(columns.items())))
        return bounded.with_node(OnTime(bounded.node, "on time")), bounded.with_node(
            OnTime(bounded.node, "late")
        )

    def _sessions(self, time: str, shape: Session, names: tuple[str, str]) -> Self:
        """Lay rows out as key, time, and the time until which they last; then find their sessions."""
        keys = names_of(shape.by, "session", self)
        for key in keys:
            self.schema.offset(key)
        gap = words_of_length(shape.gap, self.schema[time].type, "window")
        rows, at = self._timed(time)
        others: dict[str, Expr] = {name: col(name) for name in self.schema.names if name not in keys}
        columns = {**{key: col(key) for key in keys}, _START: at, _STOP: at + gap, **others}
        laid_out = rows.with_node(Select(rows.node, tuple(columns.items()))).node
        swept_columns = [*laid_out.schema.columns[len(keys) :], *(Column(name, integer) for name in names)]
        kind = self.schema[time].type.not_null()
        swept = self.with_node(Sweep(laid_out, keys, "sessions", (), Schema(tuple(swept_columns))))
        originals: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        return swept.with_node(
            Select(swept.node, tuple({**originals, **{name: col(name).cast(kind) for name in names}}.items()))
        )

    @written_as("asof_join(other, on='key', left_time='at', right_time='since', direction='forward')")
    def asof_join(
        self,
        other: Self,
        *,
        on: Names | Mapping[Name, Name] = (),
        left_time: Name,
        right_time: Name | None = None,
        direction: Literal["backward", "forward"] = "backward",
        tolerance: Length | str | None = None,
        exact: bool = True,
        how: Literal["left", "inner"] = "left",
    ) -> Self:
        """Each row with the row of `other` that is nearest in time, among those with equal keys `on`.

        Nearest is the last at or before `left_time` (with `exact` false: before), or, forward, the first at
        or after it; and, if there is a `tolerance`, not further away. Without `right_time` the time of
        `other` is in its column `left_time`.

        Columns: those of this collection, then those of `other` beside the keys, null where there is no such
        row (`how="inner"` leaves the row out); a column of `other` whose name this collection has, too, is
        called `…_right`. Of several rows of `other` at the same time it is always the same one, by the order
        of their words. Rows of either side that are there less than once do not count. Rows of `other`
        without a time, or with a null key, are nobody's nearest; rows without a time have none. The result
        follows changes on both sides; both are stored once, by key and time, and a change costs the rows
        between it and the next row of `other`. pandas: `merge_asof`; Polars: `join_asof`; Flink: a temporal
        join. Raises SchemaError for keys or times that do not fit.
        """
        left, right = in_innermost_loop((self, other))
        _check_option("direction", direction, ("backward", "forward"))
        _check_option("how", how, ("left", "inner"))
        pairs = _pairs(on)
        left_time = name_of(left_time, "asof_join", left)
        times = (left_time, left_time if right_time is None else name_of(right_time, "asof_join", right))
        _check_asof(left.schema, right.schema, pairs, times)
        keys = tuple(key for key, _ in pairs)
        limit = -1
        if tolerance is not None:
            limit = words_of_length(tolerance, left.schema[left_time].type, "asof_join") if tolerance else 0
        sides = _sides(left, right, pairs, times)
        lefts, names = _left_words(left.schema, keys), _right_names(left.schema, right.schema, pairs)
        laid_out = sides.node.schema
        rest = [column for column in laid_out.columns if column.name not in keys]
        first = 2 + sum(column.words for column in rest[2 : 2 + len(left.schema) - len(keys)])
        options = (int(exact), int(direction == "forward"), limit, int(how == "inner"), len(lefts), *lefts)
        columns = [Column(_TIME, integer), *(column for column in left.schema if column.name not in keys)]
        answers = [Column(new, right.schema[name].type.or_null(how == "left")) for name, new in names.items()]
        columns += answers
        # Each right column has a flag and a value there; a column that cannot be null is the value alone.
        rights: list[int] = []
        for column in answers:
            behind = first + column.type.or_null().words
            rights += range(behind - column.words, behind)
            first = behind
        node = Sweep(sides.node, keys, "nearest", (*options, *rights), Schema(tuple(columns)))
        joined = sides.with_node(node).select(*left.schema.names, *names.values())
        if how == "inner" or not left.schema[left_time].type.nullable:
            return joined
        nothing = {new: lit(None, right.schema[name].type.or_null()) for name, new in names.items()}
        return joined.concat(left.filter(col(left_time).is_null()).with_columns(**nothing))

    def _timed(self, time: str) -> tuple[Self, Expr]:
        """Return the rows that have a time, and their time as an integer."""
        if not self.schema[time].type.nullable:
            return self, col(time).cast("int")
        return self.filter(col(time).is_not_null()), col(time).cast("int?").fill_null(0)


def _epoch_at(at: Expr, clock: Clock, after: int, type_: ColumnType) -> Expr:
    """Return the first epoch at whose end the clock says at least `at` + `after`."""
    every = words_of_length(clock.every, type_, "last")
    start = words_of_moment(clock.start, type_, "last")
    return -((start - after - at) // every)


def _pairs(on: Names | Mapping[Name, Name]) -> tuple[tuple[str, str], ...]:
    if isinstance(on, Mapping):
        return tuple((name_of(one, "asof_join"), name_of(other, "asof_join")) for one, other in on.items())
    return tuple((key, key) for key in names_of(on, "asof_join"))


def _check_option(name: str, value: object, options: tuple[str, str]) -> None:
    if value not in options:
        raise SchemaError(
            f"asof_join ({call_site()}): there is no {name}={value!r:.80}. Write {options[0]!r} or "
            f"{options[1]!r}; for the nearest on either side join in both directions, and take the nearer one"
        )


def _check_asof(
    left: Schema, right: Schema, pairs: tuple[tuple[str, str], ...], times: tuple[str, str]
) -> None:
    """Raise SchemaError unless both sides have the keys and the times, of one type each."""
    for one, other in pairs:
        if left[one].type.kind != right[other].type.kind:
            raise SchemaError(
                f"asof_join ({call_site()}): key {one!r} is {left[one].type}, key {other!r} is "
                f"{right[other].type}"
            )
    kinds = [time_type(side, name, "asof_join").kind for side, name in zip((left, right), times, strict=True)]
    if kinds[0] != kinds[1]:
        raise SchemaError(
            f"asof_join ({call_site()}): {times[0]!r} is {kinds[0]}, and {times[1]!r} is {kinds[1]}: times "
            f"of both sides "
            "are of one type"
        )


def _right_names(left: Schema, right: Schema, pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return, by name of a column of the right side, its name in the result."""
    keys = {key for _, key in pairs}
    names = {name: f"{name}_right" if name in left else name for name in right.names if name not in keys}
    if len({*names.values(), *left.names}) != len(names) + len(left):
        raise SchemaError(
            f"asof_join ({call_site()}): the columns {', '.join(names.values())} of the right side do not "
            f"all have names "
            "of their own beside those of the left; rename some before"
        )
    return names


def _left_words(left: Schema, keys: tuple[str, ...]) -> list[int]:
    """Return where the words of a left row are in a row of both sides.

    These are the time, then the left's columns. All columns of the left may be null there.
    """
    positions, at = [1], 2
    for column in left:
        if column.name not in keys:
            behind = at + column.type.or_null().words
            positions += range(behind - column.words, behind)
            at = behind
    return positions


def _sides(left: H, right: H, pairs: tuple[tuple[str, str], ...], times: tuple[str, str]) -> H:
    """Return rows of both sides with the same columns: keys, side, time, left columns, right columns."""
    parts: list[H] = []
    keys = [[key for key, _ in pairs], [key for _, key in pairs]]
    for number, (source, time) in enumerate(zip((left, right), times, strict=True)):
        side = source
        present = [col(time).is_not_null()] if side.schema[time].type.nullable else []
        if number == 1:
            present += [col(key).is_not_null() for key in keys[1] if side.schema[key].type.nullable]
        for condition in present:
            side = side.with_node(Filter(side.node, condition))
        at = col(time).cast("int")
        if side.schema[time].type.nullable:
            at = col(time).cast("int?").fill_null(0)
        columns: dict[str, Expr] = {}
        for one, other in pairs:
            key_type = left.schema[one].type
            expr: Expr = col(one if number == 0 else other)
            has_null = side.schema[one if number == 0 else other].type.nullable
            columns[one] = (
                expr
                if has_null == (key_type.nullable or right.schema[other].type.nullable)
                else expr.cast(key_type.or_null())
            )
        columns.update({_SIDE: lit(number), _TIME: at})
        for index, rows in enumerate((left, right)):
            for column in rows.schema:
                if column.name not in keys[index]:
                    kind = column.type.or_null()
                    value = col(column.name).cast(kind) if index == number else lit(None, kind)
                    columns[f"({('left', 'right')[index]}) {column.name}"] = value
        parts.append(side.with_node(Select(side.node, tuple(columns.items()))))
    return parts[0].with_node(Concat((parts[0].node, parts[1].node)))


def _local_days(at: Expr, type_: ColumnType, lengths: tuple[int, int], zone: str) -> tuple[Expr, Expr]:
    """Return the instants at which the window of local days around `at` begins and ends."""
    size, origin = lengths
    if type_.kind != "timestamp" or size % DAY_MICROS:
        raise SchemaError(
            f"window ({call_site()}): windows in a zone are of whole days, and of a column of timestamps; "
            f"this one is {type_}. For hours and months write x.dt.date_trunc('month', {zone!r})"
        )
    day, days = at.dt.date(zone).cast("int"), size // DAY_MICROS
    first = day - (day - origin // DAY_MICROS) % days

    def midnight(number: Expr) -> Expr:
        return number.cast("date").cast("timestamp").dt.from_zone(zone).dt.date_trunc("day", zone)

    return at.dt.date_trunc("day", zone) if days == 1 else midnight(first), midnight(first + days)


def _check_new(schema: Schema, time: str, new_names: Mapping[str, object]) -> None:
    """Raise SchemaError unless these can be the names of a window's own columns, by parameter."""
    taken = [name for name in new_names.values() if isinstance(name, str) and name in schema]
    for parameter, name in new_names.items():
        if not isinstance(name, str) or not name:
            raise SchemaError(
                f"window ({call_site()}): {parameter}= is the name of a column that is to be made, as "
                f"{parameter}='{time}_{parameter}', not {name!r:.80}"
            )
    if taken:
        free = [_free(f"{time}_{parameter}", schema) for parameter in new_names]
        existing = " and ".join(map(repr, taken))
        raise SchemaError(
            f"window ({call_site()}): it adds two columns, and there is {existing} already. Name its own "
            f"otherwise: window({time!r}, …, start={free[0]!r}, end={free[1]!r})"
        )
    if len(set(new_names.values())) < len(new_names):
        raise SchemaError(
            f"window ({call_site()}): {' and '.join(f'{parameter}=' for parameter in new_names)} are both "
            f"{next(iter(new_names.values()))!r}, and are the names of two columns"
        )


def _free(name: str, schema: Schema) -> str:
    """Return `name`, or the next one like it that no column has."""
    return next(each for each in (name, *(f"{name}_{n}" for n in range(2, 999))) if each not in schema)


def _no_shape(shape: object) -> SchemaError:
    written = f". Write dd.tumbling({shape!r})" if isinstance(shape, str) else ""
    examples = "dd.tumbling(minutes=5), dd.sliding(size, every) or dd.session(minutes=30, by='key')"
    return SchemaError(f"window ({call_site()}) takes {examples}, not {shape!r}{written}")
