"""Columns that nobody reads are dropped before an operator with state keeps them.

First it is worked out, from the roots down, which columns of each node its readers need, all readers
together; then every join, arrangement and consolidation is given no others. Selecting costs no stage.

All columns are needed: of what is put out or looked at; by functions of the user, who see whole rows; below
distinct, where rows that differ in one column only are two; where rows are placed by all that they are; of
variables of loops, whose columns are those of what goes round. What a reduce reads decides which rows count
as one, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...expressions.expression import ColumnRef
from ..nodes import (
    Accumulate,
    Arrange,
    Concat,
    Consolidate,
    Filter,
    JoinAll,
    Keys,
    Negate,
    Node,
    NotNull,
    Pairs,
    Reduce,
    Select,
    Weigh,
)
from ..rewriting import beneath

__all__ = ["needed_columns", "with_needed_only"]

_Needs = dict[bytes, frozenset[str]]
"""By digest: the columns of a node that its readers need."""


def needed_columns(roots: Sequence[Node]) -> _Needs:
    """What is read of each node beneath `roots`."""
    needs: _Needs = {root.digest: frozenset(root.schema.names) for root in roots}
    for node in reversed(list(beneath(roots))):
        needed = needs.setdefault(node.digest, frozenset())
        for child, columns in zip(node.children, _of_children(node, needed), strict=True):
            needs[child.digest] = needs.get(child.digest, frozenset()) | columns
    return needs


def with_needed_only(node: Node, children: tuple[Node, ...], needs: _Needs) -> Node:
    """`node` over children of which some columns may be gone by now, keeping no more than is needed of it."""
    needed = needs[node.digest]
    if isinstance(node, Select):
        columns = tuple((name, expr) for name, expr in node.columns if name in needed)
        return Select(children[0], columns or node.columns[:1])
    if isinstance(node, Concat):
        first = [name for name in node.schema.names if name in needed] or list(node.schema.names[:1])
        return Concat(tuple(_only(child, first) for child in children))
    if isinstance(node, NotNull):
        left = tuple(name for name in node.names if name in needed)
        return NotNull(children[0], left) if left else children[0]
    if isinstance(node, Pairs):
        sides = zip(children, _of_children(node, needed), strict=True)
        return node.with_children(tuple(_only(child, _columns_left(child, kept)) for child, kept in sides))
    if isinstance(node, JoinAll):
        parts = zip(children, _of_children(node, needed), strict=True)
        return node.with_children(tuple(_only(child, _columns_left(child, kept)) for child, kept in parts))
    if isinstance(node, Consolidate | Arrange):
        (kept,) = _of_children(node, needed)
        return node.with_children((_only(children[0], _columns_left(children[0], kept)),))
    if isinstance(node, Filter | Negate | Accumulate | Reduce | Keys | Weigh):
        return node.with_children(children)
    # Whoever needs all columns has them, in the order in which they were: nothing was dropped beneath it.
    return node.with_children(children)


def _of_children(node: Node, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
    """Which columns of each child `node` reads, if `needed` is needed of it."""
    if isinstance(node, Select):
        kept = [expr for name, expr in node.columns if name in needed] or [node.columns[0][1]]
        return (frozenset[str]().union(*(expr.columns() for expr in kept)),)
    if isinstance(node, Filter):
        return (needed | node.condition.columns(),)
    if isinstance(node, Negate | NotNull | Consolidate):
        return (needed or frozenset(node.source.schema.names[:1]),)
    if isinstance(node, Arrange):
        return (needed | frozenset(node.keys),)
    if isinstance(node, Concat):
        return tuple(needed or frozenset(node.schema.names[:1]) for _ in node.sources)
    if isinstance(node, Reduce):
        return (frozenset(node.columns_read),)
    if isinstance(node, Keys):
        return (frozenset(node.keys),)
    if isinstance(node, Weigh):
        # One column at least, so that there is a row whose multiplicity it is.
        return ((needed or frozenset(node.schema.names[:1])) | {node.by},)
    if isinstance(node, Accumulate):
        # Of rows alone nothing is read; a collection has some column nevertheless.
        read = (
            node.columns_read(index) or source.schema.names[:1] for index, source in enumerate(node.sources)
        )
        return tuple(frozenset(names) for names in read)
    if isinstance(node, Pairs):
        left_keys, right_keys = node.keys
        left = (needed & frozenset(node.left.schema.names)) | frozenset(left_keys)
        right = (needed & frozenset(node.right.schema.names) - frozenset(left_keys)) | frozenset(right_keys)
        return (left, right)
    if isinstance(node, JoinAll):
        wanted = needed | frozenset(node.shared)
        return tuple(wanted & frozenset(part.schema.names) for part in node.parts)
    return tuple(frozenset(child.schema.names) for child in node.children)


def _columns_left(child: Node, kept: frozenset[str]) -> list[str]:
    """Return the columns `kept` in the order in which `child` has them.

    If a reader needs no column, as a cross join may, it takes the first one that `child` has left. Which one
    that is, the other readers of the child decide.
    """
    return [name for name in child.schema.names if name in kept] or list(child.schema.names[:1])


def _only(node: Node, names: Sequence[str]) -> Node:
    if list(node.schema.names) == list(names):
        return node
    return Select(node, tuple((name, ColumnRef(name)) for name in names))
