"""Operators that store rows of earlier times: joins, groups, sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from ...aggregates import Aggregate
from ...columns.schema import Column, Schema
from ...errors import SchemaError
from ..expressions import pairs_of, schema_data, schema_of, texts_of
from ..functions import UserFunction, UserFunctions
from .guarded import ERRORS
from .node import Node, Unary

__all__ = ["Consolidate", "Distinct", "HalfJoin", "Join", "Keys", "Pairs", "Reduce", "ReduceFunction"]


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Node):
    """Pairs of a row of `left` and a row of `right` whose keys are equal; `on` are the pairs of key columns.

    Columns: the keys under their names in `left`, then the other columns of `left`, then those of `right`. A
    key that is null equals nothing, so that keys of pairs are never null. With `null_safe`, null equals null.
    """

    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]
    null_safe: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        """Left and right."""
        return (self.left, self.right)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same pairs of others."""
        left, right = children
        return self if left is self.left and right is self.right else replace(self, left=left, right=right)

    def data(self) -> list[object]:
        """The pairs of columns, and whether null equals null."""
        return [[list(pair) for pair in self.on], self.null_safe]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*pairs], bool(null_safe)], [left, right]:
                return cls(left, right, pairs_of(pairs), null_safe)
        return None

    @property
    def keys(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The key columns of the left, and those of the right."""
        return tuple(left for left, _ in self.on), tuple(right for _, right in self.on)

    @cached_property
    def schema(self) -> Schema:
        """The columns; raises SchemaError if keys differ in type, or two other columns have one name."""
        left_keys, right_keys = self.keys
        keys: list[Column] = [self.left.schema[key] for key in left_keys]
        if not self.null_safe:
            keys = [Column(key.name, key.type.not_null()) for key in keys]
        others = [column for column in self.left.schema if column.name not in left_keys]
        more = [column for column in self.right.schema if column.name not in right_keys]
        for left, right in self.on:
            if self.left.schema[left].type != self.right.schema[right].type:
                raise SchemaError(
                    f"join: key {left!r} is {self.left.schema[left].type}, key {right!r} is "
                    f"{self.right.schema[right].type}; cast one of them"
                )
        taken = {column.name for column in (*keys, *others)}
        for column in more:
            if column.name in taken:
                raise SchemaError(
                    f"join: both sides have a column {column.name!r} besides the keys. Rename one before: "
                    f"select(…, right_{column.name}=col.{column.name})"
                )
        return Schema((*keys, *others, *more))

    def describe(self) -> str:
        """Return its keys."""
        condition = " and ".join(f"{a} = {b}" if a != b else a for a, b in self.on)
        return f"{condition or 'nothing'}{', null equals null' if self.null_safe else ''}"


@dataclass(frozen=True, eq=False, repr=False)
class Join(Pairs):
    """All pairs. Both sides are stored by their keys."""

    kind: ClassVar[str] = "join"

    def describe(self) -> str:
        """Its keys."""
        return f"join on {super().describe()}"


@dataclass(frozen=True, eq=False, repr=False)
class HalfJoin(Pairs):
    """The pairs of updates in which the one of the side `probing` comes later, in one order of all updates.

    0: each update of the left pairs with those of the right up to its time, where times compare as integers;
    1: each update of the right pairs with those of the left before its time. So the two halves together are
    the join, and each stores one side only.
    """

    kind: ClassVar[str] = "half_join"
    probing: int = 0

    def data(self) -> list[object]:
        """The data of all pairs, and the side that probes."""
        return [*super().data(), self.probing]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*pairs], bool(null_safe), int(probing)], [left, right] if (
                probing in (0, 1) and type(probing) is int
            ):
                return cls(left, right, pairs_of(pairs), null_safe, probing)
        return None

    def describe(self) -> str:
        """Return its keys, and the side that probes."""
        return f"half join on {super().describe()}, the {('left', 'right')[self.probing]} probes"


@dataclass(frozen=True, eq=False, repr=False)
class Reduce(Unary):
    """One row per group of equal `keys`: the keys, and the least or greatest words of columns."""

    kind: ClassVar[str] = "reduce"
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]

    def data(self) -> list[object]:
        """Keys and aggregates."""
        return [list(self.keys), [[name, a.kind, a.column] for name, a in self.aggregates]]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*keys], [_, *_] as aggregates], [source]:
                return cls(source, texts_of(keys), tuple(_aggregate_of(each) for each in aggregates))
        return None

    @cached_property
    def schema(self) -> Schema:
        """Keys, then aggregates. Raises SchemaError unless each aggregate is min or max of a column whose
        words are in the order of its values and never null.
        """
        over = self.source.schema
        for _, aggregate in self.aggregates:
            if not _is_of_words(aggregate, over):
                raise SchemaError(f"{aggregate.describe()} of ({over}) is no least or greatest word")
        columns = tuple(Column(name, aggregate.type_in(over)) for name, aggregate in self.aggregates)
        return Schema((*over.picked(self.keys), *columns))

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns that determine the answers: rows that differ only in others count as one."""
        named = [a.column for _, a in self.aggregates if a.column is not None]
        return tuple(dict.fromkeys((*self.keys, *named)))

    def describe(self) -> str:
        """Return it as a user would write it."""
        text = ", ".join(f"{name}={aggregate.describe()}" for name, aggregate in self.aggregates)
        return f"group by {', '.join(self.keys) or 'nothing'}: {text}"


def _aggregate_of(data: object) -> tuple[str, Aggregate]:
    match data:
        case [str(name), "min" | "max" as kind, str(column)]:
            return name, Aggregate(kind, column)
    raise SchemaError(f"{data!r:.200} is no aggregate")


def _is_of_words(aggregate: Aggregate, over: Schema) -> bool:
    if aggregate.kind not in ("min", "max") or aggregate.column is None:
        return False
    type_ = over[aggregate.column].type
    return type_.is_ordered and type_.words == 1


@dataclass(frozen=True, eq=False, repr=False)
class ReduceFunction(Unary):
    """The rows that a function of the user returns for each group of equal `keys`.

    `collects`: a group on which the function fails has a row as well, which describes the error in columns
    behind the others.
    """

    kind: ClassVar[str] = "reduce_function"
    keys: tuple[str, ...]
    function: UserFunction
    columns: Schema
    collects: bool = False

    def data(self) -> list[object]:
        """Keys, function, its columns, and whether it collects errors."""
        return [list(self.keys), self.function.identity, schema_data(self.columns), self.collects]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*keys], identity, schema, bool(collects)], [source]:
                return cls(source, texts_of(keys), functions(identity), schema_of(schema), collects)
        return None

    @cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        """The function."""
        return (self.function,)

    @cached_property
    def schema(self) -> Schema:
        """The keys, the columns of the function, and those of errors if it collects them."""
        errors = [Column(f"error: {each.name}", each.type) for each in ERRORS if self.collects]
        return Schema((*self.source.schema.picked(self.keys), *self.columns, *errors))

    def describe(self) -> str:
        """Return it as a user would write it."""
        return f"reduce by {', '.join(self.keys) or 'nothing'}: {self.function.name}"


@dataclass(frozen=True, eq=False, repr=False)
class Distinct(Unary):
    """Each row that has a positive multiplicity, once."""

    kind: ClassVar[str] = "distinct"


@dataclass(frozen=True, eq=False, repr=False)
class Keys(Unary):
    """The values of `keys` that have rows (the sum of their multiplicities is positive), each once.

    As `Distinct` of a `Select` of `keys`; but it can read an arrangement by them, whatever other columns that
    has.
    """

    kind: ClassVar[str] = "keys"
    keys: tuple[str, ...]

    def data(self) -> list[object]:
        """The keys."""
        return [list(self.keys)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*keys]], [source]:
                return cls(source, texts_of(keys))
        return None

    @cached_property
    def schema(self) -> Schema:
        """The keys."""
        return self.source.schema.picked(self.keys)

    def describe(self) -> str:
        """Return its keys."""
        return f"keys {', '.join(self.keys)}"


@dataclass(frozen=True, eq=False, repr=False)
class Consolidate(Unary):
    """The same collection; the updates of each time are summed before they are sent on."""

    kind: ClassVar[str] = "consolidate"
