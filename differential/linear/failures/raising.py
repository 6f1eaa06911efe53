"""Which expressions have no value for some rows, as a division by zero has none?

The answer is known before anything runs, from the operators and the types alone. It may be yes for an
expression that never fails; it is never no for one that may.
"""

from __future__ import annotations

from typing import Final

from differential.columns.schema import Schema
from differential.expressions.expression import ColumnRef, Expr, LiteralValue, Operation
from differential.expressions.functions.casts import NEVER_FAIL
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.types import type_of

__all__ = ["can_raise"]

_NEVER: Final = frozenset(("==", "!=", "<", "<=", ">", ">=", "&", "|", "~", "is_null", "is_in", "try_cast"))
_SAME_SCALE: Final = frozenset(("fill_null", "min_of", "max_of", "least", "greatest", "when"))
"""Operators that bring decimals to one scale first; a number may have too many digits for that."""
_ARITHMETIC: Final = frozenset(("+", "-", "*", "/", "//", "%", "negative", "abs"))


def can_raise(expr: Expr, schema: Schema | None = None) -> bool:
    """Return True if `expr` may have no value for a row: sums beyond 64 bits, division by zero, casts.

    With the `schema` of the rows, operators that are safe for its types count as safe: floats never fail.
    """
    waiting, seen = [expr], set[int]()
    while waiting:
        top = waiting.pop()
        if id(top) in seen or isinstance(top, ColumnRef | LiteralValue):
            continue
        seen.add(id(top))
        if not isinstance(top, Operation) or _may_fail(top, schema):
            return True
        waiting.extend(top.operands)
    return False


def _may_fail(expr: Operation, schema: Schema | None) -> bool:
    """Return True if one operator may have no value, whatever its operands do."""
    if expr.op in FUNCTIONS:
        return FUNCTIONS[expr.op].can_fail
    if expr.op in _NEVER:
        return False
    if schema is None:
        return expr.op not in _SAME_SCALE
    if expr.op in _SAME_SCALE:
        return any(type_of(operand, schema).kind == "decimal" for operand in expr.operands)
    if expr.op in _ARITHMETIC:
        return type_of(expr, schema).kind != "float"
    if expr.op == "cast":
        assert expr.to is not None
        before = type_of(expr.operands[0], schema)
        return before.not_null() != expr.to.not_null() and (before.kind, expr.to.kind) not in NEVER_FAIL
    return True
