"""Operators that put the rows of a group in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final, Self

from ...columns.column_types import integer
from ...columns.schema import Column, Schema
from ...errors import ExpressionError, SchemaError
from ...expressions.expression import ColumnRef, Ordering
from ...operators.ordered.layout import SortDirection
from ...operators.reduce import RankKind
from ..expressions import texts_of
from ..functions import UserFunctions
from .node import Node, Unary

__all__ = ["ALL_ROWS", "OrderBy", "TopK", "check_order"]

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
    the number of each row in its group, and the way of counting.
    """

    kind: ClassVar[str] = "top_k"
    keys: tuple[str, ...]
    order: tuple[OrderBy, ...]
    limit: int
    offset: int = 0
    rank: tuple[str, RankKind] | None = None

    def data(self) -> list[object]:
        """Keys, order, limit, offset, rank."""
        order = [[each.column, each.direction.descending, each.direction.nulls_last] for each in self.order]
        rank = None if self.rank is None else list(self.rank)
        return [list(self.keys), order, self.limit, self.offset, rank]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*keys], [*order], int(limit), int(offset), rank], [source] if limit > 0 <= offset:
                by = tuple(_order_of(each) for each in order)
                named = [*keys, *(each.column for each in by)]
                if len(set(named)) != len(named) or limit + offset > ALL_ROWS:
                    raise SchemaError(
                        f"an order by {named!r:.200} of a plan names a column twice, or is too long"
                    )
                match rank:
                    case None:
                        return cls(source, texts_of(keys), by, limit, offset)
                    case [str(name), "row_number" | "rank" | "dense" as kind]:
                        return cls(source, texts_of(keys), by, limit, offset, (name, kind))
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
        limit = "all" if self.limit == ALL_ROWS else str(self.limit)
        return f"top_k({limit}, {', '.join(parts)})"


def _order_of(data: object) -> OrderBy:
    match data:
        case [str(column), bool(descending), bool(nulls_last)]:
            return OrderBy(column, SortDirection(descending, nulls_last))
    raise SchemaError(f"{data!r:.200} is no column of an order")
