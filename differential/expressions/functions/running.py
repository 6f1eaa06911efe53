"""Computes functions of the catalogue, and casts, on columns in natural form.

Values cross to Arrow or Python and back once per column, values of symbols once per *different* value:
Arrow's hash table numbers the words, the symbol table looks their values up, the function runs over these,
and its results are spread over the rows. Results that are symbols are entered into the symbol table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Bools, ColumnType, Floats, Int64s
from differential.columns.encoding import decode_column, encode_column
from differential.columns.float_words import floats_to_words
from differential.columns.nested.locations import ValueLocation
from differential.columns.rows import values_to_words
from differential.columns.symbols.table import SymbolTable
from differential.expressions.compiled import CompiledExpression, Evaluate, Natural, Pair
from differential.expressions.functions.casts import COLUMN_CASTS, VALUE_CASTS, never_fails
from differential.expressions.functions.combining import (
    ONE_OF_TWO_WORDS,
    Refuse,
    all_of,
    combined_run,
    natural,
    numbered,
    python_values,
    spread,
)
from differential.expressions.functions.function import Function, Python
from timely.wire.arrow import binary_array, int64_array, number_array, numbers_of, pc

__all__ = ["Refuse", "cast_run", "function_run", "ranks"]

_OfColumns: TypeAlias = Callable[[Sequence[Natural], Sequence[Bools | None]], Pair]


def function_run(
    function: Function,
    parts: Sequence[CompiledExpression],
    constants: Sequence[object],
    type_: ColumnType,
    symbols: SymbolTable | None,
    refuse: Refuse,
) -> Evaluate:
    """Return the run of `function` over `parts`: its operands without those that must be constants."""
    types = [part.type for part in parts]
    if function.is_combined(types):
        return combined_run(function, parts, constants, type_, symbols, refuse)
    if function.numpy is not None:
        of_columns = _of_numpy(function, types, constants)
    elif function.python is not None:
        of_columns = _of_values(function.python, types[0], constants, type_, symbols)
    else:
        of_columns = _of_arrow(function, types, constants, type_, symbols)
    return _whole(of_columns, parts, function.failure_of(types), refuse, function.skips_nulls)


def cast_run(
    part: CompiledExpression, type_: ColumnType, is_try: bool, symbols: SymbolTable | None, refuse: Refuse
) -> Evaluate:
    """Return the run of a cast of `part` to another type.

    Where the cast has no value, the result is null if `is_try`; otherwise the row fails.
    """
    kinds = (part.type.kind, type_.kind)
    in_values = VALUE_CASTS.get(kinds)
    if in_values is not None:
        of_columns = _of_values(
            lambda value, constants: in_values(value, type_), part.type, (), type_, symbols
        )
    else:
        in_columns, source = COLUMN_CASTS[kinds], part.type

        def of_columns(values: Sequence[Natural], valid: Sequence[Bools | None]) -> Pair:
            return in_columns(values[0], source, type_)

    failure = None if is_try or never_fails(part.type, type_) else f"is no {type_.not_null()}"
    if failure is not None and kinds == ("float", "int"):
        failure = "is not a 64-bit number"
    return _whole(of_columns, (part,), failure, refuse, False)


def ranks(columns: Sequence[Int64s], valid: Sequence[Bools | None], symbols: SymbolTable) -> list[Int64s]:
    """Return numbers in the order of the values of these words of strings (or bytes).

    Below a null stands any number. Each different word is looked up and sorted: O(n + d · log d) for d of
    them.
    """
    plain_words = [
        np.atleast_1d(column if flag is None else np.where(flag, column, 0))
        for column, flag in zip(columns, valid, strict=True)
    ]
    encoded = int64_array(np.concatenate(plain_words)).dictionary_encode()
    words = numbers_of(encoded.dictionary, np.int64)
    texts = [symbols.lookup_one(word) if word else "" for word in words.tolist()]
    raw = [value.encode() if isinstance(value, str) else cast("bytes", value) for value in texts]
    order = np.empty(len(raw), dtype=np.int64)
    order[numbers_of(pc.sort_indices(binary_array(raw)), np.int64)] = np.arange(len(raw))
    numbers = order[numbers_of(encoded.indices, np.int32)]
    numbers_by_column, start = [], 0
    for column, flat in zip(columns, plain_words, strict=True):
        part = numbers[start : start + flat.size]
        numbers_by_column.append(part if column.ndim or part.size != 1 else part.reshape(()))
        start += flat.size
    return numbers_by_column


def _whole(
    of_columns: _OfColumns,
    parts: Sequence[CompiledExpression],
    failure: str | None,
    refuse: Refuse,
    skips_nulls: bool,
) -> Evaluate:
    """Return a run of `of_columns` over whole columns of one length.

    Nulls in the operands make nulls. A missing value is null, or makes the row fail if there is a `failure`.
    """
    runs = [part.run for part in parts]

    def run(words: Int64s) -> Pair:
        pairs = [each(words) for each in runs]
        is_constant = not any(values.ndim and values.shape != ONE_OF_TWO_WORDS for values, _ in pairs)
        rows = 1 if is_constant else words.shape[1]
        values = [spread(values, rows) for values, _ in pairs]
        flags = [None if valid is None else spread(valid, rows) for _, valid in pairs]
        result, is_there = of_columns(values, cast("Sequence[Bools | None]", flags))
        valid = None if skips_nulls else all_of(cast("Sequence[Bools | None]", flags))
        if is_there is not None:
            if failure is not None:
                failing = ~is_there if valid is None else ~is_there & valid
                if failing.any():
                    refuse(words, failing, failure)
            valid = is_there if valid is None else valid & is_there
        if not is_constant:
            return result, valid
        return result.reshape((2, 1) if result.ndim == 2 else ()), None if valid is None else valid.reshape(
            ()
        )

    return run


def _of_numpy(function: Function, types: Sequence[ColumnType], constants: Sequence[object]) -> _OfColumns:
    call = function.numpy
    assert call is not None
    return lambda values, valid: call(values, constants, types)


def _of_arrow(
    function: Function,
    types: Sequence[ColumnType],
    constants: Sequence[object],
    type_: ColumnType,
    symbols: SymbolTable | None,
) -> _OfColumns:
    call = function.arrow
    assert call is not None
    is_by_value = (
        len(types) == 1 and (types[0].is_symbol or function.of_different) and not function.skips_nulls
    )

    def of_columns(values: Sequence[Natural], valid: Sequence[Bools | None]) -> Pair:
        if is_by_value:
            distinct, indices = numbered(values[0], valid[0])
            array = _to_arrow(distinct, None, types[0], symbols)
            return _taken(*_from_arrow(call([array], constants), type_, symbols), indices)
        arrays = [
            _to_arrow(column, flag, each, symbols)
            for column, flag, each in zip(values, valid, types, strict=True)
        ]
        return _from_arrow(call(arrays, constants), type_, symbols)

    return of_columns


def _of_values(
    call: Python,
    source: ColumnType,
    constants: Sequence[object],
    type_: ColumnType,
    symbols: SymbolTable | None,
) -> _OfColumns:
    """Return a Python function over the different values of one column."""
    place = ValueLocation("an expression", "value", type_.or_null())

    def of_columns(values: Sequence[Natural], valid: Sequence[Bools | None]) -> Pair:
        words = floats_to_words(cast("Floats", values[0])) if source.kind == "float" else values[0]
        distinct, indices = numbered(words, valid[0])
        results = [
            None if value is None else call(value, constants)
            for value in python_values(distinct, source, symbols)
        ]
        out = np.empty((type_.or_null().words, len(results)), dtype=np.int64)
        values_to_words(results, type_.or_null(), out, symbols, place)
        return _taken(natural(out[1:], type_), out[0] != 0, indices)

    return of_columns


def _taken(values: Natural, valid: Bools | None, indices: Int64s) -> Pair:
    if not values.size:  # every row is null
        return cast("Natural", np.zeros((*values.shape[:-1], indices.size), dtype=values.dtype)), None
    return values.take(indices, -1), None if valid is None else valid.take(indices)


def _to_arrow(
    values: Natural, valid: Bools | None, type_: ColumnType, symbols: SymbolTable | None
) -> pa.Array:
    if type_.kind in ("float", "bool"):
        return number_array(cast("Floats", values), None if valid is None else ~valid)
    if valid is None:
        return decode_column(np.atleast_2d(values), type_.not_null(), symbols)
    flagged = np.vstack([valid.astype(np.int64), np.where(valid, cast("Int64s", values), 0)])
    return decode_column(flagged, type_.or_null(), symbols)


def _from_arrow(array: pa.Array, type_: ColumnType, symbols: SymbolTable | None) -> Pair:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    target = type_.to_arrow()
    if array.type != target:
        array = array.cast(target)
    out = np.empty((type_.or_null().words, len(array)), dtype=np.int64)
    encode_column(array, type_.or_null(), out, symbols)
    return natural(out[1:], type_), (out[0] != 0 if array.null_count else None)
