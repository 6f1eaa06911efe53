"""Which column of a node is the column x of another node, on whose rows the first one stands?

`rows.x` is the column x of a certain collection, its *owner*, also behind operators and joins. Operators that
keep rows as they are keep their columns; a Select moves those that it names; groups keep their keys. A join
has two *sides*: the plan stores which columns of a side are which of the join. A column that is computed anew
is another one, even if it has the name of an old one.

Two sides may stand on the same owner, as in a self join. Then the side that *is* the owner, without operators
between, has the column. If both are, or neither is, the column is ambiguous, and the user gives sides names:
`rows.alias("a")`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...columns.schema import Schema
from ...expressions.expression import ColumnRef, Expr, Operation
from ..nodes import (
    Accumulate,
    Answered,
    Apply,
    Arrange,
    Concat,
    Consolidate,
    Delay,
    Distinct,
    During,
    Filter,
    GroupValues,
    Join,
    Keys,
    Negate,
    Node,
    NotNull,
    OnTime,
    OverWindow,
    PlaceOnUnits,
    Reduce,
    ReduceFunction,
    Select,
    Slide,
    Steered,
    TopK,
    Weigh,
)
from ..nodes.guarded import Provided

__all__ = ["JoinSide", "Origins", "PairsOfSides", "Wanted"]

_KEEPS_COLUMNS = (
    Answered,
    Arrange,
    Concat,
    Consolidate,
    Delay,
    Distinct,
    During,
    Filter,
    Join,
    Negate,
    NotNull,
    OnTime,
    OverWindow,
    PlaceOnUnits,
    Provided,
    Slide,
    Steered,
    TopK,
    Weigh,
)
"""Nodes with the columns of their first child, as far as they have them. A join that the plan has no sides of
is one of ours, by keys.
"""


@dataclass(frozen=True)
class JoinSide:
    """One side of a join: its node, its name if it has one, and its columns, as the join calls them."""

    node: Node
    alias: str | None
    names: Mapping[str, str]


@dataclass(frozen=True)
class PairsOfSides:
    """The pairs of two sides, for a condition on them."""

    schema: Schema
    sides: tuple[JoinSide, JoinSide]


class Wanted(NamedTuple):
    """A column: its name, and its owner by node, by alias, or by both."""

    name: str
    node: Node | None
    alias: str | None


class _Candidate(NamedTuple):
    """A column, and whether it is one of the owner itself, without operators between."""

    name: str
    is_own: bool


@dataclass
class Origins:
    """The joins of a plan, by the digests of their nodes, and explode, which has columns of its input."""

    sides: dict[bytes, list[tuple[JoinSide, ...]]] = field(default_factory=dict)

    def joined(self, node: Node, sides: tuple[JoinSide, ...]) -> None:
        """Note the sides of a join; of an operator with one input, that is one side."""
        noted = self.sides.setdefault(node.digest, [])
        if sides not in noted:
            noted.append(sides)

    def names(self, rows: Node | PairsOfSides, alias: str | None, wanted: Wanted) -> list[str]:
        """Return the columns of `rows`, which are called `alias`, that are the one that is wanted: none, one,
        or several if it is ambiguous.
        """
        if isinstance(rows, PairsOfSides):
            candidates = self._in_sides(rows.sides, wanted)
        else:
            candidates = list(self._candidates(rows, alias, wanted))
        return list(dict.fromkeys(each.name for each in candidates))

    def columns(self, rows: Node | PairsOfSides, called: str | None, alias: str) -> tuple[str, ...]:
        """Return the columns of what is called `alias` among `rows`, which are called `called`; none if
        nothing is.
        """
        if called == alias and not isinstance(rows, PairsOfSides):
            return rows.schema.names
        for sides in self._sides_below(rows):
            if columns := self._columns_in(sides, alias):
                return columns
        return ()

    def lacking(self, rows: Node | PairsOfSides, called: str | None, alias: str) -> set[str]:
        """Return the columns of what is called `alias` that its join has not: keys, behind outer joins."""
        if called == alias and not isinstance(rows, PairsOfSides):
            return set()
        for sides in self._sides_below(rows):
            if lacking := self._lacking_in(sides, alias):
                return lacking
        return set()

    def _lacking_in(self, sides: tuple[JoinSide, ...], alias: str) -> set[str]:
        lacking: set[str] = set()
        for side in sides:
            if side.alias == alias:
                lacking |= set(side.node.schema.names) - side.names.keys()
            else:
                lacking |= self.lacking(side.node, side.alias, alias)
        return lacking

    def aliases(self, rows: Node | PairsOfSides, called: str | None) -> set[str]:
        """Return the names of all that has a name among `rows`, which are called `called`."""
        if called is not None and not isinstance(rows, PairsOfSides):
            return {called}
        return set[str]().union(*map(self._aliases_in, self._sides_below(rows)))

    def _sides_below(self, rows: Node | PairsOfSides) -> Iterator[tuple[JoinSide, ...]]:
        """Yield the sides of the first join that `rows` come from; several where joins are one node."""
        if isinstance(rows, PairsOfSides):
            yield rows.sides
            return
        node = rows
        while node.digest not in self.sides:
            if _moved(node) is None:
                return
            node = node.children[0]
        yield from self.sides[node.digest]

    def _aliases_in(self, sides: tuple[JoinSide, ...]) -> set[str]:
        return set[str]().union(*(self.aliases(side.node, side.alias) for side in sides))

    def _columns_in(self, sides: tuple[JoinSide, ...], alias: str) -> tuple[str, ...]:
        for side in sides:
            if columns := self.columns(side.node, side.alias, alias):
                return columns
        return ()

    def _candidates(self, node: Node, alias: str | None, wanted: Wanted) -> Iterator[_Candidate]:
        names = {name: name for name in node.schema.names}
        is_own = True
        while True:
            if _is_owner(node, alias, wanted):
                if wanted.name in names:
                    yield _Candidate(names[wanted.name], is_own)
                return
            for sides in self.sides.get(node.digest, ()):
                for each in self._in_sides(sides, wanted):
                    if each.name in names:
                        yield _Candidate(names[each.name], each.is_own and len(sides) > 1)
            moved = None if node.digest in self.sides else _moved(node)
            if moved is None:
                return
            names = {old: names[new] for old, new in moved.items() if new in names}
            node, is_own = node.children[0], False

    def _in_sides(self, sides: tuple[JoinSide, ...], wanted: Wanted) -> list[_Candidate]:
        candidates = [
            _Candidate(side.names[each.name], each.is_own)
            for side in sides
            for each in self._candidates(side.node, side.alias, wanted)
            if each.name in side.names
        ]
        return [each for each in candidates if each.is_own] or candidates


def _is_owner(node: Node, alias: str | None, wanted: Wanted) -> bool:
    if wanted.node is None:
        return alias == wanted.alias and wanted.name in node.schema
    if node.digest != wanted.node.digest:
        return False
    return wanted.alias is None or alias is None or wanted.alias == alias


def _moved(node: Node) -> dict[str, str] | None:
    """Return what the columns of the first child are called in `node`; None if it has none of them."""
    if isinstance(node, Select):
        moved: dict[str, str] = {}
        for name, expr in node.columns:
            source = _source(expr, node.source.schema)
            if source is not None and (source not in moved or source == name):
                moved[source] = name
        return moved
    if isinstance(node, Accumulate | GroupValues | Keys | Reduce | ReduceFunction):
        return {name: name for name in node.keys}
    if isinstance(node, _KEEPS_COLUMNS) or (isinstance(node, Apply) and node.how == "filter"):
        return {name: name for name in node.schema.names if name in node.children[0].schema}
    return None


def _source(expr: Expr, schema: Schema) -> str | None:
    """Return the column that an expression only passes on, perhaps as one that may be null."""
    if isinstance(expr, ColumnRef):
        return expr.name
    if isinstance(expr, Operation) and expr.op == "cast" and isinstance(expr.operands[0], ColumnRef):
        name = expr.operands[0].name
        return name if schema[name].type.or_null() == expr.to else None
    return None
