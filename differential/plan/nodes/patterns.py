"""Joins of many at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Self

from ...columns.schema import Column, Schema
from ...errors import SchemaError
from ...skew.balance import LEAD_MAX, Balance
from ...skew.running.schedule import ANNOUNCED
from ..expressions import pairs_of, texts_of
from ..functions import UserFunctions
from .node import Node, Unary, same
from .stateful import Join

__all__ = ["JoinAll", "Spread", "SpreadLoads"]

_LOADS: Final = Schema.of("side: int, unit: int, bucket: int, what: int")


@dataclass(frozen=True, eq=False, repr=False)
class Spread(Node):
    """Pairs of rows with equal keys, as `Join`, made in units whose routing follows `announcements`.

    What is sealed there in epoch a holds from epoch a + `lead` on.
    """

    kind: ClassVar[str] = "spread"
    left: Node
    right: Node
    announcements: Node
    on: tuple[tuple[str, str], ...]
    null_safe: bool
    balance: Balance
    lead: int

    @property
    def children(self) -> tuple[Node, ...]:
        """Both sides, and what is announced."""
        return (self.left, self.right, self.announcements)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same of others."""
        if same(children, self.children):
            return self
        left, right, announcements = children
        return replace(self, left=left, right=right, announcements=announcements)

    def data(self) -> list[object]:
        """The pairs of columns, what null equals, the scheme, and how soon announcements hold."""
        return [[list(pair) for pair in self.on], self.null_safe, self.balance.data(), self.lead]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*pairs], bool(null_safe), [*balance], int(lead)], [left, right, announcements] if (
                type(lead) is int and 0 <= lead <= LEAD_MAX
            ):
                if any(child.free for child in children):
                    raise SchemaError("a join whose routing changes is in a loop of a plan")
                on = pairs_of(pairs)
                return cls(left, right, announcements, on, null_safe, Balance.of(balance), lead)
        return None

    @property
    def plain(self) -> Join:
        """The join that it is."""
        return Join(self.left, self.right, self.on, self.null_safe)

    @cached_property
    def schema(self) -> Schema:
        """That of the join; raises SchemaError where that does, and for announcements that are none."""
        if self.announcements.schema != ANNOUNCED:
            raise SchemaError(f"announcements are ({ANNOUNCED}), not ({self.announcements.schema})")
        return self.plain.schema

    def describe(self) -> str:
        """The join, and how it is spread."""
        return f"{self.plain.describe()}, spread: {self.balance.describe()}, lead {self.lead}"


@dataclass(frozen=True, eq=False, repr=False)
class SpreadLoads(Unary):
    """How much there is in each unit of a join that is spread: (side, unit, bucket, what), as often."""

    kind: ClassVar[str] = "spread_loads"

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [], [Spread() as source]:
                return cls(source)
        return None

    @cached_property
    def schema(self) -> Schema:
        """The four columns."""
        return _LOADS

    def describe(self) -> str:
        """What it is."""
        return "loads of units"


@dataclass(frozen=True, eq=False, repr=False)
class JoinAll(Node):
    """Rows of all `parts` that agree in the columns that they share, which are `shared`; null equals nothing.

    `fewest`: where several parts could say what comes next, the one that has the fewest rows for what is
    there does so, for each row anew, and the others are asked whether they have it.
    Columns: in the order in which the parts have them first; those that are shared are never null.
    """

    kind: ClassVar[str] = "join_all"
    parts: tuple[Node, ...]
    shared: tuple[str, ...]
    fewest: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        """The parts."""
        return self.parts

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same of others."""
        return self if same(children, self.parts) else replace(self, parts=children)

    def data(self) -> list[object]:
        """The columns that are shared, and how it goes on."""
        return [list(self.shared), self.fewest]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data:
            case [[*shared], bool(fewest)] if len(children) > 1:
                return cls(children, texts_of(shared), fewest)
        return None

    @cached_property
    def schema(self) -> Schema:
        """Raises SchemaError if shared columns differ in type, others have one name, or nothing is shared."""
        found: dict[str, Column] = {}
        for part in self.parts:
            for column in part.schema:
                before = found.setdefault(column.name, column)
                if column.name not in self.shared and before is not column:
                    raise SchemaError(
                        f"join_all: two collections have a column {column.name!r} that is not named in on=. "
                        "Name it there, or rename one before: "
                        f"select(…, other_{column.name}=col.{column.name})"
                    )
                if before.type != column.type:
                    raise SchemaError(
                        f"join_all: {column.name!r} is {before.type} in one collection and {column.type} in "
                        "another; cast one of them"
                    )
        self._check_shared(Counter(name for part in self.parts for name in part.schema.names))
        return Schema(
            tuple(
                Column(name, column.type.not_null()) if name in self.shared else column
                for name, column in found.items()
            )
        )

    def _check_shared(self, counts: Counter[str]) -> None:
        for name in self.shared:
            if counts[name] < 2:
                raise SchemaError(
                    f"join_all: {counts[name] or 'none'} of the collections has the column {name!r} of on=; "
                    "it takes two to join. Rename columns so that what is to be equal has one name: "
                    "edges.select(a=col.src, b=col.dst)"
                )
        reached = _connected([part.schema.names for part in self.parts])
        if len(reached) < len(self.parts):
            left_out = next(n for n in range(len(self.parts)) if n not in reached)
            raise SchemaError(
                f"join_all: collection {left_out + 1} ({self.parts[left_out].schema}) shares no column with "
                "those joined to the first one. For all pairs of rows write cross_join"
            )

    def describe(self) -> str:
        """How many, by what."""
        how = ", the fewest candidates first" if self.fewest else ""
        return f"join of {len(self.parts)} on {', '.join(self.shared)}{how}"


def _connected(parts: Sequence[Iterable[str]]) -> set[int]:
    """The parts that share columns with the first one, or with such a part."""
    reached, columns = {0}, set(parts[0])
    more = True
    while more:
        new = {n for n, names in enumerate(parts) if n not in reached and columns & set(names)}
        more = bool(new)
        reached |= new
        columns.update(*(parts[n] for n in new))
    return reached
