"""How does a Python function of batches get rows of words?

    map_batches(fn)   fn(Arrow table with the column diff) returns an Arrow table, any rows with their diff

Rows of several times make several batches, so that results have the time of their input. The function must be
linear (`collections/functions.py`); `user_functions.py` lists its other duties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Int64s
from differential.columns.schema import Column, Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError
from differential.expressions.projection import TRAILING_WORDS
from differential.linear.user_functions import UserStep, line_of, name_of
from timely.counted import counted
from timely.failure import text_of
from timely.wire.arrow import int64_array

__all__ = ["compile_batches"]

_DIFF: Final = "diff"
_ROWS_SHOWN_MAX: Final = 3


def compile_batches(step: UserStep, symbols: SymbolTable) -> Callable[[Int64s], Int64s | None]:
    """Return the function from rows of `step.schema_in` (with time and diff) to rows of `step.schema_out`."""
    for schema in (step.schema_in, step.schema_out):
        if _DIFF in schema:
            raise SchemaError(f"map_batches ({step.site}): {_DIFF!r} is what it calls the differences")
    with_diff = Schema((*step.schema_out, Column(_DIFF, Schema.of("diff: int")[_DIFF].type)))

    def apply(words: Int64s) -> Int64s | None:
        results = [_applied(step, with_diff, part, symbols) for part in _by_time(words)]
        whole = np.concatenate(results, axis=1) if len(results) > 1 else results[0]
        whole = whole[:, whole[-1] != 0]
        return np.ascontiguousarray(whole) if whole.shape[1] else None

    return apply


def _by_time(words: Int64s) -> Iterator[Int64s]:
    """Yield the rows of each time."""
    times = words[-TRAILING_WORDS]
    if words.shape[1] == 0 or (times == times[0]).all():
        yield words
        return
    for time in np.unique(times):
        yield np.ascontiguousarray(words[:, times == time])


def _applied(step: UserStep, with_diff: Schema, words: Int64s, symbols: SymbolTable) -> Int64s:
    rows = words.shape[1]
    diffs = int64_array(words[-1])
    table = step.schema_in.decode(words, symbols).append_column(_DIFF, diffs)
    try:
        # A handle of its own on the columns: pandas' `self_destruct` leaves a table that crashes at the next
        # access, and messages show its first rows.
        result = cast(Callable[[pa.Table], object], step.function)(table.slice())
    except Exception as error:
        why = f"{type(error).__name__}: {text_of(error)}"
        raise step.error(_batch(table), why, line_of(error, step.function)) from error
    if not isinstance(result, pa.Table | pa.RecordBatch):
        raise step.error(_batch(table), f"it gave a {type(result).__name__}, not an Arrow table")
    if isinstance(result, pa.RecordBatch):
        result = pa.Table.from_batches([result])
    if _DIFF not in result.column_names:
        if result.num_rows != rows:
            raise step.error(
                _batch(table),
                f"it gave {counted(result.num_rows, 'row')} for {rows}, without the column {_DIFF!r}: give "
                "that column, too, or exactly one row for each row",
            )
        result = result.append_column(_DIFF, diffs)
    out = np.empty((step.schema_out.width + TRAILING_WORDS, result.num_rows), dtype=np.int64)
    try:
        encoded = with_diff.encode(result, symbols, f"result of {name_of(step.function)}")
    except SchemaError as error:
        raise step.error(_batch(table), str(error)) from error
    out[:-TRAILING_WORDS] = encoded[:-1]
    if rows:
        out[-TRAILING_WORDS] = words[-TRAILING_WORDS, 0]
    out[-1] = encoded[-1]
    return out


def _batch(table: pa.Table) -> str:
    """Return the first rows of a batch, for messages."""
    head = table.slice(0, _ROWS_SHOWN_MAX).to_pylist()
    return f"a batch of {counted(table.num_rows, 'row')} that starts with {head}"
