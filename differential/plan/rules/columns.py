"""Drop columns that nobody reads before an operator with state stores them, or an input reads them.

First, from the roots down, the rule finds the columns of each node that its readers need, all readers
together. Then every join, arrangement and consolidation gets only those. Selecting costs no stage. An input
takes in only those, and the keys of an upsert input: the texts in other columns do not become symbols.

All columns are needed of outputs and of observed collections; by functions of the user, which see whole rows;
below distinct, where rows that differ in one column only are two; where rows are placed by all their columns;
of variables of loops, which have the columns of what goes round. The columns that a reduce reads decide which
rows count as one, and stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...columns.schema import Schema
from ...expressions.expression import ColumnRef
from ..nodes import (
    Accumulate,
    Arrange,
    Concat,
    Consolidate,
    Filter,
    Input,
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

__all__ = ["carrier_of", "needed_columns", "with_needed_only"]

_Needs = dict[bytes, frozenset[str]]
"""By digest: the columns of a node that its readers need."""


def needed_columns(roots: Sequence[Node]) -> _Needs:
    """Return the columns that are read of each node beneath `roots`."""
    needs: _Needs = {root.digest: frozenset(root.schema.names) for root in roots}
    for node in reversed(list(beneath(roots))):
        needed = needs.setdefault(node.digest, frozenset())
        for child, columns in zip(node.children, _of_children(node, needed), strict=True):
            needs[child.digest] = needs.get(child.digest, frozenset()) | columns
    return needs


def with_needed_only(node: Node, children: tuple[Node, ...], needs: _Needs) -> Node:
    """Return `node` over children that may have lost columns; it stores no more than its readers need."""
    needed = needs[node.digest]
    if isinstance(node, Input):
        return _input(node, needed)
    if isinstance(node, Select):
        columns = tuple((name, expr) for name, expr in node.columns if name in needed)
        return Select(children[0], columns or node.columns[:1])
    if isinstance(node, Concat):
        first = [name for name in node.schema.names if name in needed] or carrier_of(node.schema)
        return Concat(tuple(_only(child, first) for child in children))
    if isinstance(node, NotNull):
        left = tuple(name for name in node.names if name in needed)
        return NotNull(children[0], left) if left else children[0]
    if isinstance(node, Pairs):
        sides = zip(children, _of_children(node, needed), strict=True)
        return node.with_children(tuple(_only(child, _columns_left(child, names)) for child, names in sides))
    if isinstance(node, JoinAll):
        parts = zip(children, _of_children(node, needed), strict=True)
        return node.with_children(tuple(_only(child, _columns_left(child, names)) for child, names in parts))
    if isinstance(node, Consolidate | Arrange):
        (names,) = _of_children(node, needed)
        return node.with_children((_only(children[0], _columns_left(children[0], names)),))
    if isinstance(node, Filter | Negate | Accumulate | Reduce | Keys | Weigh):
        return node.with_children(children)
    # A reader that needs all columns has them, in the original order: nothing was dropped beneath it.
    return node.with_children(children)


def carrier_of(schema: Schema) -> list[str]:
    """Return the one column that stays if nobody reads any: if possible one without symbols."""
    plain = (column.name for column in schema if not column.type.is_symbol)
    return [next(plain, schema.names[0])]


def _input(node: Input, needed: frozenset[str]) -> Input:
    """Return the input with the columns that are needed. A checked one compares whole rows, and needs all."""
    if node.mode == "checked":
        return node
    names = [name for name in node.schema.names if name in needed or name in node.keys]
    return node.only(names or carrier_of(node.schema))


def _of_children(node: Node, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
    """Return which columns of each child `node` reads, if its own readers need `needed`."""
    if isinstance(node, Select):
        exprs = [expr for name, expr in node.columns if name in needed] or [node.columns[0][1]]
        return (frozenset[str]().union(*(expr.columns() for expr in exprs)),)
    if isinstance(node, Filter):
        return (needed | node.condition.columns(),)
    if isinstance(node, Negate | NotNull | Consolidate):
        return (needed or frozenset(carrier_of(node.source.schema)),)
    if isinstance(node, Arrange):
        return (needed | frozenset(node.keys),)
    if isinstance(node, Concat):
        return tuple(needed or frozenset(carrier_of(node.schema)) for _ in node.sources)
    if isinstance(node, Reduce):
        return (frozenset(node.columns_read),)
    if isinstance(node, Keys):
        return (frozenset(node.keys),)
    if isinstance(node, Weigh):
        # At least one column, so that there is a row to carry the multiplicity.
        return ((needed or frozenset(carrier_of(node.schema))) | {node.by},)
    if isinstance(node, Accumulate):
        # A count of rows reads no column; but every collection has one.
        read = (
            node.columns_read(index) or carrier_of(source.schema) for index, source in enumerate(node.sources)
        )
        return tuple(frozenset(names) for names in read)
    if isinstance(node, Pairs):
        left_keys, right_keys = node.keys
        left = (needed & frozenset(node.left.schema.names)) | frozenset(left_keys)
        right = (needed & frozenset(node.right.schema.names) - frozenset(left_keys)) | frozenset(right_keys)
        return (left, right)
    if isinstance(node, JoinAll):
        needed_names = needed | frozenset(node.shared)
        return tuple(needed_names & frozenset(part.schema.names) for part in node.parts)
    return tuple(frozenset(child.schema.names) for child in node.children)


def _columns_left(child: Node, names: frozenset[str]) -> list[str]:
    """Return the columns `names` in the order in which `child` has them.

    If a reader needs no column, as a cross join may, it takes the first one that `child` has left. The other
    readers of the child decide which one that is.
    """
    return [name for name in child.schema.names if name in names] or list(child.schema.names[:1])


def _only(node: Node, names: Sequence[str]) -> Node:
    if list(node.schema.names) == list(names):
        return node
    return Select(node, tuple((name, ColumnRef(name)) for name in names))
