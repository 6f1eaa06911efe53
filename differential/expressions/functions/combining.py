"""Computes functions of the catalogue on each different combination of the values of their columns.

Every value gets a number, every combination of numbers in a row another one. The function runs once for each
of these, on Python values, and the results are spread over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Bools, ColumnType, Floats, Int64s
from differential.columns.encoding import decode_column
from differential.columns.float_words import floats_to_words, words_to_floats
from differential.columns.nested.locations import ValueLocation
from differential.columns.rows import values_to_words
from differential.columns.symbols.table import SymbolTable
from differential.columns.wide.wide_words import are_small, widened
from differential.expressions.compiled import CompiledExpression, Evaluate, Natural, Pair
from differential.expressions.functions.function import LACKS, Function
from timely.wire.arrow import number_array, numbers_of

__all__ = [
    "ONE_OF_TWO_WORDS",
    "Refuse",
    "all_of",
    "combined_run",
    "natural",
    "numbered",
    "python_values",
    "spread",
]

Refuse: TypeAlias = Callable[[Int64s, Bools, str], None]
"""Raises RowError for the first of the rows where the flags are true, with a reason."""

ONE_OF_TWO_WORDS: Final = (2, 1)
"""The shape of a constant of two words."""


def combined_run(
    function: Function,
    parts: Sequence[CompiledExpression],
    constants: Sequence[object],
    type_: ColumnType,
    symbols: SymbolTable | None,
    refuse: Refuse,
) -> Evaluate:
    """Return the run of `function` over `parts`: its operands without those that must be constants."""
    call = function.combined
    assert call is not None
    types = [part.type for part in parts]
    failure = function.failure_of(types)
    place = ValueLocation("an expression", "value", type_.or_null())

    def run(words: Int64s) -> Pair:
        pairs = [part.run(words) for part in parts]
        is_constant = not any(values.ndim and values.shape != ONE_OF_TWO_WORDS for values, _ in pairs)
        rows = 1 if is_constant else words.shape[1]
        columns = [_words(spread(values, rows)) for values, _ in pairs]
        flags = [None if valid is None else cast("Bools", spread(valid, rows)) for _, valid in pairs]
        valid = None if function.skips_nulls else all_of(flags)
        at = np.arange(rows) if valid is None else np.flatnonzero(valid)
        values, combination = _combinations(columns, flags, at, types, symbols)
        results = [call(row, constants, types) for row in values]
        lacks = np.array([result is LACKS for result in results], dtype=np.bool_)
        if failure is not None and lacks.any():
            failing = np.zeros(rows, dtype=np.bool_)
            failing[at] = lacks[combination]
            refuse(words, failing, failure)
        out = np.empty((type_.or_null().words, len(results)), dtype=np.int64)
        present = [None if result is LACKS else result for result in results]
        values_to_words(present, type_.or_null(), out, symbols, place)
        whole = np.zeros((len(out), rows), dtype=np.int64)
        whole[:, at] = out[:, combination]
        result, is_there = natural(whole[1:], type_), whole[0] != 0
        if not is_constant:
            return result, is_there
        return (result if type_.is_wide else result.reshape(())), is_there.reshape(())

    return run


def _words(values: Natural) -> Int64s:
    return floats_to_words(cast("Floats", values)) if values.dtype == np.float64 else values.astype(np.int64)


def _combinations(
    columns: Sequence[Int64s],
    flags: Sequence[Bools | None],
    at: Int64s,
    types: Sequence[ColumnType],
    symbols: SymbolTable | None,
) -> tuple[list[tuple[object, ...]], Int64s]:
    """Return (the different combinations of values in the rows `at`, for each of these rows which it is)."""
    combination = np.zeros(len(at), dtype=np.int64)
    chosen: list[Int64s] = []
    value_lists: list[list[object]] = []
    for column, flag, type_ in zip(columns, flags, types, strict=True):
        valid = None if flag is None else flag[at]
        distinct, indices = numbered(column[..., at], valid)
        values = [None, *python_values(distinct, type_, symbols)]  # number 0 is null
        indices = indices + 1 if valid is None else np.where(valid, indices + 1, 0)
        pairs, combination = numbered(combination * len(values) + indices, None)
        before, this = pairs // len(values), pairs % len(values)
        chosen = [*(each.take(before) for each in chosen), this]
        value_lists.append(values)
    rows = [list(map(values.__getitem__, each)) for values, each in zip(value_lists, chosen, strict=True)]
    return list(zip(*rows, strict=True)), combination


def python_values(words: Int64s, type_: ColumnType, symbols: SymbolTable | None) -> list[object]:
    """Return the Python values of words; None where Python has none, as for times after the year 9999."""
    if type_.metadata is not None:
        assert symbols is not None
        return symbols.lookup(words)
    array = decode_column(np.atleast_2d(words), type_.not_null(), symbols)
    try:
        return cast("list[object]", array.to_pylist())
    except (OverflowError, ValueError):
        return [_value_of(each) for each in array]


def _value_of(scalar: pa.Scalar) -> object:
    try:
        return cast("object", scalar.as_py())
    except (OverflowError, ValueError):
        return None


def numbered(values: Natural, valid: Bools | None) -> tuple[Int64s, Int64s]:
    """Return (the different values, for each row the index of its value; any index where the row is null)."""
    words = values.astype(np.int64, copy=False)
    if words.ndim == 2:
        return _numbered_pairs(words, valid)
    encoded = number_array(words, None if valid is None else ~valid).dictionary_encode()
    indices = numbers_of(encoded.indices, np.int32).astype(np.int64)
    if valid is not None:
        indices = np.where(valid, indices, 0)
    return numbers_of(encoded.dictionary, np.int64), indices


def _numbered_pairs(words: Int64s, valid: Bools | None) -> tuple[Int64s, Int64s]:
    """Return the same for values of two words."""
    words = words if valid is None else words.compress(valid, 1)
    if are_small(words):
        small, there = numbered(words[1], None)
        different = widened(small)
    else:
        different, there = np.unique(words, axis=1, return_inverse=True)
    if valid is None:
        return different, there.reshape(-1)
    indices = np.zeros(valid.size, np.int64)
    indices[valid] = there.reshape(-1)
    return different, indices


def spread(values: Natural, rows: int) -> Natural:
    """Return constants repeated for every row."""
    if values.ndim == 2 and values.shape[1] != rows:
        return cast("Natural", np.repeat(values, rows, axis=1))
    return values if values.ndim else np.full(rows, values)


def all_of(flags: Sequence[Bools | None]) -> Bools | None:
    """Return where no flag is false; None: everywhere."""
    all_valid: Bools | None = None
    for flag in flags:
        if flag is not None:
            all_valid = flag if all_valid is None else all_valid & flag
    return all_valid


def natural(words: Int64s, type_: ColumnType) -> Natural:
    """Return the words of values, int64[1 or 2, n], in the form of `compiled.py`."""
    if type_.is_wide:
        return words
    words = words[0]
    if type_.kind == "float":
        return words_to_floats(words)
    return words.astype(np.bool_) if type_.kind == "bool" else words
