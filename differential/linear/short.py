"""A chain of linear operators in a few integers, for kernels that take rows one by one.

    words    int64[2, words]: for each word of the result its source and a number. Source ≥ 0: that word as
             it was, and number 0; CONSTANT_WORD: the number itself; SUM_WORD - w: word w plus the number
    tests    int64[tests, 4]: comparison, word, other word or -1, number to compare with; all must hold
    sign     factor of the differences, 1 or -1

A chain has such a form if it moves words, compares whole numbers, dates or times (or, by == and !=, texts),
and adds constants to columns. Other chains are functions on whole columns, and so are those that use a
nullable column in a condition or a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from differential.columns.column_types import ColumnType
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.expressions.evaluation import Compiler
from differential.expressions.expression import ColumnRef, Expr, LiteralValue, Operation
from differential.expressions.literals import constant_word
from differential.expressions.projection import CONSTANT
from differential.expressions.types import type_of
from differential.kernels.compiled_loops.edges import AT_LEAST, AT_MOST, EQUAL, GREATER, LESS, NOT_EQUAL
from differential.kernels.compiled_loops.layout import CONSTANT_WORD, SUM_WORD
from differential.kernels.overflow import INT64_MIN
from differential.linear.passes import FilterPass, NegatePass, NotNullPass, SelectPass, Step, schema_of
from progress.compiled.arrays import Int64s

__all__ = ["Short", "short_of"]

_KINDS: Final = {"==": EQUAL, "!=": NOT_EQUAL, "<": LESS, "<=": AT_MOST, ">": GREATER, ">=": AT_LEAST}
_TURNED: Final = {
    EQUAL: EQUAL,
    NOT_EQUAL: NOT_EQUAL,
    LESS: GREATER,
    AT_MOST: AT_LEAST,
    GREATER: LESS,
    AT_LEAST: AT_MOST,
}
_IN_ORDER: Final = frozenset(("int", "date", "timestamp"))

_Word = tuple[int, int]
"""Source and number of a word, as above."""


class Short(NamedTuple):
    """The short form of a chain; its fields are described at the top of this module."""

    words: Int64s
    tests: Int64s
    sign: int


def short_of(steps: Sequence[Step], schema: Schema, symbols: SymbolTable) -> Short | None:
    """Return the short form of steps over rows of `schema`; None if they have none."""
    words: list[_Word] = [(word, 0) for word in range(schema.width)]
    tests: list[tuple[int, int, int, int]] = []
    sign = 1
    for step in steps:
        if isinstance(step, NegatePass):
            sign = -sign
        elif isinstance(step, NotNullPass):
            words = [words[source] for source in step.projection().sources]
            schema = step.schema_out
        elif isinstance(step, SelectPass):
            selected = _selected(step, schema, words, symbols)
            if selected is None:
                return None
            words, schema = selected, schema_of(step, schema)
        elif isinstance(step, FilterPass):
            # A sum that leaves 64 bits must do so whatever a condition behind it says.
            is_plain = all(source >= CONSTANT_WORD for source, _ in words)
            more = _tests(step.condition, schema, words, symbols) if is_plain else None
            if more is None:
                return None
            tests += more
        else:
            return None
    return Short(
        np.array(words, np.int64).reshape(-1, 2).T.copy(), np.array(tests, np.int64).reshape(-1, 4), sign
    )


def _selected(
    step: SelectPass, schema: Schema, words: list[_Word], symbols: SymbolTable
) -> list[_Word] | None:
    compiler = Compiler(schema, None, symbols)
    selected: list[_Word] = []
    for _, expr in step.columns:
        moved = compiler.projected(expr)
        if moved is not None:
            selected += [
                (CONSTANT_WORD, constant) if source == CONSTANT else words[source]
                for source, constant in moved
            ]
            continue
        added = _sum(expr, schema, words)
        if added is None:
            return None
        selected.append(added)
    return selected


def _sum(expr: Expr, schema: Schema, words: list[_Word]) -> _Word | None:
    """Return a column of whole numbers plus or minus a constant; None for other expressions."""
    if not isinstance(expr, Operation) or expr.op not in ("+", "-") or expr.to is not None:
        return None
    left, right = expr.operands
    if isinstance(left, LiteralValue) and expr.op == "+":
        left, right = right, left
    if not isinstance(left, ColumnRef) or not isinstance(right, LiteralValue):
        return None
    whole = ColumnType("int")
    if any(type_of(each, schema) != whole for each in (expr, left, right)):
        return None
    number = right.value
    source, before = words[schema.words_of(left.name)[0]]
    if type(number) is not int or source < 0 or before != 0 or not INT64_MIN < number <= -INT64_MIN - 1:
        return None
    return SUM_WORD - source, number if expr.op == "+" else -number


def _tests(
    condition: Expr, schema: Schema, words: list[_Word], symbols: SymbolTable
) -> list[tuple[int, int, int, int]] | None:
    """Return comparisons of columns with columns or constants, joined by `&`; None for other conditions."""
    if not isinstance(condition, Operation):
        return None
    if condition.op == "&":
        tests: list[tuple[int, int, int, int]] = []
        for operand in condition.operands:
            assert isinstance(operand, Expr)
            more = _tests(operand, schema, words, symbols)
            if more is None:
                return None
            tests += more
        return tests
    kind = _KINDS.get(condition.op)
    types = [type_of(operand, schema) for operand in condition.operands] if kind is not None else []
    if kind is None or types[0] != types[1] or types[0].nullable:
        return None
    if types[0].kind not in _IN_ORDER and not (types[0].is_symbol and condition.op in ("==", "!=")):
        return None
    first, second = (_side(operand, types[0], schema, words, symbols) for operand in condition.operands)
    if first is None or second is None:
        return None
    (left, left_number), (right, right_number) = first, second
    if left == CONSTANT_WORD:
        kind, left, right, right_number = _TURNED[kind], right, left, left_number
    if left == CONSTANT_WORD:
        return None
    return [(kind, left, -1 if right == CONSTANT_WORD else right, right_number)]


def _side(
    expr: object, type_: ColumnType, schema: Schema, words: list[_Word], symbols: SymbolTable
) -> _Word | None:
    if isinstance(expr, ColumnRef):
        return words[schema.words_of(expr.name)[0]]
    if isinstance(expr, LiteralValue) and expr.value is not None:
        return CONSTANT_WORD, constant_word(expr.value, type_, symbols)
    return None
