"""Joins of many collections at once, joins spread over units, and rows between bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Literal, Self, get_args

from ...columns.schema import Column, Schema
from ...errors import SchemaError
from ...skew.balance import LEAD_MAX, Balance
from ...skew.running.schedule import ANNOUNCED
from ...skew.running.steering import COUNTED
from ..expressions import pairs_of, texts_of
from ..functions import UserFunctions
from .node import Node, Unary, same
from .stateful import Join

__all__ = ["BOUND_OPS", "BoundOp", "Bounded", "JoinAll", "Spread", "SpreadLoads", "Steered"]

BoundOp = Literal["<", "<=", ">", ">=", "=="]
BOUND_OPS: Final[tuple[BoundOp, ...]] = get_args(BoundOp)

_LOADS: Final = Schema.of("side: int, unit: int, bucket: int, what: int")


@dataclass(frozen=True, eq=False, repr=False)
class Spread(Node):
    """Pairs of rows with equal keys, as `Join`, made in units; `announcements` change the units' routing.

    An announcement that is sealed in epoch a holds from epoch a + `lead` on.
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
        """Both sides, and the announcements."""
        return (self.left, self.right, self.announcements)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same join of others."""
        if same(children, self.children):
            return self
        left, right, announcements = children
        return replace(self, left=left, right=right, announcements=announcements)

    def data(self) -> list[object]:
        """The pairs of columns, whether null equals null, the scheme, and the lead."""
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
        """The same join without units."""
        return Join(self.left, self.right, self.on, self.null_safe)

    @cached_property
    def schema(self) -> Schema:
        """The columns of the join. Raises SchemaError if the join does, or if the announcements have other
        columns than `ANNOUNCED`.
        """
        if self.announcements.schema != ANNOUNCED:
            raise SchemaError(f"announcements are ({ANNOUNCED}), not ({self.announcements.schema})")
        return self.plain.schema

    def describe(self) -> str:
        """The join, and how it is spread."""
        return f"{self.plain.describe()}, spread: {self.balance.describe()}, lead {self.lead}"


@dataclass(frozen=True, eq=False, repr=False)
class SpreadLoads(Unary):
    """The load of each unit of a spread join: rows (side, unit, bucket, what), as often as its load says."""

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
        """Return its fixed text."""
        return "loads of units"


@dataclass(frozen=True, eq=False, repr=False)
class JoinAll(Node):
    """Combinations of a row of each of `parts` that agree in the `shared` columns; null equals nothing.

    `fewest`: where several parts could propose values of the next columns, the part with the fewest
    candidates for a row proposes them, decided for each row anew, and the other parts only say whether they
    have them.
    Columns: in the order in which the parts first have them; those that are shared are never null.
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
        """The shared columns, and whether the fewest candidates decide."""
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
        """The columns. Raises SchemaError if shared columns differ in type, if others have one name, or if
        the parts are not connected by shared columns.
        """
        columns: dict[str, Column] = {}
        for part in self.parts:
            for column in part.schema:
                if column.name in columns and column.name not in self.shared:
                    raise SchemaError(
                        f"join_all: two collections have a column {column.name!r} that is not named in on=. "
                        "Name it there, or rename one before: "
                        f"select(…, other_{column.name}=col.{column.name})"
                    )
                first = columns.setdefault(column.name, column)
                if first.type != column.type:
                    raise SchemaError(
                        f"join_all: {column.name!r} is {first.type} in one collection and {column.type} in "
                        "another; cast one of them"
                    )
        self._check_shared(Counter(name for part in self.parts for name in part.schema.names))
        return Schema(
            tuple(
                Column(name, column.type.not_null()) if name in self.shared else column
                for name, column in columns.items()
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
        """Return the number of parts, and the shared columns."""
        how = ", the fewest candidates first" if self.fewest else ""
        return f"join of {len(self.parts)} on {', '.join(self.shared)}{how}"


def _connected(parts: Sequence[Iterable[str]]) -> set[int]:
    """Return the parts that share columns with the first one, or with such a part."""
    reached, columns = {0}, set(parts[0])
    more = True
    while more:
        new = {n for n, names in enumerate(parts) if n not in reached and columns & set(names)}
        more = bool(new)
        reached |= new
        columns.update(*(parts[n] for n in new))
    return reached


@dataclass(frozen=True, eq=False, repr=False)
class Steered(Unary):
    """The announcements that a controller in the dataflow makes of the counts `source` for a join with
    `balance`.
    """

    kind: ClassVar[str] = "steered"
    balance: Balance

    def data(self) -> list[object]:
        """The scheme."""
        return [self.balance.data()]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*balance]], [source] if source.schema == COUNTED and not source.free:
                return cls(source, Balance.of(balance))
        return None

    @cached_property
    def schema(self) -> Schema:
        """The columns of announcements."""
        return ANNOUNCED

    def describe(self) -> str:
        """Return what it does."""
        return "keys divided among workers, once that pays"


@dataclass(frozen=True, eq=False, repr=False)
class Bounded(Node):
    """Rows of `source`, as often as there are rows of `bounds` for which all of `tests` are true.

    A test (op, bound) compares the column `of` of the source with a column of `bounds`; none of these may be
    null, and all have one type, whose words are in the order of its values. `bounds` has few rows.
    """

    kind: ClassVar[str] = "bounded"
    source: Node
    bounds: Node
    of: str
    tests: tuple[tuple[BoundOp, str], ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """The source, and the bounds."""
        return (self.source, self.bounds)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same of others."""
        source, bounds = children
        return self if same(children, self.children) else replace(self, source=source, bounds=bounds)

    def data(self) -> list[object]:
        """The column, and the tests."""
        return [self.of, [list(test) for test in self.tests]]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [str(of), [_, *_] as written], [source, bounds] if of in source.schema:
                tests: list[tuple[BoundOp, str]] = []
                for test in written:
                    match test:
                        case [str(op), str(name)] if op in BOUND_OPS and name in bounds.schema:
                            tests.append((op, name))
                        case _:
                            return None
                types = {source.schema[of].type, *(bounds.schema[name].type for _, name in tests)}
                (type_, *others) = types
                if others or type_.nullable or not type_.is_ordered or source.free or bounds.free:
                    return None
                return cls(source, bounds, of, tuple(tests))
        return None

    @cached_property
    def schema(self) -> Schema:
        """The columns of the source."""
        return self.source.schema

    def describe(self) -> str:
        """The tests."""
        return f"rows in the order of {self.of}, " + " and ".join(
            f"{self.of} {op} {name}" for op, name in self.tests
        )
