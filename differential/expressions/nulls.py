"""Which columns cannot be null in a row for which a condition is true?

A row passes a filter if its condition is true: not false, and not null. What has a null operand is null, but
for a few operators; so whoever asks for `x > 3` has rows in which x is a number. Three sets of columns are
known of each expression, by what its operands say:

    true, false   those that are not null in every row in which it is so
    some          those that are not null in every row in which it is not null: both of the two have these

Nothing is concluded from values: of what is never true, more could be said.
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
"""Null if one operand is. Of `is_in` this holds for the first."""


class _Known(NamedTuple):
    """See above."""

    true: _Columns
    false: _Columns
    some: _Columns


def not_null_where(condition: Tree) -> frozenset[str]:
    """The columns that are not null in every row for which `condition` is true, as far as its form tells."""
    known: dict[int, _Known] = {}  # an expression may be one object in many places
    waiting = [condition]
    while waiting:
        top = waiting[-1]
        operands = top.operands if isinstance(top, OperationTree) else ()
        missing = [operand for operand in operands if id(operand) not in known]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        known[id(top)] = _known(top, [known[id(operand)] for operand in operands])
    return known[id(condition)].true


def _known(expr: Tree, operands: list[_Known]) -> _Known:
    if isinstance(expr, ColumnTree):
        return _alike(frozenset((expr.name,)))
    if not isinstance(expr, OperationTree):
        return _alike(_NONE)
    if expr.op == "~":
        (other,) = operands
        return _Known(other.false, other.true, other.some)
    if expr.op == "is_null":
        return _Known(_NONE, operands[0].some, _NONE)
    if expr.op == "&":  # false & null is false: there may be a null beside what decides
        true, false = _all(each.true for each in operands), _common([each.false for each in operands])
        return _Known(true, false, true & false)
    if expr.op == "|":
        true, false = _common([each.true for each in operands]), _all(each.false for each in operands)
        return _Known(true, false, true & false)
    if expr.op in ("fill_null", "least", "greatest"):
        return _alike(_common([each.some for each in operands]))
    if expr.op == "is_in":
        return _alike(operands[0].some)
    is_strict = expr.op in _STRICT or (expr.op in FUNCTIONS and not FUNCTIONS[expr.op].skips_nulls)
    return _alike(_all(each.some for each in operands) if is_strict else _NONE)


def _alike(columns: _Columns) -> _Known:
    return _Known(columns, columns, columns)


def _all(parts: Iterable[_Columns]) -> _Columns:
    return _NONE.union(*parts)


def _common(parts: list[_Columns]) -> _Columns:
    return parts[0].intersection(*parts[1:])
