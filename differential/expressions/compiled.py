"""The compiled form of an expression over given columns.

It is a function from words to values, one closure per operator. Values are in their *natural form*: float64
for floats, bool for bools, the word for everything else, and two lines of words, int64[2, n], for wide
decimals. Beside them goes `valid`, false where the value is
null, or None if no value is. Below a null stands any value here, and 0 once it is written as words. Constants
are arrays of no dimension, or int64[2, 1], computed when the expression is compiled.

Comparisons work on words, because words have the order and equality that rows have (`float_words.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from differential.columns.column_types import Bools, ColumnType, Floats, Int64s
from differential.columns.float_words import floats_to_words, words_to_floats
from differential.columns.wide.wide_words import split_value, widened
from differential.expressions.arithmetic.rounding import quotients

__all__ = [
    "CompiledExpression",
    "Evaluate",
    "Natural",
    "Pair",
    "as_float",
    "both",
    "column_at",
    "constant",
    "converted",
    "in_common_words",
    "null_constant",
    "wide_column_at",
    "word_constant",
]

Natural: TypeAlias = Int64s | Floats | Bools
"""Values in natural form."""

Pair: TypeAlias = tuple[Natural, Bools | None]
Evaluate: TypeAlias = Callable[[Int64s], Pair]


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """An expression for given columns.

    `run(words)` returns (values in natural form, valid or None) for int64[…, n]; each has n elements or no
    dimension. If `can_fail`, it may raise RowError, and so must not see rows that a `when` has excluded. If
    `can_overflow`, it may do so in rare cases: then it first runs on all rows, and if it raises, again with
    those rows excluded.
    """

    type: ColumnType
    run: Evaluate
    constant: Pair | None = None
    can_fail: bool = False
    column: int | None = None
    can_overflow: bool = False

    def words(self) -> CompiledExpression:
        """Return the same with floats as words, for comparisons."""
        if self.type.kind != "float":
            return self
        run = self.run
        if self.column is not None:
            return CompiledExpression(self.type, _word_run(run, self.column))
        if self.constant is not None:
            value, valid = self.constant
            return constant(self.type, floats_to_words(np.atleast_1d(cast(Floats, value)))[0], valid)

        def as_words(words: Int64s) -> Pair:
            values, valid = run(words)
            return floats_to_words(cast(Floats, values)), valid

        return CompiledExpression(self.type, as_words, can_fail=self.can_fail)

    def mask(self, words: Int64s) -> Bools:
        """Return where a condition is true (not false, not null): bool[n]."""
        values, valid = self.run(words)
        true = cast(Bools, values)
        if valid is not None:
            true = true & valid
        return true if true.ndim else np.full(words.shape[1], bool(true))

    def writer(self) -> Callable[[Int64s, Int64s], None]:
        """Return the function that writes the words of its values into `out`, int64[type.words, n]."""
        run = self.words().run
        if self.type.is_wide:
            return _wide_writer(run, self.type.nullable)
        if not self.type.nullable:

            def write(words: Int64s, out: Int64s) -> None:
                out[0] = run(words)[0]

            return write

        def write_nullable(words: Int64s, out: Int64s) -> None:
            values, valid = run(words)
            out[1] = values
            if valid is None:
                out[0] = 1
            else:
                out[0] = valid
                out[1] *= out[0]

        return write_nullable


def _wide_writer(run: Evaluate, nullable: bool) -> Callable[[Int64s, Int64s], None]:
    """Return the function that writes values of two words, with the flag before them if they are nullable."""

    def write(words: Int64s, out: Int64s) -> None:
        values, valid = run(words)
        out[-2:] = values
        if nullable:
            out[0] = 1 if valid is None else valid
            if valid is not None:
                out[-2:] *= out[0]

    return write


def _word_run(run: Evaluate, column: int) -> Evaluate:
    """Return a run that reads the column's words as they are, with the validity that `run` finds."""
    return lambda words: (words[column], run(words)[1])


def constant(type_: ColumnType, value: object, valid: Bools | None = None) -> CompiledExpression:
    """Return the same value, in natural form, for every row; `valid` (no dimension) is false for null."""
    pair = (cast(Natural, np.asarray(value)), valid)
    return CompiledExpression(type_, lambda words: pair, constant=pair)


def word_constant(type_: ColumnType, word: int, flag: int = 1) -> CompiledExpression:
    """Return the constant with this word, of a wide decimal this number; `flag` is 0 if it is null."""
    if type_.is_wide:
        words = np.array(split_value(word), np.int64).reshape(2, 1)
        return constant(type_, words, np.asarray(flag != 0) if type_.nullable else None)
    value = _natural(np.array([word], dtype=np.int64), type_).reshape(())
    return constant(type_, value, np.asarray(flag != 0) if type_.nullable else None)


def null_constant(type_: ColumnType) -> CompiledExpression:
    """Return null for every row."""
    return word_constant(type_.or_null(), 0, 0)


def column_at(type_: ColumnType, source: int, flag_source: int) -> CompiledExpression:
    """Return the column with its values in row `source` of the words, any flags in row `flag_source`."""
    if type_.nullable:
        return CompiledExpression(
            type_, lambda words: (_natural(words[source], type_), words[flag_source] != 0), column=source
        )
    if type_.kind in ("float", "bool"):
        return CompiledExpression(type_, lambda words: (_natural(words[source], type_), None), column=source)
    return CompiledExpression(type_, lambda words: (words[source], None), column=source)


def wide_column_at(
    type_: ColumnType, high: int | None, low: int, flag_source: int | None
) -> CompiledExpression:
    """Return a column of two words; `high`: None if the high word is 0 in all rows, `flag_source`: None if no
    value is null.
    """

    def values_of(words: Int64s) -> Int64s:
        if high is None:
            return widened(words[low])
        return words[high : low + 1] if high + 1 == low else words.take((high, low), 0)

    if flag_source is None:
        return CompiledExpression(type_, lambda words: (values_of(words), None))
    return CompiledExpression(type_, lambda words: (values_of(words), words[flag_source] != 0))


def _natural(words: Int64s, type_: ColumnType) -> Natural:
    """Return words in natural form."""
    if type_.kind == "float":
        return words_to_floats(words)
    return words.astype(np.bool_) if type_.kind == "bool" else words


def converted(run: Evaluate, dtype: npt.DTypeLike) -> Evaluate:
    """Return `run` with its values as another dtype."""

    def convert(words: Int64s) -> Pair:
        values, valid = run(words)
        return values.astype(dtype), valid

    return convert


def as_float(part: CompiledExpression) -> CompiledExpression:
    """Return a number (or bool) as a float."""
    if part.type.kind == "float":
        return part
    type_ = ColumnType("float", part.type.nullable)
    scale = part.type.scale
    if part.constant is not None:
        value = quotients(cast(Int64s, part.constant[0]), scale).reshape(())
        return constant(type_, value, part.constant[1])
    if scale or part.type.is_wide:

        def scaled(words: Int64s) -> Pair:
            values, valid = part.run(words)
            return quotients(cast(Int64s, values), scale), valid

        return CompiledExpression(type_, scaled, can_fail=part.can_fail)
    return CompiledExpression(type_, converted(part.run, np.float64), can_fail=part.can_fail)


def both(left: Bools | None, right: Bools | None) -> Bools | None:
    """Return where both are valid."""
    if left is None:
        return right
    return left if right is None else left & right


def in_common_words(parts: Sequence[CompiledExpression]) -> list[CompiledExpression]:
    """Return all operands as words of one type, for comparisons: floats if one is a float."""
    if any(part.type.kind == "float" for part in parts):
        parts = [as_float(part) for part in parts]
    return [part.words() for part in parts]
