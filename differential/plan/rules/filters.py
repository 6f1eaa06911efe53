"""Move filters towards the inputs, so that rows that they drop are neither stored nor matched.

    filter(c)(select(x))      select(filter(c with its columns written out)(x))
    filter(c)(concat(x, y))   concat(filter(c)(x), filter(c)(y)); so past negate, distinct, consolidate, place
    filter(c)(join(x, y))     each part of c that reads one side only, to that side; of keys only, to both
    filter(c)(reduce(x))      parts that read keys only; so past the first rows of groups, and windows
    filter(c)(not null(x))    not null(filter(c)(x))   which stays above the filter that it was written behind

Half joins are treated as joins. The rule moves no part of a condition that can raise: further down it would
see rows that are dropped now, or that cancel where fewer columns tell them apart. It moves nothing past a
function of the user, an observed collection, a loop, or computed columns, which would then be computed twice.
It moves nothing past an operator with state that has other readers too: the operator would be made for each
of them. It moves nothing to a side of a join that the user has arranged: the filtered rows are another
collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Final

from ...expressions.expression import ColumnRef, Expr, LiteralValue, Operation, When
from ...linear.failures.raising import can_raise
from ...linear.placing import UNIT
from ..facts import is_arranged
from ..nodes import (
    Accumulate,
    Concat,
    Consolidate,
    Distinct,
    Filter,
    GroupValues,
    Negate,
    Node,
    NotNull,
    OverWindow,
    Pairs,
    PlaceOnUnits,
    Reduce,
    Select,
    TopK,
)

__all__ = ["conjuncts", "push_filter"]

_PARTS_MAX: Final = 50
"""Limit of conditions in one filter that this rule makes; each nests it deeper (`DEPTH_MAX`)."""


def push_filter(node: Node, readers: Callable[[Node], int]) -> Node | None:
    """Return what replaces this node; None if the rule does not apply. `readers` counts a node's readers."""
    if not isinstance(node, Filter):
        return None
    below = node.source
    if not below.is_linear and readers(below) > 1:
        return None
    if isinstance(below, Select):
        return _past_select(node, below)
    if isinstance(below, NotNull):  # the rows stay the same, so the same columns are never null
        return below.with_children((Filter(below.source, node.condition),))
    if isinstance(below, Pairs):
        return _past_join(node, below)
    parts = list(conjuncts(node.condition))
    if isinstance(below, Accumulate | Reduce | GroupValues | TopK | OverWindow):
        moving = [part for part in parts if part.columns() <= set(below.keys)]
    elif isinstance(below, Concat | Negate | Distinct | Consolidate):
        moving = parts
    elif isinstance(below, PlaceOnUnits):
        moving = [part for part in parts if UNIT not in part.columns()]
    else:
        return None
    moving = [part for part in moving if not can_raise(part)]
    if not moving:
        return None
    staying = [part for part in parts if part not in _Same(moving)]
    sources = tuple(_filtered(source, moving) for source in below.children)
    return _filtered(below.with_children(sources), staying)


def _past_select(node: Filter, select: Select) -> Node | None:
    moving: list[Expr] = []
    staying: list[Expr] = []
    columns = dict(select.columns)
    for part in conjuncts(node.condition):
        over = [columns[name] for name in sorted(part.columns())]
        if can_raise(part) or not all(isinstance(expr, ColumnRef | LiteralValue) for expr in over):
            staying.append(part)
        else:
            moving.append(_written_out(part, columns))
    if not moving:
        return None
    return _filtered(select.with_children((_filtered(select.source, moving),)), staying)


def _past_join(node: Filter, join: Pairs) -> Node | None:
    left_keys, right_keys = join.keys
    as_right: dict[str, Expr] = {
        left: ColumnRef(right) for left, right in zip(left_keys, right_keys, strict=True)
    }
    as_right.update({name: ColumnRef(name) for name in join.right.schema.names if name not in right_keys})
    on_left, on_right = set(join.left.schema.names), set(as_right)
    left: list[Expr] = []
    right: list[Expr] = []
    staying: list[Expr] = []
    for part in conjuncts(node.condition):
        reads = part.columns()
        to_left = reads <= on_left and not is_arranged(join.left)
        to_right = reads <= on_right and not is_arranged(join.right)
        if can_raise(part) or not (to_left or to_right):
            staying.append(part)
            continue
        if to_left:
            left.append(part)
        if to_right:
            right.append(_written_out(part, as_right))
    if not left and not right:
        return None
    sides = (_filtered(join.left, left), _filtered(join.right, right))
    return _filtered(join.with_children(sides), staying)


def conjuncts(condition: Expr) -> Iterable[Expr]:
    """Yield the conditions that must all be true for `condition` to be true."""
    waiting = [condition]
    while waiting:
        top = waiting.pop()
        if isinstance(top, Operation) and top.op == "&":
            waiting += reversed(top.operands)
        else:
            yield top


def _filtered(node: Node, parts: list[Expr]) -> Node:
    """Return `node` where all of `parts` are true; in several filters if one would be nested too deep."""
    for start in range(0, len(parts), _PARTS_MAX):
        node = Filter(node, reduce(lambda a, b: a & b, parts[start : start + _PARTS_MAX]))
    return node


def _written_out(expr: Expr, columns: Mapping[str, Expr]) -> Expr:
    """Return `expr` with other expressions in place of its columns; its line stays."""
    if isinstance(expr, ColumnRef):
        return columns[expr.name]
    if not isinstance(expr, Operation):
        return expr
    operands = tuple(_written_out(operand, columns) for operand in expr.operands)
    make = When if isinstance(expr, When) else Operation
    rewritten = make(expr.op, operands, expr.to)
    object.__setattr__(rewritten, "site", expr.site)
    return rewritten


class _Same:
    """Membership by identity: `==` between expressions is an expression."""

    def __init__(self, parts: Iterable[Expr]) -> None:
        self._ids = {id(part) for part in parts}

    def __contains__(self, part: object) -> bool:
        return id(part) in self._ids
