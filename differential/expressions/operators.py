"""What does each operator of an expression compute?

The functions here go from compiled operands to a compiled result (`compiled.py` describes the forms of
values). Arithmetic of whole numbers and casts can fail, and are in `evaluation.py`. Float arithmetic is
silent: by IEEE rules it has a result for everything, and a warning on the screen of one of many workers helps
nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

import numpy as np

from differential.columns.column_types import Bools, ColumnType, Int64s
from differential.columns.float_words import words_to_floats
from differential.errors import RowError
from differential.expressions.compiled import (
    CompiledExpression,
    Evaluate,
    Natural,
    Pair,
    as_float,
    both,
    in_common_words,
    null_constant,
)
from differential.expressions.expression import Operation

__all__ = [
    "ARITHMETIC",
    "COMPARISONS",
    "Rank",
    "choice",
    "extreme",
    "in_words",
    "lifted",
    "logical",
    "ranked",
    "unary",
    "when_run",
]

_Binary: TypeAlias = Callable[[Natural, Natural], Natural]
_Compare: TypeAlias = Callable[[Natural, Natural], Bools]
Rank: TypeAlias = Callable[[Sequence[Int64s], Sequence[Bools | None]], list[Int64s]]
"""From words, and where they have a meaning, to numbers in the order of their values."""


def _quiet(function: _Binary) -> _Binary:
    """Return `function` without warnings for floats; integers never warn here, and skip the cost (0.8 µs)."""

    def quiet(left: Natural, right: Natural) -> Natural:
        if left.dtype == np.int64:
            return function(left, right)
        with np.errstate(all="ignore"):
            return function(left, right)

    return quiet


COMPARISONS: Final[dict[str, _Binary]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
"""Comparisons of words; the result is bool."""

ARITHMETIC: Final[dict[str, _Binary]] = {
    "+": _quiet(np.add),
    "-": _quiet(np.subtract),
    "*": _quiet(np.multiply),
    "/": _quiet(np.true_divide),
    "//": _quiet(np.floor_divide),
    "%": _quiet(np.remainder),
}
"""Arithmetic of numbers of one type; `evaluation.py` checks integer `//` and `%` for zero first."""


def lifted(function: Callable[[Natural, Natural], Natural], parts: Sequence[CompiledExpression]) -> Evaluate:
    """Return a function of two values, with null where one of them is null."""
    left, right = parts[0].run, parts[1].run
    if not parts[0].type.nullable and not parts[1].type.nullable:
        return lambda words: (function(left(words)[0], right(words)[0]), None)

    def run(words: Int64s) -> Pair:
        left_values, left_valid = left(words)
        right_values, right_valid = right(words)
        return function(left_values, right_values), both(left_valid, right_valid)

    return run


def extreme(is_min: bool, parts: Sequence[CompiledExpression]) -> Evaluate:
    """Return the least or greatest by the order of words."""
    choose = np.minimum if is_min else np.maximum
    is_float = parts[0].type.kind == "float"
    runs = [part.run for part in parts]

    def run(words: Int64s) -> Pair:
        values, valid = runs[0](words)
        for other in runs[1:]:
            other_values, other_valid = other(words)
            values, valid = choose(values, other_values), both(valid, other_valid)
        if is_float:
            return words_to_floats(np.atleast_1d(cast(Int64s, values))), valid
        return values, valid

    return run


def choice(op: str, parts: Sequence[CompiledExpression], rank: Rank | None) -> Evaluate:
    """Return the least or greatest value, by `rank` if the order of words is not that of values.

    `least` and `greatest` skip nulls.
    """
    compare: _Compare = np.less if op in ("min_of", "least") else np.greater
    if parts[0].type.is_wide:
        compare = _is_less if op in ("min_of", "least") else _is_greater
    skips_nulls = op in ("least", "greatest")
    is_float = parts[0].type.kind == "float"
    runs = [part.run for part in parts]

    def run(words: Int64s) -> Pair:
        pairs = [each(words) for each in runs]
        keys = [cast(Int64s, values) for values, _ in pairs]
        if rank is not None:
            keys = rank(keys, [valid for _, valid in pairs])
        (values, valid), key = pairs[0], keys[0]
        for (other, other_valid), other_key in zip(pairs[1:], keys[1:], strict=True):
            takes = compare(other_key, key)
            is_both = both(valid, other_valid)
            if skips_nulls and is_both is not None:
                takes = takes & is_both
                if valid is not None:
                    takes = takes | (~valid if other_valid is None else ~valid & other_valid)
            values, key = np.where(takes, other, values), np.where(takes, other_key, key)
            if not skips_nulls:
                valid = is_both
            else:
                valid = None if valid is None or other_valid is None else valid | other_valid
        if is_float:
            return words_to_floats(np.atleast_1d(cast(Int64s, values))), valid
        return values, valid

    return run


def _is_less(left: Natural, right: Natural) -> Bools:
    """Return where a number of two words is less than another."""
    return cast("Bools", (left[0] < right[0]) | ((left[0] == right[0]) & (left[1] < right[1])))


def _is_greater(left: Natural, right: Natural) -> Bools:
    return _is_less(right, left)


def ranked(op: str, parts: Sequence[CompiledExpression], rank: Rank) -> Evaluate:
    """Return a comparison by the `rank` of words."""
    left, right = parts[0].run, parts[1].run

    def run(words: Int64s) -> Pair:
        left_values, left_valid = left(words)
        right_values, right_valid = right(words)
        keys = rank([cast(Int64s, left_values), cast(Int64s, right_values)], [left_valid, right_valid])
        return COMPARISONS[op](keys[0], keys[1]), both(left_valid, right_valid)

    return run


def logical(is_and: bool, parts: Sequence[CompiledExpression]) -> Evaluate:
    """Return `&` or `|` with SQL's null."""
    left, right = parts[0].run, parts[1].run
    if not parts[0].type.nullable and not parts[1].type.nullable:
        return lifted(np.logical_and if is_and else np.logical_or, parts)
    combine = _kleene_and if is_and else _kleene_or
    return lambda words: combine(*left(words), *right(words))


def unary(expr: Operation, parts: Sequence[CompiledExpression]) -> Evaluate:
    """Return an operator of one value: negative and abs of floats, ~, is_null; and fill_null, is_in."""
    run = parts[0].run
    if expr.op == "is_in":
        return _is_in(parts)
    if expr.op == "fill_null":
        return _fill_null(parts)
    if expr.op == "is_null":

        def is_null(words: Int64s) -> Pair:
            valid = run(words)[1]
            return (np.zeros(words.shape[1], dtype=np.bool_) if valid is None else ~valid), None

        return is_null
    function = {"negative": np.negative, "abs": np.absolute, "~": np.logical_not}[expr.op]

    def apply(words: Int64s) -> Pair:
        values, valid = run(words)
        return function(values), valid

    return apply


def _is_in(parts: Sequence[CompiledExpression]) -> Evaluate:
    """Return membership in constants, by binary search in their sorted words."""
    sides = in_common_words(parts)
    assert all(side.constant is not None for side in sides[1:])
    return in_words(sides[0].run, [int(side.constant[0]) for side in sides[1:] if side.constant is not None])


def in_words(run: Evaluate, constants: Sequence[int]) -> Evaluate:
    """Return membership of words in constants, by binary search."""
    constants = sorted(constants)
    if not constants:
        return lambda words: (np.zeros(words.shape[1], dtype=np.bool_), run(words)[1])
    # The greatest constant stands there twice: a value beyond it is searched at the end, where it differs.
    padded = np.array([*constants, constants[-1]], dtype=np.int64)
    search = padded[:-1]

    def is_in(words: Int64s) -> Pair:
        values, valid = run(words)
        return padded[search.searchsorted(values)] == values, valid

    return is_in


def _fill_null(parts: Sequence[CompiledExpression]) -> Evaluate:
    """Return the first value, or the second where that is null; one that can fail sees only those rows."""
    can_overflow = parts[1].can_overflow
    if parts[1].type.kind != parts[0].type.kind:
        parts = [as_float(part) for part in parts]
    value, default, can_fail = parts[0].run, parts[1].run, parts[1].can_fail or can_overflow

    def run(words: Int64s) -> Pair:
        values, valid = value(words)
        if valid is None:
            return values, None
        if can_fail:
            return _filled(values, valid, default, words)
        other, other_valid = default(words)
        return np.where(valid, values, other), None if other_valid is None else valid | other_valid

    return run


def _filled(values: Natural, valid: Bools, default: Evaluate, words: Int64s) -> Pair:
    """Return `values` with those of `default` where they are null; `default` runs on these rows only."""
    count = words.shape[1]
    if not valid.ndim:  # of constants: the same in every row
        values = np.broadcast_to(values, (count,))  # type: ignore[assignment]  # of the same type
        valid = np.full(count, bool(valid))
    missing = (~valid).nonzero()[0]
    if not missing.size:
        return values, None
    other, other_valid = default(words.take(missing, 1))
    values, valid = values.copy(), np.ones_like(valid)
    values[..., missing] = other
    if other_valid is not None:
        valid[missing] = other_valid
    return values, valid


def when_run(parts: Sequence[CompiledExpression], type_: ColumnType) -> Evaluate:
    """Return the value of the first branch whose condition is true."""
    tests = list(parts[:-1:2])
    values = list(parts[1::2])
    if len(parts) % 2:
        values.append(parts[-1])
    else:
        values.append(null_constant(type_))
    if type_.kind == "float":
        values = [as_float(value) for value in values]
    by_rows = _when_by_rows(tests, values, type_)
    if any(part.can_fail for part in parts):
        return by_rows
    at_once = _when_at_once(tests, values)
    return _tried(at_once, by_rows) if any(part.can_overflow for part in parts) else at_once


def _tried(run: Evaluate, instead: Evaluate) -> Evaluate:
    """Return `run`; where that fails, `instead`, which costs more but evaluates operands on fewer rows."""

    def tried(words: Int64s) -> Pair:
        try:
            return run(words)
        except RowError:
            return instead(words)

    return tried


def _when_at_once(tests: Sequence[CompiledExpression], values: Sequence[CompiledExpression]) -> Evaluate:
    """Return a run in which every part sees all rows, and the first true condition chooses."""
    runs = [(test.mask, value.run) for test, value in zip(tests, values[:-1], strict=True)]
    last = values[-1].run

    def run(words: Int64s) -> Pair:
        result, valid = last(words)
        for mask, value in reversed(runs):
            chosen = mask(words)
            branch, branch_valid = value(words)
            if valid is not None or branch_valid is not None:
                one = np.True_
                valid = np.where(
                    chosen, one if branch_valid is None else branch_valid, one if valid is None else valid
                )
            result = np.where(chosen, branch, result)
        return result, valid

    return run


def _when_by_rows(
    tests: Sequence[CompiledExpression], values: Sequence[CompiledExpression], type_: ColumnType
) -> Evaluate:
    """Like `when_run`, but every part sees only rows that reach it, because it might fail on the others."""
    dtype = {"float": np.dtype(np.float64), "bool": np.dtype(np.bool_)}.get(type_.kind, np.dtype(np.int64))

    def run(words: Int64s) -> Pair:
        rows = words.shape[1]
        result = np.zeros((2, rows) if type_.is_wide else rows, dtype=dtype)
        valid = np.ones(rows, dtype=np.bool_)
        remaining = np.arange(rows)
        for test, value in zip([*tests, None], values, strict=True):
            if not remaining.size:
                break
            here = words.take(remaining, 1)
            chosen = np.ones(remaining.size, dtype=np.bool_) if test is None else test.mask(here)
            taken = remaining[chosen]
            if taken.size:
                result[..., taken], branch_valid = value.run(here.compress(chosen, 1))
                if branch_valid is not None:
                    valid[taken] = branch_valid
            remaining = remaining[~chosen]
        return result, valid if type_.nullable else None

    return run


def _kleene_and(left: Natural, left_valid: Bools | None, right: Natural, right_valid: Bools | None) -> Pair:
    """Return `&` of conditions that may be null: false if one is false, else null if one is null."""
    left_true, left_false = _true_false(left, left_valid)
    right_true, right_false = _true_false(right, right_valid)
    true = left_true & right_true
    return true, true | left_false | right_false


def _kleene_or(left: Natural, left_valid: Bools | None, right: Natural, right_valid: Bools | None) -> Pair:
    """Return `|` of conditions that may be null: true if one is true, else null if one is null."""
    left_true, left_false = _true_false(left, left_valid)
    right_true, right_false = _true_false(right, right_valid)
    true = left_true | right_true
    return true, true | (left_false & right_false)


def _true_false(values: Natural, valid: Bools | None) -> tuple[Bools, Bools]:
    """Return where a condition is true, and where it is false; neither where it is null."""
    true = values.astype(np.bool_, copy=False)
    if valid is None:
        return true, ~true
    return true & valid, ~true & valid
