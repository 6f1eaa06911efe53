"""Which expressions have no value for some rows, as a division by zero has none?

The answer is known before anything runs, from the operators and the types alone. It may be yes for an
expression that never fails; it is never no for one that may.
"""

from __future__ import annotations

from typing import Final

from differential.columns.column_types import DECIMAL_DIGITS_MAX
from differential.columns.schema import Schema
from differential.expressions.expression import ColumnRef, Expr, LiteralValue, Operation
from differential.expressions.functions.casts import never_fails
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.types import type_of

__all__ = ["can_raise"]

_NEVER: Final = frozenset(
    (
        *("==", "!=", "<", "<=", ">", ">=", "&", "|", "~", "is_null", "is_in", "try_cast"),
        *("fill_null", "min_of", "max_of", "least", "greatest", "when"),
    )
)
_SIGNS: Final = frozenset(("negative", "abs"))
_DIVISIONS: Final = frozenset(("/", "//", "%"))
_ARITHMETIC: Final = frozenset(("+", "-", "*")) | _SIGNS | _DIVISIONS


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
        return True
    if expr.op in _ARITHMETIC:
        type_ = type_of(expr, schema)
        if type_.kind == "decimal" and expr.op not in _DIVISIONS:
            # A sum or product has the digits that it may need, unless these are all that there are.
            return expr.op not in _SIGNS and type_.precision == DECIMAL_DIGITS_MAX
        return type_.kind != "float"
    if expr.op == "cast":
        assert expr.to is not None
        before = type_of(expr.operands[0], schema)
        return before.not_null() != expr.to.not_null() and not never_fails(before, expr.to)
    return True
