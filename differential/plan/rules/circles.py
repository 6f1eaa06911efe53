"""Replace joins that go round in a circle by one join of all of them, which stores nothing in between.

    join(join(ab, bc), ac)     join_all([ab, bc, ac], on=[a, b, c], the fewest candidates first)

When collections hang together in a circle of equal columns, a chain of joins stores partial results before
the circle closes. These may be many more than all rows that come in or go out: at each node of a graph, the
edges to it times those from it, though there may be no triangle at all. The join of all never has more rows
than the largest result that collections of these sizes can have. Where there is no circle (orders, their
lines, the parts of these), a chain answers a change sooner, and its steps are of the size of what comes in:
the rule leaves it. The rule also leaves a circle whose parts are all different collections: such tables
(customer, order, line, supplier of the same nation) are joined along keys. A circle within one collection of
edges is not.

A circle is what is left when ears are taken off until there are none. An *ear* shares columns with others
only within one of them (the reduction of Graham, Yu and Özsoyoğlu). The rule takes all parts of a circle of
joins, and no ears that were joined later.

The rule must not fire where null equals null, nor where a step of the chain is stored anyway: because others
read it, or because the user wrote `arrange` or `consolidate` (which is also how a user keeps the chain). It
must not fire in a loop either, since a row of `join_all` waits there until earlier epochs are done.
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
"""Limit of parts: a join of n looks up n (n - 1) times, each time in a stage of its own."""


@dataclass(frozen=True)
class _JoinTree:
    """Nested joins as a list of parts with numbered columns: columns that must be equal have the same number.

    parts     the joined nodes, and the number of each of their columns
    columns   by name, the number of each column of the result
    """

    parts: tuple[tuple[Node, dict[str, int]], ...]
    columns: dict[str, int]

    @property
    def edges(self) -> list[set[int]]:
        """The column numbers of each part."""
        return [set(columns.values()) for _, columns in self.parts]


def join_circle(node: Node, readers: Callable[[Node], int]) -> Node | None:
    """Return what replaces this node; None if the rule does not apply. `readers` counts a node's readers."""
    if not isinstance(node, Join) or node.free or not node.on or node.null_safe:
        return None
    tree = _joined(node, readers, 0)
    circle = without_ears(tree.edges)
    if len(tree.parts) > _PARTS_MAX or not circle:
        return None
    if len(circle) < len(tree.parts) and any(isinstance(_moved(child), JoinAll) for child in node.children):
        return None  # the circle is one join already, and the part joined to it is an ear
    around = [
        collection_of(part)[0].digest
        for (part, _), edge in zip(tree.parts, tree.edges, strict=True)
        if edge in circle
    ]
    if len(set(around)) == len(around):
        return None  # all parts are different collections
    return _at_once(tree, node)


def without_ears(edges: Sequence[Collection[int]]) -> list[set[int]]:
    """Return what is left of these sets when ears are taken off until there are none."""
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
    """Return the joins from `node` downwards, numbered from `first` on, whoever else reads `node` itself."""
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
        old, new = (
            _representative(same, right.columns[of_right]),
            _representative(same, left.columns[of_left]),
        )
        if old != new:
            same[old] = new
    _, right_keys = node.keys
    others = {name: number for name, number in right.columns.items() if name not in right_keys}
    columns = {**left.columns, **others}
    return _JoinTree(
        tuple(
            (part, {name: _representative(same, number) for name, number in numbers.items()})
            for part, numbers in (*left.parts, *right.parts)
        ),
        {name: _representative(same, columns[name]) for name in node.schema.names},
    )


def _part(node: Node, readers: Callable[[Node], int], first: int) -> _JoinTree:
    if _is_passed(node) and readers(node) == 1:
        return _joined(node, readers, first)
    numbers = {name: first + n for n, name in enumerate(node.schema.names)}
    return _JoinTree(((node, numbers),), numbers)


def _is_passed(node: Node) -> bool:
    """Return True for a join that the user has not asked to store, and for a node that moves its columns."""
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


def _representative(same: dict[int, int], number: int) -> int:
    while number in same:
        number = same[number]
    return number


def _at_once(tree: _JoinTree, node: Join) -> Node | None:
    """Return the join of all parts, with the column names of `node`."""
    counts = Counter(number for edge in tree.edges for number in edge)
    types: dict[int, object] = {}
    for part, numbers in tree.parts:
        if is_arranged(part) or len(set(numbers.values())) < len(numbers):
            return None  # the user asked to store it; or two of its columns must be equal
        for name, number in numbers.items():
            if types.setdefault(number, part.schema[name].type) != part.schema[name].type:
                return None  # nullable in one of them only
    parts = tuple(
        Select(part, tuple((f"c{number}", ColumnRef(name)) for name, number in numbers.items()))
        for part, numbers in tree.parts
    )
    shared = tuple(f"c{number}" for number in sorted(counts) if counts[number] > 1)
    select = Select(
        JoinAll(parts, shared, fewest=True),
        tuple((name, ColumnRef(f"c{tree.columns[name]}")) for name in node.schema.names),
    )
    return select if select.schema == node.schema else None
