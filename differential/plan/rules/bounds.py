"""Keep the many rows of a join without keys in the order of what the few rows are compared with.

    filter(x > limit)(join(many, few))     bounded(many, few: x > limit)     if nobody reads `limit` behind it

All comparisons of the filter compare one expression over the many rows with expressions over the few. A pair
then says no more than that the row lies between bounds, so a change of the few changes only rows between the
old bounds and the new ones. As a filter of pairs, it would change every row.

The rule needs to know which columns are read, so it is applied last. It leaves a join alone that has other
readers, which need its pairs; that is in a loop; or whose condition can raise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import reduce
from itertools import count
from typing import NamedTuple, cast

from ...expressions.expression import ColumnRef, Expr, Operation
from ...linear.failures.raising import can_raise
from ..facts import small_side
from ..nodes import BOUND_OPS, Bounded, BoundOp, Filter, Join, Node, NotNull, Select
from .filters import conjuncts

__all__ = ["between_bounds"]

_TURNED: Mapping[str, BoundOp] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
"""What a comparison is with its sides exchanged."""


class _Test(NamedTuple):
    """A comparison of an expression over the many rows with one over the few."""

    many: Expr
    op: BoundOp
    few: Expr


def between_bounds(node: Node, needed: frozenset[str], readers: Callable[[Node], int]) -> Node | None:
    """Return what replaces this node, with at least the columns `needed`; None if the rule does not apply.
    `readers` counts a node's readers.
    """
    parts: list[Expr] = []
    below = node
    while isinstance(below, Filter):
        parts += conjuncts(below.condition)
        below = below.source
        if readers(below) > 1:
            return None
    if not parts or not isinstance(below, Join) or any(can_raise(part, below.schema) for part in parts):
        return None
    small = small_side(below)
    if small is None:
        return None
    many, few = below.children[1 - small], below.children[small]
    on_many = frozenset(many.schema.names)
    staying = [part for part in parts if part.columns() <= on_many]
    tests = [_test_of(part, many, few) for part in parts if not part.columns() <= on_many]
    if not tests or None in tests or not needed <= on_many:
        return None
    first, *others = cast("list[_Test]", tests)
    if not all(other.many.equals(first.many) for other in others):
        return None
    bounded = _bounded(many, few, [first, *others])
    if bounded is None:
        return None
    return Filter(bounded, reduce(lambda one, other: one & other, staying)) if staying else bounded


def _test_of(part: Expr, many: Node, few: Node) -> _Test | None:
    """Return the comparison that a condition is; None if it is another condition."""
    if not isinstance(part, Operation) or part.op not in BOUND_OPS:
        return None
    op = part.op
    one, other = part.operands
    names = frozenset(many.schema.names), frozenset(few.schema.names)
    if one.columns() <= names[0] and other.columns() <= names[1] and one.columns() and other.columns():
        return _Test(one, op, other)
    if one.columns() <= names[1] and other.columns() <= names[0] and one.columns() and other.columns():
        return _Test(other, _TURNED[op], one)
    return None


def _bounded(many: Node, few: Node, tests: list[_Test]) -> Node | None:
    """Return the rows between bounds, with the columns of `many`; None if the words of what is compared have
    no order in common.
    """
    of, bounds = tests[0].many, [test.few for test in tests]
    type_, types = (
        of.type_in(many.schema).not_null(),
        [bound.type_in(few.schema).not_null() for bound in bounds],
    )
    if any(each != type_ for each in types):
        # A comparison with a float is one of floats, whatever the other side is.
        is_float = type_.kind == "float" or all(each.kind == "float" for each in types)
        if not is_float or not all(each.is_number for each in (type_, *types)):
            return None
        of, *bounds = [
            expr if each.kind == "float" else expr.cast("float")
            for expr, each in zip((of, *bounds), (type_, *types), strict=True)
        ]
    elif not type_.is_ordered or type_.words > 1:
        return None
    whole = tuple((name, cast("Expr", ColumnRef(name))) for name in many.schema.names)
    source, name = many, of.name if isinstance(of, ColumnRef) else ""
    if not name or many.schema[name].type.nullable:
        name = _unused("(compared)", many)
        source = _not_null(Select(many, ((name, of), *whole)), [name])
    named: dict[str, Expr] = {}
    for test, bound in zip(tests, bounds, strict=True):
        named[_name_of(test.few, named)] = bound
    few = _not_null(Select(few, tuple(named.items())), list(named))
    compared = tuple((test.op, name) for test, name in zip(tests, named, strict=True))
    bounded: Node = Bounded(source, few, name, compared)
    return bounded if source is many else Select(bounded, whole)


def _not_null(node: Node, names: list[str]) -> Node:
    """Return the rows in which none of these columns is null, and say that they never are."""
    nullable = [name for name in names if node.schema[name].type.nullable]
    if not nullable:
        return node
    condition = reduce(lambda one, other: one & other, (ColumnRef(name).is_not_null() for name in nullable))
    return NotNull(Filter(node, condition), tuple(nullable))


def _name_of(bound: Expr, others: Collection[str]) -> str:
    """Return the name of a column of bounds; numbers keep those of several tests apart."""
    name = bound.name if isinstance(bound, ColumnRef) else "bound"
    numbered = (f"{name} ({number})" if number else name for number in count(len(others)))
    return next(each for each in numbered if each not in others)


def _unused(name: str, node: Node) -> str:
    while name in node.schema:
        name += "_"
    return name
