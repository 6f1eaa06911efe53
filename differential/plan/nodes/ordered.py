"""Operators that put the rows of a group in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final, Self, cast, get_args

from ...aggregates import PERCENTILES, AggregateKind
from ...columns.column_types import (
    ColumnType,
    floating,
    integer,
    list_type,
    string,
)
from ...columns.foreign.type_names import Kind
from ...columns.schema import Column, Schema
from ...columns.wide.digits import mean_of_decimals, sum_of_decimals
from ...errors import ExpressionError, SchemaError
from ...expressions.expression import ColumnRef, Ordering
from ...operators.ordered.layout import SortDirection
from ...operators.reduce import RankKind
from ...operators.reducing.window_parts import Frame, FrameUnit, WindowKind
from ..expressions import texts_of
from ..functions import UserFunctions
from .node import Node, Unary

__all__ = [
    "ALL_ROWS",
    "GroupCall",
    "GroupValues",
    "OrderBy",
    "OverWindow",
    "TopK",
    "WindowCall",
    "check_order",
]

ALL_ROWS: Final = (1 << 62) - 1
"""The limit of an order without limit."""


@dataclass(frozen=True)
class OrderBy:
    """A column of an order."""

    column: str
    direction: SortDirection = SortDirection()

    def describe(self) -> str:
        """Return it as a user would write it."""
        return Ordering(
            ColumnRef(self.column), self.direction.descending, self.direction.nulls_last
        ).describe()


def check_order(schema: Schema, column: str, operator: str) -> None:
    """Raise ExpressionError if the values of a column have no order; `operator` says in it who needs one."""
    type_ = schema[column].type
    if not type_.has_order:
        raise ExpressionError(
            f"{operator}: column {column!r} is {type_}, and its values have no order. Take a column that has "
            "one, or use reduce(fn, …), which sees the values"
        )


@dataclass(frozen=True, eq=False, repr=False)
class TopK(Unary):
    """The first rows of each group of equal `keys` in the `order`, from row `offset` on, up to `limit`.

    Rows that are equal in the order come in the order of the words of their other columns. A row of
    multiplicity 3 is three rows, one of a negative multiplicity none. `rank`: the name of a last column with
    the number of each row in its group, and the way of counting. `ties`: and all further rows that are equal
    to the last one in the order.
    """

    kind: ClassVar[str] = "top_k"
    keys: tuple[str, ...]
    order: tuple[OrderBy, ...]
    limit: int
    offset: int = 0
    rank: tuple[str, RankKind] | None = None
    ties: bool = False

    def data(self) -> list[object]:
        """Keys, order, limit, offset, rank, ties."""
        rank = None if self.rank is None else list(self.rank)
        return [list(self.keys), _order_data(self.order), self.limit, self.offset, rank, self.ties]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*keys], [*order], int(limit), int(offset), rank, bool(ties)], [source] if (
                limit > 0 <= offset
            ):
                by = tuple(_order_of(each) for each in order)
                named = [*keys, *(each.column for each in by)]
                if len(set(named)) != len(named) or limit + offset > ALL_ROWS:
                    raise SchemaError(
                        f"an order by {named!r:.200} of a plan names a column twice, or is too long"
                    )
                match rank:
                    case None:
                        return cls(source, texts_of(keys), by, limit, offset, None, ties)
                    case [str(name), "row_number" | "rank" | "dense" as kind]:
                        return cls(source, texts_of(keys), by, limit, offset, (name, kind), ties)
        return None

    @cached_property
    def rows(self) -> Schema:
        """The columns of `source`: keys, then those of the order, then all others."""
        for each in self.order:
            check_order(self.source.schema, each.column, self.describe())
        return self.source.schema.reordered([*self.keys, *(each.column for each in self.order)])

    @cached_property
    def schema(self) -> Schema:
        """Those columns, and the rank; raises ExpressionError if a column of the order has no order."""
        ranks = () if self.rank is None else (Column(self.rank[0], integer),)
        return Schema((*self.rows, *ranks))

    def describe(self) -> str:
        """Return it as a user would write it."""
        parts = [f"by=[{', '.join(each.describe() for each in self.order)}]"]
        if self.keys:
            parts.append(f"keys={', '.join(self.keys)}")
        if self.offset:
            parts.append(f"offset={self.offset}")
        if self.rank is not None:
            parts.append(f"{self.rank[1]} as {self.rank[0]}")
        if self.ties:
            parts.append("ties")
        limit = "all" if self.limit == ALL_ROWS else str(self.limit)
        return f"top_k({limit}, {', '.join(parts)})"


def _order_data(order: tuple[OrderBy, ...]) -> list[object]:
    return [[each.column, each.direction.descending, each.direction.nulls_last] for each in order]


def _order_of(data: object) -> OrderBy:
    match data:
        case [str(column), bool(descending), bool(nulls_last)]:
            return OrderBy(column, SortDirection(descending, nulls_last))
    raise SchemaError(f"{data!r:.200} is no column of an order")


_ORDER_KINDS: Final = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "copy_number")
_FRACTIONS: Final = ("percent_rank", "cume_dist")
_PICKED: Final = ("lag", "first_value", "last_value", "nth_value")
_AMOUNTS: Final = ("lag", "ntile", "nth_value")
_INT_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True)
class WindowCall:
    """A function of a window, and the column that it adds."""

    name: str
    kind: WindowKind
    column: str | None = None
    amount: int = 0

    def describe(self) -> str:
        """Return it as a user would write it."""
        arguments = [*([] if self.column is None else [self.column]), *([str(self.amount)] * self.has_amount)]
        return f"{self.name}={self.kind}({', '.join(arguments)})"

    @property
    def has_amount(self) -> bool:
        """True if its amount says something."""
        return self.kind in _AMOUNTS

    def type_in(self, schema: Schema, operator: str) -> ColumnType:
        """Return the type of its answers; raise ExpressionError if it takes no column of that type."""
        if self.kind in _FRACTIONS:
            return floating
        if self.kind in (*_ORDER_KINDS, "ntile", "count"):
            return integer
        assert self.column is not None
        type_ = schema[self.column].type
        if self.kind in _PICKED:
            return type_.or_null()
        if self.kind in ("min", "max"):
            if type_.is_symbol or not type_.has_order:
                raise ExpressionError(
                    f"{operator}: {self.kind}({self.column}) of a window takes numbers and times, and column "
                    f"{self.column!r} is {type_}. In a text of dd.sql, "
                    f"{self.kind}({self.column}) OVER (…) takes it"
                )
            return type_.or_null()
        if type_.kind not in ("int", "float", "decimal"):
            raise ExpressionError(
                f"{operator}: {self.kind}({self.column}) of a window takes numbers, and column "
                f"{self.column!r} is {type_}. Write col.{self.column}.cast('float')"
            )
        if type_.kind == "decimal":
            return (mean_of_decimals(type_) if self.kind == "avg" else sum_of_decimals(type_)).or_null()
        return floating.or_null() if self.kind == "avg" else type_.or_null()


@dataclass(frozen=True, eq=False, repr=False)
class OverWindow(Unary):
    """All rows, each with answers of functions of the rows around it: of those with equal `keys`, in `order`.

    The functions see the rows of `frame`; see `differential.operators.reducing.window_parts`. A row of
    multiplicity 3 is three rows, which may get different answers.
    """

    kind: ClassVar[str] = "window"
    keys: tuple[str, ...]
    order: tuple[OrderBy, ...]
    calls: tuple[WindowCall, ...]
    frame: Frame = Frame()

    def data(self) -> list[object]:
        """Keys, order, calls, and the frame."""
        calls = [[each.name, each.kind, each.column, each.amount] for each in self.calls]
        frame = [self.frame.unit, self.frame.start, self.frame.stop]
        return [list(self.keys), _order_data(self.order), calls, frame]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*keys], [*order], [_, *_] as calls, [unit, start, stop]], [source]:
                by = tuple(_order_of(each) for each in order)
                window = cls(
                    source, texts_of(keys), by, tuple(map(_call_of, calls)), _frame_of(unit, start, stop)
                )
                window.check()
                return window
        return None

    def check(self) -> None:
        """Raise SchemaError or ExpressionError if the parts do not fit each other."""
        names = self.source.schema.names
        named = [*self.keys, *(each.column for each in self.order)]
        columns = [each.column for each in self.calls if each.column is not None]
        added = [each.name for each in self.calls]
        where = self.describe()
        for name in (*named, *columns):
            self.source.schema.offset(name)
        if len(set(named)) != len(named):
            raise SchemaError(f"{where}: an order names a column twice")
        if len({*names, *added}) != len(names) + len(added):
            raise SchemaError(f"{where}: two columns have one name")
        for call in self.calls:
            takes = call.kind not in (*_ORDER_KINDS, "ntile", "count")
            if takes != (call.column is not None) and call.kind != "count":
                raise SchemaError(f"{where}: {call.kind} takes {'a' if takes else 'no'} column")
            if call.kind in ("ntile", "nth_value") and call.amount < 1:
                raise SchemaError(f"{where}: {call.kind} takes a number of at least 1, not {call.amount}")
            if call.column in self.keys:
                raise SchemaError(f"{where}: {call.column!r} is a key, the same in all rows of a group")
        frame = self.frame
        if frame.is_of_values:
            ordered = [self.source.schema[each.column].type for each in self.order]
            kinds = _KINDS_OF_VALUES[frame.unit]
            is_wide = frame.unit == "range_of_wide"
            if len(ordered) != 1 or ordered[0].kind not in kinds or ordered[0].is_wide != is_wide:
                raise SchemaError(f"{where}: needs an order by one column of {' or '.join(kinds)}")
        if frame.unit == "range" and (frame.start or frame.stop):
            types = [self.source.schema[each.column].type for each in self.order]
            exact = ("int", "decimal", "timestamp", "date")
            if len(types) != 1 or types[0].kind not in exact or types[0].is_wide:
                raise SchemaError(
                    f"{where}: a range with bounds needs an order by one column of numbers, decimals of at "
                    "most 18 digits, or times, to which the bounds are added"
                )
        self.schema  # noqa: B018  # its types are checked with it

    @cached_property
    def rows(self) -> Schema:
        """The columns of `source`: keys, then those of the order, then all others."""
        for each in self.order:
            check_order(self.source.schema, each.column, self.describe())
        return self.source.schema.reordered([*self.keys, *(each.column for each in self.order)])

    @cached_property
    def schema(self) -> Schema:
        """Those columns, and the answers."""
        added = (Column(each.name, each.type_in(self.source.schema, self.describe())) for each in self.calls)
        return Schema((*self.rows, *added))

    def describe(self) -> str:
        """Return it as a user would write it."""
        over = [*self.keys]
        if self.order:
            over.append(f"by=[{', '.join(each.describe() for each in self.order)}]")
        frame = self.frame
        shown = "" if frame == Frame() else f".{frame.describe()}"
        calls = ", ".join(each.describe() for each in self.calls)
        return f"over({', '.join(over)}){shown}: {calls}"


def _call_of(data: object) -> WindowCall:
    match data:
        case [str(name), str(kind), (str() | None) as column, int(amount)] if kind in get_args(WindowKind):
            return WindowCall(name, cast("WindowKind", kind), column, amount)
    raise SchemaError(f"{data!r:.200} is no function of a window")


_KINDS_OF_VALUES: Final[Mapping[str, tuple[Kind, ...]]] = {
    "range_of_floats": ("float",), "range_of_months": ("date", "timestamp"), "range_of_wide": ("decimal",),
}  # fmt: skip
"""Which orders the units of frames are of whose bounds are added to values."""


def _frame_of(unit: object, start: object, stop: object) -> Frame:
    if unit in get_args(FrameUnit):
        match start, stop:
            case ((int() | None), (int() | None)):
                if all(each is None or -_INT_MAX <= each <= _INT_MAX for each in (start, stop)):
                    return Frame(cast("FrameUnit", unit), start, stop)
    raise SchemaError(f"{[unit, start, stop]!r:.200} is no frame of a window")


@dataclass(frozen=True)
class GroupCall:
    """What a `GroupValues` gives of a group: a list, a text, or a percentile.

    option   the separator of a text; the fraction of a percentile
    """

    name: str
    kind: AggregateKind
    option: float | str | None = None

    def describe(self, column: str) -> str:
        """Return it as a user would write it."""
        option = "" if self.option is None else f", {self.option!r}"
        return f"{self.name}={self.kind}({column}{option})"

    def type_in(self, values: ColumnType, operator: str) -> ColumnType:
        """Return the type of the answer; raise ExpressionError if there is none of such values."""
        if self.kind in ("collect", "collect_set"):
            return list_type(values)
        if self.kind == "percentile":
            if not values.is_number:
                raise ExpressionError(
                    f"{operator}: percentile and median are of numbers, not of {values}. For one of the "
                    "values themselves write percentile_disc"
                )
            return floating.or_null(values.nullable)
        if self.kind == "percentile_disc":
            if values.is_symbol:
                raise ExpressionError(
                    f"{operator}: percentile_disc is of numbers and times, not of {values}. For texts write "
                    "over(…, by=…).with_columns(place=dd.percent_rank())"
                )
            return values
        if values.kind != "string":
            raise ExpressionError(f"{operator}: a text is made of texts, not of {values}")
        return string.or_null(values.nullable)


@dataclass(frozen=True, eq=False, repr=False)
class GroupValues(Unary):
    """One row for each group of equal `keys`: the keys, and what `calls` give of the values of `column`.

    Null is no value. Values are in the order of `order`, and then in their own; a row of multiplicity 3 is
    three rows, one of a negative multiplicity none. Lists and texts are there while the group has a row;
    percentiles while it has one of a positive multiplicity.
    """

    kind: ClassVar[str] = "group_values"
    keys: tuple[str, ...]
    column: str
    order: tuple[OrderBy, ...]
    calls: tuple[GroupCall, ...]

    def data(self) -> list[object]:
        """Keys, column, order, and calls."""
        calls = [[each.name, each.kind, each.option] for each in self.calls]
        return [list(self.keys), self.column, _order_data(self.order), calls]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*keys], str(column), [*order], [_, *_] as calls], [source]:
                by = tuple(_order_of(each) for each in order)
                node = cls(source, texts_of(keys), column, by, tuple(map(_group_call_of, calls)))
                node.check()
                return node
        return None

    def check(self) -> None:
        """Raise SchemaError or ExpressionError if the parts do not fit each other."""
        kinds = {each.kind for each in self.calls}
        names = [*self.keys, *(each.column for each in self.order)]
        where = self.describe()
        if self.column in self.keys or len(set(names)) != len(names):
            raise SchemaError(f"{where}: a column is named twice")
        if len(self.calls) != 1 and not kinds <= PERCENTILES:
            raise SchemaError(f"{where}: lists and texts are made one at a time")
        if kinds <= PERCENTILES and self.order:
            raise SchemaError(f"{where}: percentiles are of the order of the values")
        for each in self.order:
            check_order(self.source.schema, each.column, where)
        self.schema  # noqa: B018  # its types are checked with it

    @cached_property
    def rows(self) -> Schema:
        """The columns of `source`: keys, then those of the order, then all others."""
        return self.source.schema.reordered([*self.keys, *(each.column for each in self.order)])

    @cached_property
    def schema(self) -> Schema:
        """The keys, and the answers."""
        over = self.source.schema
        values = over[self.column].type
        added = (Column(each.name, each.type_in(values, self.describe())) for each in self.calls)
        return Schema((*over.picked(self.keys), *added))

    def describe(self) -> str:
        """Return it as a user would write it."""
        order = f", by=[{', '.join(each.describe() for each in self.order)}]" if self.order else ""
        calls = ", ".join(each.describe(self.column) for each in self.calls)
        return f"group by {', '.join(self.keys) or 'nothing'}: {calls}{order}"


def _group_call_of(data: object) -> GroupCall:
    match data:
        case [str(name), "percentile" | "percentile_disc" as kind, float(fraction)] if 0 <= fraction <= 1:
            return GroupCall(name, kind, fraction)
        case [str(name), "string_agg" | "string_agg_set" as kind, str(separator)]:
            return GroupCall(name, kind, separator)
        case [str(name), "collect" | "collect_set" as kind, None]:
            return GroupCall(name, kind)
    raise SchemaError(f"{data!r:.200} is nothing that is made of the values of a group")
