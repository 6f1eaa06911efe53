"""What conditions say: conjuncts, equalities of two sides, and which expressions are null of nulls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from functools import reduce
from typing import Final, NamedTuple

from ...columns.column_types import ColumnType
from ...expressions.expression import ColumnRef, Expr, LiteralValue, Operation

__all__ = [
    "STRONG",
    "Equalities",
    "Equality",
    "all_of_them",
    "conjuncts",
    "equality_between",
    "implied",
    "is_null_with",
    "same_key_type",
    "strength",
]

STRONG: Final = 2
"""The strength of a filter that asks for certain values."""

_STRICT = frozenset(
    (
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "~",
        "negative",
        "abs",
        "cast",
        "try_cast",
    )
)
"""Operators whose result is null if an operand is."""


class Equality(NamedTuple):
    """Two expressions that are equal; of one side, and of the other."""

    left: Expr
    right: Expr
    is_null_safe: bool


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """Return conditions that are all true where `condition` is.

    What all branches of an OR have in common stands in front of it: (a and b) or (a and c) is a and (b or c).
    """
    if not isinstance(condition, Operation):
        yield condition
    elif condition.op == "&":
        for part in condition.operands:
            yield from conjuncts(part)
    elif condition.op == "|":
        branches = [{part.describe(): part for part in conjuncts(each)} for each in _branches(condition)]
        shared = [text for text in branches[0] if all(text in branch for branch in branches)]
        if not shared:
            yield condition
            return
        yield from (branches[0][text] for text in shared)
        rests = [[part for text, part in branch.items() if text not in shared] for branch in branches]
        if all(rests):
            yield reduce(lambda one, other: one | other, [all_of_them(rest) for rest in rests])
    else:
        yield condition


def implied(condition: Expr, names: Set[str]) -> Iterator[Expr]:
    """Return what an OR over several parts says of one part, the columns `names`: if each branch says
    something of it, one of these is true.
    """
    if condition.columns() <= names or not (isinstance(condition, Operation) and condition.op == "|"):
        return
    of_part = [
        [each for each in conjuncts(branch) if each.columns() and each.columns() <= names]
        for branch in _branches(condition)
    ]
    if all(of_part):
        yield reduce(lambda one, other: one | other, [all_of_them(each) for each in of_part])


def strength(names: Set[str], conditions: Iterable[Expr]) -> int:
    """Return how much conditions over the columns `names` alone leave out, for want of statistics: 2 if one
    asks for certain values, 1 if there is any, 0 if none.
    """
    own = [each for each in conditions if each.columns() and each.columns() <= names]
    return STRONG if any(map(_asks_for_values, own)) else int(bool(own))


def _asks_for_values(condition: Expr) -> bool:
    if not isinstance(condition, Operation):
        return False
    if condition.op == "|":
        return all(any(map(_asks_for_values, conjuncts(each))) for each in _branches(condition))
    sides = condition.operands
    return condition.op == "is_in" or (condition.op == "==" and not all(each.columns() for each in sides))


def _branches(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Operation) and condition.op == "|":
        for part in condition.operands:
            yield from _branches(part)
    else:
        yield condition


def all_of_them(conditions: Iterable[Expr]) -> Expr:
    """Return the one condition that all of `conditions` are; there is at least one."""
    return reduce(lambda one, other: one & other, conditions)


def equality_between(condition: Expr, left: Set[str], right: Set[str]) -> Equality | None:
    """Return the equality of an expression over `left` and one over `right` that `condition` is, or None."""
    parts = _equality(condition)
    if parts is None:
        return None
    one, other = parts.left.columns(), parts.right.columns()
    if not one or not other:
        return None
    if one <= left and other <= right:
        return parts
    if other <= left and one <= right:
        return Equality(parts.right, parts.left, parts.is_null_safe)
    return None


class Equalities:
    """The equalities among conditions, by the columns that they name: a query of many tables asks often which
    connect two of them.
    """

    def __init__(self, conditions: Sequence[Expr]) -> None:
        self._conditions = conditions
        self._places: dict[str, list[int]] = {}
        for place, condition in enumerate(conditions):
            if _equality(condition) is not None:
                for name in condition.columns():
                    self._places.setdefault(name, []).append(place)

    def between(self, left: Set[str], right: Collection[str]) -> list[Equality]:
        """Return those of an expression over `left`, and one over `right`, in the order of the conditions."""
        places = {place for name in right for place in self._places.get(name, ())}
        others = frozenset(right)
        pairs = (equality_between(self._conditions[place], left, others) for place in sorted(places))
        return [each for each in pairs if each is not None]


def _equality(condition: Expr) -> Equality | None:
    if not isinstance(condition, Operation):
        return None
    if condition.op == "==":
        one, other = condition.operands
        return Equality(one, other, False)
    if condition.op == "|" and isinstance(filled := condition.operands[0], Operation):
        if filled.op == "fill_null" and isinstance(equal := filled.operands[0], Operation):
            if equal.op == "==":
                one, other = equal.operands
                if condition.equals(one.eq_null_safe(other)):
                    return Equality(one, other, True)
    return None


def same_key_type(left: ColumnType, right: ColumnType) -> bool:
    """Return True if columns of these types can be keys of a join."""
    return left.kind == right.kind and left.scale == right.scale


def is_null_with(expr: Expr, columns: Set[str]) -> bool:
    """Return True if `expr` is surely null in a row where all of `columns` are."""
    if isinstance(expr, ColumnRef):
        return expr.name in columns
    if isinstance(expr, LiteralValue):
        return expr.value is None
    if isinstance(expr, Operation) and expr.op in _STRICT:
        return any(is_null_with(part, columns) for part in expr.operands)
    return False
