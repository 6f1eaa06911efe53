"""Which columns cannot be null in a row for which a condition is true?

A row passes a filter if its condition is true: not false, and not null. With a few exceptions, an operator's
result is null if an operand is. So rows that pass `x > 3` have a number in x. For each expression three sets
of columns follow from those of its operands:

    true, false   the columns that are not null in every row in which the expression is true, or false
    some          the columns that are not null in every row in which it is not null; each of the other two
                  contains these

Values play no part: of an expression that is never true, more could be concluded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.tree import ColumnTree, OperationTree, Tree

__all__ = ["not_null_where"]

_Columns = frozenset[str]
_NONE: Final[_Columns] = frozenset()

_STRICT: Final = frozenset(("+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=")) | frozenset(
    ("negative", "abs", "cast", "try_cast", "min_of", "max_of")
)
"""Operators that are null if one operand is. For `is_in` this holds of the first operand only."""


class _NotNull(NamedTuple):
    """Columns that are not null where an expression is true, false or not null (see above)."""

    true: _Columns
    false: _Columns
    some: _Columns


def not_null_where(condition: Tree) -> frozenset[str]:
    """Return the columns that are never null where `condition` is true, as far as its form tells."""
    by_id: dict[int, _NotNull] = {}  # an expression may be one object in many places
    waiting = [condition]
    while waiting:
        top = waiting[-1]
        operands = top.operands if isinstance(top, OperationTree) else ()
        missing = [operand for operand in operands if id(operand) not in by_id]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        by_id[id(top)] = _not_null(top, [by_id[id(operand)] for operand in operands])
    return by_id[id(condition)].true


def _not_null(expr: Tree, operands: list[_NotNull]) -> _NotNull:
    if isinstance(expr, ColumnTree):
        return _alike(frozenset((expr.name,)))
    if not isinstance(expr, OperationTree):
        return _alike(_NONE)
    if expr.op == "~":
        (other,) = operands
        return _NotNull(other.false, other.true, other.some)
    if expr.op == "is_null":
        return _NotNull(_NONE, operands[0].some, _NONE)
    if expr.op == "&":  # false & null is false: beside the false operand there may be a null
        true, false = _all(each.true for each in operands), _common([each.false for each in operands])
        return _NotNull(true, false, true & false)
    if expr.op == "|":
        true, false = _common([each.true for each in operands]), _all(each.false for each in operands)
        return _NotNull(true, false, true & false)
    if expr.op in ("fill_null", "least", "greatest"):
        return _alike(_common([each.some for each in operands]))
    if expr.op == "is_in":
        return _alike(operands[0].some)
    is_strict = expr.op in _STRICT or (expr.op in FUNCTIONS and not FUNCTIONS[expr.op].skips_nulls)
    return _alike(_all(each.some for each in operands) if is_strict else _NONE)


def _alike(columns: _Columns) -> _NotNull:
    return _NotNull(columns, columns, columns)


def _all(parts: Iterable[_Columns]) -> _Columns:
    return _NONE.union(*parts)


def _common(parts: list[_Columns]) -> _Columns:
    return parts[0].intersection(*parts[1:])
