"""Joins that go round in a circle become one join of all of them, which keeps nothing in between.

    join(join(ab, bc), ac)     join_all([ab, bc, ac], on=[a, b, c], the fewest candidates first)

Of collections that hang together in a circle by what is equal, a chain of joins keeps, before it closes, ways
that may be many more than all rows that come in or go out: at each node of a graph, the edges to it times
those from it, though there may be no triangle at all. The join of all never has more than the largest result
that collections of these sizes can have. Where there is no circle (orders, their lines, the parts of these),
a chain answers a change sooner, and its steps are of the size of what comes in: it stays. So it does where
all parts are different collections: tables that are joined round (customer, order, line, supplier of the same
nation) are joined along keys. What goes round one collection of edges is not.

Circles are what is left when ears are taken off until there are none: an *ear* shares columns with others
only within one of them (the reduction of Graham, Yu and Özsoyoğlu). All parts of a circle of joins are taken,
and no ears that were joined later.

It must not fire where a step of the chain is kept anyway, for others that read it or because somebody asked
for that (`arrange`, `consolidate`), which is also the way to have it so; where null equals null; inside of a
loop, since a row of `join_all` waits there for earlier epochs to be done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from ...expressions.expression import ColumnRef
from ..facts import is_arranged, moves_columns
from ..nodes import Join, JoinAll, Node, Select
from .sharing import collection_of

__all__ = ["join_circle", "without_ears"]

_PARTS_MAX: Final = 6
"""A join of n looks up n (n - 1) times, each a stage."""


@dataclass(frozen=True)
class _JoinTree:
    """Joins one above the other, as parts whose columns have numbers: what has to be equal has the same one.

    parts     what is joined, and the number of each of its columns
    columns   by name, the number of each column of the result
    """

    parts: tuple[tuple[Node, dict[str, int]], ...]
    columns: dict[str, int]

    @property
    def edges(self) -> list[set[int]]:
        """The numbers of each part."""
        return [set(columns.values()) for _, columns in self.parts]


def join_circle(node: Node, readers: Callable[[Node], int]) -> Node | None:
    """What does instead of this node; None if the rule does not apply. `readers`: how many read a node."""
    if not isinstance(node, Join) or node.free or not node.on or node.null_safe:
        return None
    tree = _joined(node, readers, 0)
    circle = without_ears(tree.edges)
    if len(tree.parts) > _PARTS_MAX or not circle:
        return None
    if len(circle) < len(tree.parts) and any(isinstance(_moved(child), JoinAll) for child in node.children):
        return None  # a circle already, and what is joined to it is an ear
    around = [
        collection_of(part)[0].digest
        for (part, _), edge in zip(tree.parts, tree.edges, strict=True)
        if edge in circle
    ]
    if len(set(around)) == len(around):
        return None  # of different collections
    return _at_once(tree, node)


def without_ears(edges: Sequence[Collection[int]]) -> list[set[int]]:
    """What is left of these sets when ears are taken off until there are none."""
    left = [set(edge) for edge in edges]
    while True:
        counts = Counter(number for edge in left for number in edge)
        shared = [{number for number in edge if counts[number] > 1} for edge in left]
        ear = next(
            (
                n
                for n, edge in enumerate(shared)
                if len(left) == 1 or any(edge <= other for m, other in enumerate(left) if m != n)
            ),
            None,
        )
        if ear is None:
            return left
        del left[ear]


def _joined(node: Node, readers: Callable[[Node], int], first: int) -> _JoinTree:
    """The joins from `node` downwards, with numbers from `first` on; the node itself may have any readers."""
    if isinstance(node, Select):
        below = _part(node.source, readers, first)
        moved = moves_columns(node)
        assert moved is not None, node
        return _JoinTree(below.parts, {name: below.columns[old] for name, old in moved.items()})
    if isinstance(node, JoinAll):
        numbers = {name: first + n for n, name in enumerate(node.schema.names)}
        parts = tuple((part, {name: numbers[name] for name in part.schema.names}) for part in node.parts)
        return _JoinTree(parts, numbers)
    assert isinstance(node, Join), node
    left = _part(node.left, readers, first)
    right = _part(node.right, readers, first + 1 + max(_numbers(left)))
    same: dict[int, int] = {}
    for of_left, of_right in node.on:
        old, new = _found(same, right.columns[of_right]), _found(same, left.columns[of_left])
        if old != new:
            same[old] = new
    _, right_keys = node.keys
    others = {name: number for name, number in right.columns.items() if name not in right_keys}
    columns = {**left.columns, **others}
    return _JoinTree(
        tuple(
            (part, {name: _found(same, number) for name, number in numbers.items()})
            for part, numbers in (*left.parts, *right.parts)
        ),
        {name: _found(same, columns[name]) for name in node.schema.names},
    )


def _part(node: Node, readers: Callable[[Node], int], first: int) -> _JoinTree:
    if _is_passed(node) and readers(node) == 1:
        return _joined(node, readers, first)
    numbers = {name: first + n for n, name in enumerate(node.schema.names)}
    return _JoinTree(((node, numbers),), numbers)


def _is_passed(node: Node) -> bool:
    """Whether it is a join that nobody has asked to be kept, or moves columns (of one, or of a part)."""
    if isinstance(node, Select):
        return moves_columns(node) is not None and _is_passed(node.source)
    if isinstance(node, JoinAll):
        return node.fewest
    return isinstance(node, Join) and bool(node.on) and not node.null_safe


def _moved(node: Node) -> Node:
    while isinstance(node, Select) and moves_columns(node) is not None:
        node = node.source
    return node


def _numbers(tree: _JoinTree) -> set[int]:
    return {number for _, numbers in tree.parts for number in numbers.values()}


def _found(same: dict[int, int], number: int) -> int:
    while number in same:
        number = same[number]
    return number


def _at_once(tree: _JoinTree, node: Join) -> Node | None:
    """The join of all parts, under the names that the columns of `node` have."""
    counts = Counter(number for edge in tree.edges for number in edge)
    types: dict[int, object] = {}
    for part, numbers in tree.parts:
        if is_arranged(part) or len(set(numbers.values())) < len(numbers):
            return None  # asked for; or two of its columns are to be equal
        for name, number in numbers.items():
            if types.setdefault(number, part.schema[name].type) != part.schema[name].type:
                return None  # null in one of them only
    parts = tuple(
        Select(part, tuple((f"c{number}", ColumnRef(name)) for name, number in numbers.items()))
        for part, numbers in tree.parts
    )
    shared = tuple(f"c{number}" for number in sorted(counts) if counts[number] > 1)
    made = Select(
        JoinAll(parts, shared, fewest=True),
        tuple((name, ColumnRef(f"c{tree.columns[name]}")) for name in node.schema.names),
    )
    return made if made.schema == node.schema else None
