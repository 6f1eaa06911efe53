"""Windows: every row stays, with answers that depend on the rows around it.

    sales.over("shop", by="day").with_columns(
        before=dd.lag("cents"),              # of the row before
        so_far=dd.sum("cents"),              # up to this row, and those of the same day
        place=dd.row_number(),
    )
    sales.over("shop", by="day").rows_between(-6, 0).with_columns(week=dd.avg("cents"))

    keys     rows with equal keys see one another; without keys all do
    by       the order, as that of `top_k`; ties come in the order of their other columns
    frame    the rows that aggregates, first_value, last_value and nth_value see. Without one: from the first
             row to the row at hand and its peers, or, without an order, all

A row that is there three times is three rows, one after another. Cost of a change: of lag, lead and frames
with two bounds, the rows around it; of functions of all rows before, or behind, those from it on to where the
answers are as they were; of parts of the group's size and aggregates of all rows its group, if that changes.
The stage sends the rows whose answers change. SQL: `… OVER (PARTITION
BY … ORDER BY …)`; PySpark: `Window`; Polars: `over`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Self, TypeAlias, TypeVar, cast

from timely.user_code.call_site import call_site
from timely.user_code.offered import Offered
from timely.user_code.short_traces import in_short, short_lookup

from ...aggregates import Aggregate
from ...columns.column_types import ColumnType
from ...errors import ExpressionError, SchemaError, shown
from ...expressions.expression import ColumnRef, Expr, ExprLike, Ordering, col, lit, when
from ...expressions.orders import By, Length, Months, bounds_in_units
from ...expressions.pending import over_rows
from ...operators.reducing.window_parts import Frame, FrameUnit, WindowKind, two_ways
from ...other_spellings import written_as
from ...plan.grouping.computing import order_of, with_columns
from ...plan.nodes import Node, OrderBy, OverWindow, Select, WindowCall
from ..handle import Handle, Names, names_of
from .ordered import OrderOperators

__all__ = [
    "WindowFunction",
    "WindowOperators",
    "Windowed",
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
]

H = TypeVar("H", bound=Handle)

_AGGREGATES: Final = ("count", "sum", "avg", "min", "max")


@dataclass(frozen=True)
class WindowFunction(Offered):
    """A function of the rows around a row; made by `dd.lag` and its like."""

    _internal = frozenset({"amount", "argument", "default", "describe", "kind"})

    kind: WindowKind
    argument: str | Expr | None = None
    amount: int = 0
    default: ExprLike = None

    def describe(self) -> str:
        """Return the call that makes it."""
        return f"dd.{self.kind}(…)"

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> NoReturn:
            if name != "over":
                raise AttributeError(f"a function of windows has no {name!r}")
            raise AttributeError(
                "a function of windows has no 'over'. Write instead: "
                f"over('key', by='time').with_columns(n={self.describe()}), of the collection"
            )


_WindowAnswer: TypeAlias = WindowFunction | Aggregate


def row_number() -> WindowFunction:
    """The number of the row in the order: 1, 2, 3, …. A row that is there twice has two numbers."""
    return WindowFunction("row_number")


def rank() -> WindowFunction:
    """The number of the row in the order, shared by rows that are equal in it: 1, 2, 2, 4, …."""
    return WindowFunction("rank")


def dense_rank() -> WindowFunction:
    """The number among the different values of the order: 1, 2, 2, 3, …."""
    return WindowFunction("dense_rank")


def percent_rank() -> WindowFunction:
    """(rank - 1) / (rows - 1) of the group, a float; 0 for a row that is alone."""
    return WindowFunction("percent_rank")


def cume_dist() -> WindowFunction:
    """The part of the group's rows that come no later than the row or its peers, a float up to 1."""
    return WindowFunction("cume_dist")


def ntile(parts: int) -> WindowFunction:
    """The number, from 1 on, of the row's part, where the group is cut into `parts` of nearly equal size: the
    first ones are larger by one row.
    """
    return WindowFunction("ntile", None, _whole(parts, "ntile", 1))


def lag(column: str | Expr, offset: int = 1, default: ExprLike = None) -> WindowFunction:
    """The value in the row `offset` rows before; `default`, or null, where there is no such row."""
    return WindowFunction("lag", column, _whole(offset, "lag"), default)


def lead(column: str | Expr, offset: int = 1, default: ExprLike = None) -> WindowFunction:
    """The value in the row `offset` rows behind; `default`, or null, where there is no such row."""
    return WindowFunction("lag", column, -_whole(offset, "lead"), default)


def first_value(column: str | Expr) -> WindowFunction:
    """The value in the first row of the frame; null if the frame has no row."""
    return WindowFunction("first_value", column)


def last_value(column: str | Expr) -> WindowFunction:
    """The value in the last row of the frame. Without a frame that is the last peer of the row at hand: for
    the last row of the group write `rows_between(0, None)`.
    """
    return WindowFunction("last_value", column)


def nth_value(column: str | Expr, n: int) -> WindowFunction:
    """The value in row number `n`, from 1 on, of the frame; null if the frame has fewer rows."""
    return WindowFunction("nth_value", column, _whole(n, "nth_value", 1))


def _whole(number: object, what: str, least: int = -(1 << 62)) -> int:
    if type(number) is not int or not least <= number < 1 << 62:
        bound = f" from {least} on" if least > 0 else ""
        if type(number) is int and not -(1 << 62) <= number < 1 << 62:
            bound = " of at most 62 bits"
        raise ExpressionError(f"dd.{what} ({call_site()}) takes a whole number{bound}, not {number!r:.60}")
    return number


class WindowOperators(OrderOperators):
    """Rows among their neighbours."""

    @written_as("over('key', by='time').with_columns(before=dd.lag('x'), so_far=dd.sum('x'))")
    def over(self, *keys: Names, by: By | None = None) -> Windowed[Self]:
        """A window over the rows with equal `keys`, in the order `by`; follow with `with_columns(…)`.

        Law: each row with its answers, in the sorted group. SQL: `OVER (PARTITION BY keys ORDER BY by)`.
        """
        named = tuple(name for key in keys for name in names_of(key, "over", self))
        for name in named:
            self.schema.offset(name)
        if len(set(named)) != len(named):
            raise SchemaError(f"over ({call_site()}): a key is named twice in {', '.join(named)}")
        order = () if by is None else self.orders_of(by, "over")
        return Windowed(self, named, order, Frame() if order else Frame("range", None, None))


@in_short
@dataclass(frozen=True, eq=False)
class Windowed(Offered, Generic[H]):
    """A collection, with an order of each of its groups, and a frame."""

    _internal = frozenset({"by", "collection", "frame", "keys"})

    collection: H
    keys: tuple[str, ...]
    by: tuple[Ordering, ...]
    frame: Frame

    def rows_between(self, start: int | None, stop: int | None) -> Self:
        """Let aggregates see the rows from `start` to `stop` of the row at hand: `rows_between(-6, 0)` are it
        and the six before; None is the first row, or the last. SQL: `ROWS BETWEEN`.
        """
        return self._between("rows", start, stop)

    def range_between(self, start: int | float | Length | None, stop: int | float | Length | None) -> Self:
        """Let aggregates see the rows whose value in the order is from `start` to `stop` more (in a
        descending order: less). 0 is the row's own value. Dates and timestamps take `timedelta`, or
        `dd.months(n)`; decimals take `Decimal`, floats take floats. Whole numbers count days of dates,
        microseconds of timestamps, and units of the last digit of decimals. SQL: `RANGE BETWEEN`.
        """
        is_added = {type(start), type(stop)} & {float, Decimal, dt.timedelta, Months}
        if not is_added and not self._is_of_values:
            return self._between("range", cast("int | None", start), cast("int | None", stop))
        where = f"range_between ({call_site()})"
        if len(self.by) != 1:
            raise SchemaError(f"{where}: bounds are added to the one column of an order: over(by='t')")
        try:
            unit, first, last = bounds_in_units(start, stop, self._order_type)
        except ExpressionError as error:
            raise ExpressionError(f"{where}: {error}") from None
        return (
            self._between(unit, first, last)
            if unit == "range"
            else replace(self, frame=Frame(unit, first, last))
        )

    def groups_between(self, start: int | None, stop: int | None) -> Self:
        """Let aggregates see whole groups of rows that are equal in the order, from `start` to `stop` such
        groups further. SQL: `GROUPS BETWEEN`.
        """
        return self._between("groups", start, stop)

    @property
    def _order_type(self) -> ColumnType:
        rows = self.collection
        return over_rows(self.by[0].expr, rows.node).type_in(rows.schema)

    @property
    def _is_of_values(self) -> bool:
        """True if bounds are added to values of the order, and not to their words."""
        return len(self.by) == 1 and (self._order_type.kind == "float" or self._order_type.is_wide)

    def _between(self, unit: FrameUnit, start: int | None, stop: int | None) -> Self:
        for bound in (start, stop):
            if bound is not None:
                _whole(bound, f"{unit}_between")
        return replace(self, frame=Frame(unit, start, stop))

    def with_columns(self, **functions: _WindowAnswer) -> H:
        """All rows, with one more column for each function: `with_columns(before=dd.lag("x"))`.

        Functions: row_number, rank, dense_rank, percent_rank, cume_dist, ntile, lag, lead, first_value,
        last_value, nth_value; and the aggregates count, sum, avg, min, max over the frame. Sums of floats are
        added in the order of the rows, or, if the frame ends with the group only, from its last row back.
        Raises ExpressionError for columns that do not fit.
        """
        rows = self.collection
        where = f"over ({call_site()})"
        if not functions:
            raise SchemaError(f"{where}.with_columns() needs a function: with_columns(before=dd.lag('x'))")
        for name in functions:
            if name in rows.schema:
                raise SchemaError(
                    f"{where}: there is a column {name!r} already; choose another for the answer"
                )
        calls: list[WindowCall] = []
        exprs: list[Expr] = []
        at: list[int | None] = []
        defaults: dict[str, ExprLike] = {}
        for name, function in functions.items():
            kind, argument, amount = _parts(name, function, where)
            at.append(None if argument is None else len(exprs))
            if argument is not None:
                exprs.append(rows.sided(col(argument) if isinstance(argument, str) else argument))
            calls.append(WindowCall(name, kind, None, amount))
            if isinstance(function, WindowFunction) and function.default is not None:
                default = function.default
                defaults[name] = rows.sided(default) if isinstance(default, Expr) else default
        return self._computed(calls, exprs, at, defaults)

    def _computed(
        self,
        calls: list[WindowCall],
        exprs: list[Expr],
        at: list[int | None],
        defaults: Mapping[str, ExprLike],
    ) -> H:
        """Return the window over columns for computed arguments, without these."""
        rows = self.collection
        add = rows.plan.add
        exprs = [over_rows(each, rows.node) for each in exprs]
        computed = [each for each in exprs if not isinstance(each, ColumnRef) or each.name in self.keys]
        if defaults:
            computed.append(lit(1))
        source, names = with_columns(add, rows.node, computed)
        there = names[-1] if defaults else ""
        fresh = iter(names)
        columns = [
            each.name if isinstance(each, ColumnRef) and each.name not in self.keys else next(fresh)
            for each in exprs
        ]
        source, ordered = order_of(add, source, self.by)
        order: dict[str, OrderBy] = {}
        for each in ordered:
            source.schema.offset(each.column)
            if each.column not in self.keys:
                order.setdefault(each.column, each)
            elif self.frame.unit == "range" and (self.frame.start or self.frame.stop):
                # the same in all rows, and the bounds are added to it
                source, (copy,) = with_columns(add, source, [col(each.column)])
                order[copy] = replace(each, column=copy)
        own = _fresh_names([call.name for call in calls], source.schema.names)
        named = [
            replace(call, name=own[call.name], column=None if place is None else columns[place])
            for call, place in zip(calls, at, strict=True)
        ]
        theirs = _fresh_names([f"{name} (there)" for name in defaults], [*source.schema.names, *own.values()])
        named += [
            WindowCall(theirs[f"{call.name} (there)"], "lag", there, call.amount)
            for call in calls
            if call.name in defaults
        ]
        window = self._window(source, tuple(order.values()), named)
        answers: list[tuple[str, Expr]] = [(name, col(name)) for name in rows.schema.names]
        for call in calls:
            answer: Expr = col(own[call.name])
            if call.name in defaults:
                is_there = col(theirs[f"{call.name} (there)"]).is_not_null()
                answer = when(is_there).then(answer).otherwise(defaults[call.name])
            answers.append((call.name, answer))
        return rows.with_node(Select(add(window), tuple(answers)))

    def _window(self, source: Node, order: tuple[OrderBy, ...], calls: Sequence[WindowCall]) -> OverWindow:
        """Return the window: two, one over the answers of the other, where functions go in two directions."""
        ways = two_ways([call.kind for call in calls], self.frame)
        if ways is None:
            window = OverWindow(source, self.keys, order, tuple(calls), self.frame)
            window.check()
            return window
        on, back = ([calls[at] for at in way] for way in ways)
        taken = [*source.schema.names, *(call.name for call in calls)]
        # In front of other answers, so that copies of a row have the same order in both windows.
        copies = WindowCall(_fresh_names(["copy"], taken)["copy"], "copy_number")
        first = self._window(source, order, [copies, *on])
        return self._window(self.collection.plan.add(first), order, back)


def _fresh_names(names: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """Return for each name one that is not taken."""
    fresh: dict[str, str] = {}
    for name in names:
        other = name
        while other in taken or other in fresh.values():
            other += "'"
        fresh[name] = other
    return fresh


def _parts(name: str, function: object, where: str) -> tuple[WindowKind, str | Expr | None, int]:
    if isinstance(function, WindowFunction):
        if not isinstance(function.argument, str | Expr | None):
            raise ExpressionError(
                f"{where}: {name}=dd.{function.kind}({shown(function.argument)}) takes a column or an "
                f"expression: dd.{function.kind}('x'), or dd.lit({shown(function.argument)}) for the value"
            )
        return function.kind, function.argument, function.amount
    if isinstance(function, Aggregate) and function.kind in _AGGREGATES and not function.by:
        argument = function.column if function.argument is None else function.argument
        return cast("WindowKind", function.kind), argument, 0
    raise ExpressionError(
        f"{where}: {name}={shown(function)} is no function of a window: write dd.lag('x'), dd.row_number(), "
        "dd.sum('x') or another of those that over(…).with_columns names"
    )
