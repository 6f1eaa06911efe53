"""Operators that treat every row by itself, without state; they cost no stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, Self, cast, get_args

from ...columns.column_types import integer
from ...columns.schema import Column, Schema
from ...errors import SchemaError
from ...expressions.expression import Expr
from ...expressions.nulls import not_null_where
from ...expressions.pending import over_rows
from ...expressions.types import check_condition
from ...linear.placing import placed
from ...skew.balance import Balance, Purpose
from ..expressions import expr_data, expr_of, schema_data, schema_of, texts_of
from ..functions import UserFunction, UserFunctions
from .node import Node, Unary, same

__all__ = [
    "Apply",
    "ApplyKind",
    "Arrange",
    "Concat",
    "Filter",
    "Negate",
    "NotNull",
    "PlaceOnUnits",
    "Select",
    "Weigh",
]

ApplyKind = Literal["map", "flat_map", "filter", "threshold", "map_batches"]


@dataclass(frozen=True, eq=False, repr=False)
class Select(Unary):
    """Rows of these columns, each an expression over those of `source`."""

    kind: ClassVar[str] = "select"
    is_linear: ClassVar[bool] = True
    columns: tuple[tuple[str, Expr], ...]

    def data(self) -> list[object]:
        """Names and expressions."""
        return [[name, expr_data(expr)] for name, expr in self.columns]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [_, *_], [source]:
                return cls(source, tuple(_column_of(column) for column in data))
        return None

    def settled(self) -> Self:
        """As `Node.settled`."""
        columns = tuple((name, over_rows(expr, self.source)) for name, expr in self.columns)
        return replace(self, columns=columns)

    @cached_property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions of its columns."""
        return tuple(expr for _, expr in self.columns)

    @cached_property
    def schema(self) -> Schema:
        """The columns; raises ExpressionError if an expression does not fit the columns of `source`."""
        over = self.source.schema
        return Schema(tuple(Column(name, expr.type_in(over)) for name, expr in self.columns))

    def describe(self) -> str:
        """Return it as a user would write it."""
        return f"select({', '.join(_named(name, expr) for name, expr in self.columns)})"


@dataclass(frozen=True, eq=False, repr=False)
class Filter(Unary):
    """The rows where `condition` is true."""

    kind: ClassVar[str] = "filter"
    is_linear: ClassVar[bool] = True
    condition: Expr

    def data(self) -> list[object]:
        """The condition."""
        return [expr_data(self.condition)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [condition], [source]:
                return cls(source, expr_of(condition))
        return None

    def settled(self) -> Self:
        """As `Node.settled`."""
        return replace(self, condition=over_rows(self.condition, self.source))

    @cached_property
    def expressions(self) -> tuple[Expr, ...]:
        """The condition."""
        return (self.condition,)

    @cached_property
    def schema(self) -> Schema:
        """The same columns; raises ExpressionError if the condition is not a bool."""
        check_condition(self.condition, self.source.schema)
        return self.source.schema

    def describe(self) -> str:
        """Return it as a user would write it."""
        return f"filter({self.condition.describe()})"


@dataclass(frozen=True, eq=False, repr=False)
class NotNull(Unary):
    """The same rows, with the columns `names` declared as never null, since the filter beneath implies it.

    This node checks no row. So no rule may move it in front of that filter: rules move filters downwards
    only, past this node as past any other, and leave the node where it was written.
    """

    kind: ClassVar[str] = "not_null"
    is_linear: ClassVar[bool] = True
    names: tuple[str, ...]

    def data(self) -> list[object]:
        """The columns."""
        return list(self.names)

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [_, *_], [Filter() as source] if set(data) <= set(source.schema.names) & not_null_where(
                source.condition
            ):
                return cls(source, texts_of(data))
        return None

    @cached_property
    def schema(self) -> Schema:
        """The same columns, with `names` never null; raises SchemaError if one of them is missing."""
        return self.source.schema.without_nulls(self.names)

    def describe(self) -> str:
        """Return the columns."""
        return f"not null: {', '.join(self.names)}"


@dataclass(frozen=True, eq=False, repr=False)
class Negate(Unary):
    """All multiplicities with the other sign."""

    kind: ClassVar[str] = "negate"
    is_linear: ClassVar[bool] = True


@dataclass(frozen=True, eq=False, repr=False)
class Weigh(Unary):
    """The rows without the column `by`, of type int, which multiplies their multiplicities."""

    kind: ClassVar[str] = "weigh"
    is_linear: ClassVar[bool] = True
    by: str

    def data(self) -> list[object]:
        """The column."""
        return [self.by]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [str(by)], [source]:
                return cls(source, by)
        return None

    @cached_property
    def schema(self) -> Schema:
        """The other columns; raises SchemaError unless `by` is an int that is never null."""
        over = self.source.schema
        if str(over[self.by].type) != "int":
            raise SchemaError(f"a multiplicity is an int, not {over[self.by].type}")
        return over.picked([name for name in over.names if name != self.by])

    def describe(self) -> str:
        """Return the column."""
        return f"weigh by {self.by}"


@dataclass(frozen=True, eq=False, repr=False)
class Apply(Unary):
    """A function of the user, called for each record or for batches."""

    kind: ClassVar[str] = "apply"
    is_linear: ClassVar[bool] = True
    how: ApplyKind
    function: UserFunction
    columns: Schema

    def data(self) -> list[object]:
        """The way of calling, the function, and its columns."""
        return [self.how, self.function.identity, schema_data(self.columns)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case ["map" | "flat_map" | "map_batches" as how, identity, schema], [source]:
                return cls(source, how, functions(identity), schema_of(schema))
            case ["filter" | "threshold" as how, identity, schema], [source] if schema_of(
                schema
            ) == source.schema and (how == "filter" or source.schema.columns[-1].type == integer):
                return cls(source, how, functions(identity), source.schema)
        return None

    @cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        """The function."""
        return (self.function,)

    @cached_property
    def schema(self) -> Schema:
        """As declared."""
        return self.columns

    def describe(self) -> str:
        """Return it as a user would write it."""
        return f"{self.how}({self.function.name})"


@dataclass(frozen=True, eq=False, repr=False)
class PlaceOnUnits(Unary):
    """Each row once for each unit in which it is stored or probes, with the unit as first column.

    side   0: a row of the left side of a join; 1: of the right

    Laws: two rows of different sides with equal keys meet in one unit, where one of them is stored and the
    other probes. A row of a divided group is in one unit. The rows of all units, without the unit, have no
    meaning by themselves.
    """

    kind: ClassVar[str] = "place"
    is_linear: ClassVar[bool] = True
    keys: tuple[str, ...]
    side: int
    purpose: Purpose
    balance: Balance

    def data(self) -> list[object]:
        """Keys, side, purpose, and the scheme."""
        return [list(self.keys), self.side, self.purpose, self.balance.data()]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*keys], int(side), str(purpose), [*balance]], [source] if (
                side in (0, 1) and type(side) is int and purpose in get_args(Purpose)
            ):
                return cls(source, texts_of(keys), side, cast("Purpose", purpose), Balance.of(balance))
        return None

    @cached_property
    def schema(self) -> Schema:
        """The unit and the columns of `source`. Raises SchemaError if one of these has the unit's name, or if
        groups are to be divided and the balance keeps each key in one unit.
        """
        if self.purpose == "divided" and self.balance.division is None:
            raise SchemaError(f"{self.balance.describe()}: each key is in one unit, so no group is divided")
        for key in self.keys:
            self.source.schema.offset(key)
        return placed(self.source.schema)

    def describe(self) -> str:
        """Return the keys, the scheme, the side and the purpose."""
        by = ", ".join(self.keys) or "nothing"
        return f"place by {by}: {self.balance.describe()}, {('left', 'right')[self.side]} {self.purpose}"


@dataclass(frozen=True, eq=False, repr=False)
class Concat(Node):
    """The sum of several collections with the same columns."""

    kind: ClassVar[str] = "concat"
    is_linear: ClassVar[bool] = True
    sources: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """All of them."""
        return self.sources

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The sum of other sources."""
        return self if same(children, self.sources) else replace(self, sources=children)

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        if data or not children:
            return None
        if any(child.schema != children[0].schema for child in children):
            raise SchemaError("a sum in a plan has parts with different columns")
        return cls(children)

    @cached_property
    def schema(self) -> Schema:
        """The columns of each source."""
        first = self.sources[0].schema
        assert all(source.schema == first for source in self.sources), "columns are put in order before"
        return first


@dataclass(frozen=True, eq=False, repr=False)
class Arrange(Unary):
    """The same collection; operators that look it up by `keys` read one shared arrangement of it."""

    kind: ClassVar[str] = "arrange"
    is_linear: ClassVar[bool] = True
    keys: tuple[str, ...]

    def data(self) -> list[object]:
        """The keys."""
        return [list(self.keys)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[_, *_] as keys], [source] if all(
                isinstance(key, str) and key in source.schema for key in keys
            ):
                return cls(source, texts_of(keys))
        return None

    def describe(self) -> str:
        """Return it as a user would write it."""
        return f"arrange by {', '.join(self.keys)}"


def _named(name: str, expr: Expr) -> str:
    text = expr.describe()
    return name if text == f"col.{name}" else f"{name}={text}"


def _column_of(data: object) -> tuple[str, Expr]:
    match data:
        case [str(name), entries]:
            return name, expr_of(entries)
    raise SchemaError(f"{data!r:.200} is no column of a plan")
