"""How is an expression evaluated on whole columns of words?

An expression is compiled once, for given columns, to a tree of closures with one numpy call per operator
(`compiled.py`, `operators.py`), and then called with many batches. Columns and constants cost next to
nothing. A column is a row of the words, read where a `Projection` says it is: a filter after a renaming reads
the words from before the renaming.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from differential.columns.column_types import Bools, ColumnType, Int64s
from differential.columns.rows import decode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.columns.wide.wide_words import split_value
from differential.errors import FailingRows, RowError, UnknownSymbolError
from differential.expressions.arithmetic.decimals import (
    arithmetic,
    comparison,
    in_type,
    membership,
    of_sign,
    scaled_to,
)
from differential.expressions.arithmetic.whole_numbers import beyond, combined
from differential.expressions.compiled import (
    CompiledExpression,
    Evaluate,
    Pair,
    as_float,
    both,
    column_at,
    constant,
    in_common_words,
    wide_column_at,
    word_constant,
)
from differential.expressions.expression import ColumnRef, Expr, LiteralValue, Operation
from differential.expressions.functions.casts import has_room, never_fails
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.function import Function
from differential.expressions.functions.running import Refuse, cast_run, function_run, ranks
from differential.expressions.literals import constant_word
from differential.expressions.operators import (
    ARITHMETIC,
    COMPARISONS,
    choice,
    extreme,
    lifted,
    logical,
    ranked,
    unary,
    when_run,
)
from differential.expressions.projection import CONSTANT, Projection
from differential.expressions.types import constants_of, type_of
from differential.kernels.overflow import INT64_MIN

__all__ = ["OTHERS_LENGTH_MAX", "Compiler"]

OTHERS_LENGTH_MAX: Final = 300
"""Most characters shown of each failing row's columns that the expression does not read."""

_OF_ONE_TYPE: Final = frozenset(("fill_null", "min_of", "max_of", "least", "greatest"))
"""Operators whose result has the type of their operands."""

_ORDERS: Final = frozenset(("<", "<=", ">", ">="))
_SAME_WORDS: Final = frozenset((("int", "timestamp"), ("timestamp", "int"), ("date", "int")))


class Compiler:
    """Compiles expressions over the columns of `schema`, whose words are where `projection` says.

    With a symbol table, string constants are entered into it, so that they can be output.
    """

    def __init__(
        self, schema: Schema, projection: Projection | None = None, symbols: SymbolTable | None = None
    ) -> None:
        self.schema = schema
        self.projection = projection if projection is not None else Projection.identity(schema.width)
        self.symbols = symbols
        assert self.projection.width == schema.width

    def compile(self, expr: Expr) -> CompiledExpression:
        """Return the compiled form of `expr`; raises ExpressionError if it does not fit the columns."""
        type_ = type_of(expr, self.schema)
        if isinstance(expr, ColumnRef):
            return self._column(expr.name, type_)
        if isinstance(expr, LiteralValue):
            word = constant_word(expr.value, type_, self.symbols)
            return word_constant(type_, word, int(expr.value is not None))
        assert isinstance(expr, Operation)
        if expr.op in FUNCTIONS:
            return self._function(expr, type_, FUNCTIONS[expr.op])
        parts = [self.compile(operand) for operand in expr.operands]
        compiled = self._of_decimals(expr, type_, parts) or self._operation(expr, type_, parts)
        if any(part.can_overflow for part in parts):
            compiled = replace(compiled, can_overflow=True)
        return self._folded(compiled) if all(part.constant is not None for part in parts) else compiled

    def projected(self, expr: Expr) -> list[tuple[int, int]] | None:
        """Return (source, constant) for each word of `expr`, as in `Projection`.

        Returns None if the expression does more than move words.
        """
        if isinstance(expr, ColumnRef):
            type_of(expr, self.schema)
            where = self.schema.words_of(expr.name)
            return [(self.projection.sources[word], self.projection.constants[word]) for word in where]
        if isinstance(expr, LiteralValue):
            word = constant_word(expr.value, expr.type, self.symbols)
            flag = [(CONSTANT, int(expr.value is not None))] if expr.type.nullable else []
            words = split_value(word) if expr.type.is_wide else (word,)
            return [*flag, *((CONSTANT, each) for each in words)]
        if isinstance(expr, Operation) and expr.op == "cast":
            return self._widened(expr)
        return None

    def _widened(self, expr: Operation) -> list[tuple[int, int]] | None:
        """Return the same for a cast; one that only allows nulls, or more digits before the point, moves
        words: its flag is constant, and so is the high word of what had one word.
        """
        (operand,) = expr.operands
        before, after = type_of(operand, self.schema), type_of(expr, self.schema)
        has_the_words = before.not_null() == after.not_null() or has_room(before, after)
        moved = self.projected(operand) if has_the_words else None
        if moved is None:
            return None
        flag = moved[:1] if before.nullable else [(CONSTANT, 1)]
        values = moved[-before.value_words :]
        high = [(CONSTANT, 0)] * (after.value_words - before.value_words)
        return [*(flag if after.nullable else []), *high, *values]

    def _column(self, name: str, type_: ColumnType) -> CompiledExpression:
        """Return a column: a row of the words, or a constant."""
        where = self.schema.words_of(name)
        sources, constants = self.projection.sources, self.projection.constants
        if type_.is_wide:
            return self._wide_column(type_, where)
        if sources[where[-1]] == CONSTANT:
            return word_constant(type_, constants[where[-1]], constants[where[0]] if type_.nullable else 1)
        if type_.nullable and sources[where[0]] == CONSTANT:  # a column that is never null, cast
            values = column_at(type_.not_null(), sources[where[-1]], sources[where[-1]])
            return replace(values, type=type_)
        return column_at(type_, sources[where[-1]], sources[where[0]])

    def _wide_column(self, type_: ColumnType, where: range) -> CompiledExpression:
        """Return a column of two words; of a decimal that was widened the high word alone is constant."""
        sources, constants = self.projection.sources, self.projection.constants
        high, low = where[-2:]
        if sources[low] == CONSTANT:
            value = (constants[high] << 64) + constants[low]
            return word_constant(type_, value, constants[where[0]] if type_.nullable else 1)
        assert sources[high] != CONSTANT or not constants[high]
        flag = sources[where[0]] if type_.nullable and sources[where[0]] != CONSTANT else None
        return wide_column_at(type_, None if sources[high] == CONSTANT else sources[high], sources[low], flag)

    def _of_decimals(
        self, expr: Operation, type_: ColumnType, parts: list[CompiledExpression]
    ) -> CompiledExpression | None:
        """Return an operator that computes with the digits of decimals, and whole numbers among them; None if
        it is another, or its operands are brought to one type here.
        """
        op, kinds = expr.op, {part.type.kind for part in parts}
        if "decimal" not in kinds or type_.kind == "float":
            return None
        can_fail, can_overflow = (
            any(part.can_fail for part in parts),
            any(part.can_overflow for part in parts),
        )
        is_wide = any(part.type.is_wide for part in parts)
        if op in ARITHMETIC:
            run = arithmetic(op, parts, type_, self._refuser(expr))
            divides = op in ("/", "//", "%")
            return CompiledExpression(type_, run, can_fail=can_fail or divides, can_overflow=True)
        if op in COMPARISONS:
            if is_wide:
                return CompiledExpression(type_, comparison(op, parts), can_fail=can_fail)
            scale = max(part.type.scale for part in parts)
            parts[:] = [scaled_to(part, scale) for part in parts]
        elif op == "is_in":
            run = membership(parts)
            return CompiledExpression(type_, run, can_fail=can_fail, can_overflow=can_overflow)
        elif op in ("negative", "abs") and is_wide:
            return CompiledExpression(type_, of_sign(op, parts[0]), can_fail=can_fail)
        elif op == "when":
            last = len(parts) - 1
            parts[:] = [
                in_type(part, type_) if at % 2 or (at == last and not last % 2) else part
                for at, part in enumerate(parts)
            ]
        elif op in _OF_ONE_TYPE:
            parts[:] = [in_type(part, type_) for part in parts]
        return None

    def _operation(
        self, expr: Operation, type_: ColumnType, parts: Sequence[CompiledExpression]
    ) -> CompiledExpression:
        op = expr.op
        can_fail = any(part.can_fail for part in parts)
        if op in _ORDERS and parts[0].type.is_symbol:
            return CompiledExpression(type_, ranked(op, parts, self._rank), can_fail=can_fail)
        if op in COMPARISONS:
            sides = in_common_words(parts)
            return CompiledExpression(type_, lifted(COMPARISONS[op], sides), can_fail=can_fail)
        if op in ARITHMETIC:
            if type_.kind == "float":
                parts = [as_float(part) for part in parts]
            elif op in ("//", "%"):
                return CompiledExpression(type_, self._division(expr, parts), can_fail=True)
            else:
                return CompiledExpression(
                    type_, self._checked(expr, op, parts), can_fail=can_fail, can_overflow=True
                )
            return CompiledExpression(type_, lifted(ARITHMETIC[op], parts), can_fail=can_fail)
        if op in ("least", "greatest") or (op in ("min_of", "max_of") and (type_.is_symbol or type_.is_wide)):
            rank = self._rank if type_.is_symbol else None
            return CompiledExpression(type_, choice(op, in_common_words(parts), rank), can_fail=can_fail)
        if op in ("min_of", "max_of"):
            return CompiledExpression(
                type_, extreme(op == "min_of", in_common_words(parts)), can_fail=can_fail
            )
        if op in ("&", "|"):
            return CompiledExpression(type_, logical(op == "&", parts), can_fail=can_fail)
        if op == "when":
            return CompiledExpression(type_, when_run(parts, type_), can_fail=can_fail)
        if op in ("cast", "try_cast"):
            return self._cast(expr, type_, parts[0])
        if op in ("negative", "abs") and type_.kind != "float":
            run = self._negative(expr, parts[0]) if op == "negative" else self._absolute(expr, parts[0])
            return CompiledExpression(type_, run, can_fail=can_fail, can_overflow=True)
        return CompiledExpression(type_, unary(expr, parts), can_fail=can_fail)

    def _checked(self, expr: Operation, op: str, parts: Sequence[CompiledExpression]) -> Evaluate:
        """Return the run of `+`, `-` or `*` of integers; it raises RowError where a result leaves 64 bits."""
        left, right = parts[0].run, parts[1].run

        def run(words: Int64s) -> Pair:
            left_values, left_valid = left(words)
            right_values, right_valid = right(words)
            valid = both(left_valid, right_valid)
            values, fits = combined(op, left_values, right_values)
            if not fits:
                self._refuse(expr, words, beyond(op, left_values, right_values), valid)
            return values, valid

        return run

    def _negative(self, expr: Operation, part: CompiledExpression) -> Evaluate:
        return self._checked(expr, "-", (constant(part.type, 0), part))

    def _absolute(self, expr: Operation, part: CompiledExpression) -> Evaluate:
        run = part.run

        def absolute(words: Int64s) -> Pair:
            values, valid = run(words)
            result = np.absolute(values)
            failing = result < 0
            if np.count_nonzero(failing):
                self._refuse(expr, words, failing, valid)
            return result, valid

        return absolute

    def _refuse(self, expr: Operation, words: Int64s, failing: Bools, valid: Bools | None) -> None:
        """Raise for the first row where `failing` is true and the value is not null."""
        failing = failing if valid is None else failing & valid
        if failing.any():
            raise self._row_error(expr, words, failing, "leaves 64 bits")

    def _division(self, expr: Operation, parts: Sequence[CompiledExpression]) -> Evaluate:
        """Return the run of `//` or `%` of integers; it raises RowError where a value is divided by zero."""
        divide = np.floor_divide if expr.op == "//" else np.remainder
        left, right = parts[0].run, parts[1].run

        def run(words: Int64s) -> Pair:
            dividends, left_valid = left(words)
            divisors, right_valid = right(words)
            valid = both(left_valid, right_valid)
            zero = divisors == 0
            if np.count_nonzero(zero):
                failing = zero if valid is None else zero & valid
                if failing.any():
                    raise self._row_error(expr, words, failing, "divides by zero")
                divisors = np.where(zero, 1, divisors)
            minus = divisors == -1
            if np.count_nonzero(minus):  # -2^63 // -1 is the one quotient larger than its dividend
                failing = minus & (dividends == INT64_MIN)
                if np.count_nonzero(failing):
                    if expr.op == "//":
                        self._refuse(expr, words, failing, valid)
                    divisors = np.where(failing, 1, divisors)
            return divide(dividends, divisors), valid

        return run

    def _cast(self, expr: Operation, type_: ColumnType, part: CompiledExpression) -> CompiledExpression:
        kinds = (part.type.kind, type_.kind)
        is_any = part.type.is_nested and type_.kind == "any"
        if kinds in _SAME_WORDS or is_any or type_.or_null().holds(part.type):
            return CompiledExpression(type_, part.run, part.constant, part.can_fail, part.column)
        if kinds == ("int", "float"):
            return CompiledExpression(type_, as_float(part).run, can_fail=part.can_fail)
        is_try = expr.op == "try_cast"
        run = cast_run(part, type_, is_try, self.symbols, self._refuser(expr))
        can_fail = part.can_fail or not (is_try or never_fails(part.type, type_))
        return CompiledExpression(type_, run, can_fail=can_fail)

    def _function(self, expr: Operation, type_: ColumnType, function: Function) -> CompiledExpression:
        """Compile a function of the catalogue; operands that must be constants are not compiled."""
        parts = []
        for index, operand in enumerate(expr.operands):
            param = function.param(index)
            assert param is not None, "type_of has refused more operands"
            if not param.is_constant:
                parts.append(self.compile(operand))
        constants = constants_of(expr, function)
        run = function_run(function, parts, constants, type_, self.symbols, self._refuser(expr))
        failure = function.failure_of([part.type for part in parts])
        can_fail = failure is not None or any(part.can_fail for part in parts)
        can_overflow = any(part.can_overflow for part in parts)
        compiled = CompiledExpression(type_, run, can_fail=can_fail, can_overflow=can_overflow)
        return self._folded(compiled) if all(part.constant is not None for part in parts) else compiled

    def _folded(self, compiled: CompiledExpression) -> CompiledExpression:
        """Return the constant result of an operator over constants; symbols in it are never forgotten."""
        folded = _folded(compiled)
        if self.symbols is not None and folded.type.is_symbol and folded.constant is not None:
            value, valid = folded.constant
            if valid is None or valid:
                self.symbols.pin(int(value))
        return folded

    def _refuser(self, expr: Operation) -> Refuse:
        def refuse(words: Int64s, failing: Bools, why: str) -> None:
            raise self._row_error(expr, words, failing, why)

        return refuse

    def _rank(self, columns: Sequence[Int64s], valid: Sequence[Bools | None]) -> list[Int64s]:
        """Return numbers in the order of strings and bytes, which words do not have."""
        assert self.symbols is not None, "strings are compared by their values, which need a symbol table"
        return ranks(columns, valid, self.symbols)

    def _row_error(self, expr: Operation, words: Int64s, failing: Bools, why: str) -> RowError:
        """Return the error about the first row where `failing`, with the columns the expression reads."""
        rows = np.broadcast_to(failing, (words.shape[1],))
        first = np.array([np.argmax(rows)] if rows.size else [], np.int64)
        text = "".join(self._texts_of(expr, words, first))
        null = " try_cast gives null instead." if expr.op == "cast" else ""
        error = RowError(
            f"{expr.describe()} ({expr.site}) {why}{f' in the row with {text}' if text else ''}.\n"
            f"  Filter such rows out before, or choose with when(...).then(...).otherwise(...).{null}"
        )
        error.failing = FailingRows(
            rows,
            expr.describe(),
            lambda indices: [why] * len(indices),
            lambda indices: self._rows_shown(expr, words, indices),
            lambda indices: self._rows_at(words, indices)[:-2],
        )
        return error

    def _texts_of(self, expr: Operation, words: Int64s, indices: Int64s) -> list[str]:
        """Return texts of the columns that the expression reads, for some rows; empty if it reads none."""
        names = [name for name in self.schema.names if name in expr.columns()]
        return self._columns_shown(names, words, indices)

    def _rows_shown(self, expr: Operation, words: Int64s, indices: Int64s) -> list[str]:
        """Return texts of all columns of some rows, first those that the expression reads.

        The rest, which tells which row it is, is cut off after `OTHERS_LENGTH_MAX` characters.
        """
        read = self._texts_of(expr, words, indices)
        others = [name for name in self.schema.names if name not in expr.columns()]
        rest = [
            text if len(text) <= OTHERS_LENGTH_MAX else text[:OTHERS_LENGTH_MAX] + "…"
            for text in self._columns_shown(others, words, indices)
        ]
        return [", ".join(filter(None, texts)) for texts in zip(read, rest, strict=True)]

    def _columns_shown(self, names: Sequence[str], words: Int64s, indices: Int64s) -> list[str]:
        """Return texts of some columns of some rows; empty texts if there are no columns."""
        if not names or not words.shape[0]:
            return [""] * len(indices)
        rows = self._rows_at(words, indices)
        columns = [self._shown(name, rows) for name in names]
        return [", ".join(values) for values in zip(*columns, strict=True)]

    def _rows_at(self, words: Int64s, indices: Int64s) -> Int64s:
        """Return some rows with all columns: int64[width + 2, k]. The last two lines have no meaning."""
        rows = np.zeros((self.schema.width + 2, len(indices)), dtype=np.int64)
        if words.shape[0]:
            for word, (source, fixed) in enumerate(
                zip(self.projection.sources, self.projection.constants, strict=True)
            ):
                rows[word] = fixed if source == CONSTANT else words[source, indices]
        return rows

    def _shown(self, name: str, rows: Int64s) -> list[str]:
        """Return texts of one column of some rows.

        A value that Python does not have (after the year 9999) is shown as its word.
        """
        where = self.schema.words_of(name)
        part = np.ascontiguousarray(rows[where.start : where.stop])
        try:
            decoded = decode_rows(self.schema.picked((name,)), part, self.symbols or _Words())
        except (OverflowError, ValueError):
            if part.shape[1] == 1:
                return [f"{name}=#{part[-1, 0]}"]
            return [
                text for row in range(part.shape[1]) for text in self._shown(name, rows[:, row : row + 1])
            ]
        return [f"{name}={value!r}" for (value,) in decoded]


class _Words(SymbolTable):
    """Replaces a missing symbol table: shows a symbol as its word."""

    def lookup(self, words: Int64s) -> list[object]:
        return [f"#{word:x}" for word in words.tolist()]


def _folded(compiled: CompiledExpression) -> CompiledExpression:
    """Return the constant result of an operator over constants."""
    try:
        values, valid = compiled.run(np.empty((0, 1), dtype=np.int64))
    except RowError:
        # It fails in every row that reaches it; a `when` may make sure that none does.
        return compiled
    except UnknownSymbolError:
        # No row reaches it: a column that is null in all rows has a value behind a filter that takes none.
        return compiled
    shape = (2, 1) if compiled.type.is_wide else ()
    return constant(compiled.type, values.reshape(shape), None if valid is None else valid.reshape(()))
