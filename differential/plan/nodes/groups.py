"""Sums over groups, of one collection or of several together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

from ...aggregates import ADDED, OF_FLOATS, OF_PAIRS, Aggregate
from ...columns.column_types import ColumnType
from ...columns.schema import Column, Schema
from ...errors import SchemaError
from ..expressions import texts_of
from ..functions import UserFunctions
from .node import Node, same

__all__ = ["Accumulate", "AddedColumn"]


class AddedColumn(NamedTuple):
    """A column of the answer: its name, and the aggregate that is summed over the source of this number."""

    name: str
    source: int
    aggregate: Aggregate


@dataclass(frozen=True, eq=False, repr=False)
class Accumulate(Node):
    """One row per group: the keys, then each sum. All `sources` have columns with the names `keys`.

    A group is present while, in each of the first `needed` sources, the multiplicities of its rows sum to
    something other than 0. So the results of several operators for a group become one row; the aggregate
    `only` takes the result of one.
    """

    kind: ClassVar[str] = "accumulate"
    sources: tuple[Node, ...]
    keys: tuple[str, ...]
    needed: int
    added: tuple[AddedColumn, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """The sources."""
        return self.sources

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same sums over other sources."""
        return self if same(children, self.sources) else replace(self, sources=children)

    def data(self) -> list[object]:
        """Keys, number of needed sources, and the sums."""
        added = [
            [each.name, each.source, each.aggregate.kind, each.aggregate.column, *_second_of(each.aggregate)]
            for each in self.added
        ]
        return [list(self.keys), self.needed, added]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data:
            case [[*keys], int(needed), [*added]] if added and 0 <= needed <= len(children):
                columns = tuple(_added_of(each, len(children)) for each in added)
                return cls(children, texts_of(keys), needed, columns)
        return None

    @cached_property
    def schema(self) -> Schema:
        """Keys, then sums; raises ExpressionError if one of them has no type, SchemaError if keys differ."""
        keys = self.sources[0].schema.picked(self.keys)
        if any(source.schema.picked(self.keys) != keys for source in self.sources):
            raise SchemaError(f"groups by {', '.join(self.keys)} of collections where these differ in type")
        columns: list[Column] = []
        for name, source, aggregate in self.added:
            if aggregate.kind not in ADDED:
                raise SchemaError(f"{aggregate.describe()} is no sum")
            columns.append(Column(name, self._type(source, aggregate)))
        return Schema((*keys, *columns))

    def _type(self, source: int, aggregate: Aggregate) -> ColumnType:
        over = self.sources[source].schema
        if aggregate.kind in OF_FLOATS:
            for column in (aggregate.column, *_second_of(aggregate)):
                if column is None or over[column].type.kind != "float":
                    raise SchemaError(f"{aggregate.describe()} of ({over}) is of floats")
        return aggregate.type_in(over)

    @property
    def counts_only(self) -> bool:
        """True if the answer is only the number of rows of each group of one collection."""
        return len(self.sources) == 1 and all(
            each.aggregate.kind == "count" and each.aggregate.column is None for each in self.added
        )

    def columns_read(self, source: int) -> tuple[str, ...]:
        """Return the columns of a source that the sums read, keys first."""
        named = [
            column
            for each in self.added
            if each.source == source and each.aggregate.column is not None
            for column in (each.aggregate.column, *_second_of(each.aggregate))
        ]
        return tuple(dict.fromkeys((*self.keys, *named)))

    def _describe(self, added: AddedColumn) -> str:
        name, source, aggregate = added
        if aggregate.kind == "only":
            return name if aggregate.column == name else f"{name}={aggregate.column}"
        if source >= self.needed and aggregate.column is None:
            return f"{name}=count_distinct({self.sources[source].schema.names[-1]})"
        return f"{name}={aggregate.describe()}"

    def describe(self) -> str:
        """Return it as a user would write it."""
        text = ", ".join(map(self._describe, self.added))
        return f"group by {', '.join(self.keys) or 'nothing'}: {text}"


def _second_of(aggregate: Aggregate) -> list[str]:
    return [aggregate.second] if isinstance(aggregate.second, str) else []


def _added_of(data: object, sources: int) -> AddedColumn:
    match data:
        case [str(name), int(source), "covar_pop" | "covar_samp" as kind, str(column), str(second)] if (
            0 <= source < sources
        ):
            return AddedColumn(name, source, Aggregate(kind, column, second=second))
        case [str(name), int(source), "count", None] if 0 <= source < sources:
            return AddedColumn(name, source, Aggregate("count"))
        case [str(name), int(source), str(kind), str(column)] if (
            0 <= source < sources and kind in ADDED and kind not in OF_PAIRS
        ):
            return AddedColumn(name, source, Aggregate(kind, column))
    raise SchemaError(f"{data!r:.200} is nothing to be added up")
