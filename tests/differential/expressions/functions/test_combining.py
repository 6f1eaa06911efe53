"""A function of several columns runs once for each different combination of their values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from expression_values import values_of

from differential.columns.column_types import array_of, integer
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.expressions.compiled import column_at
from differential.expressions.expression import Expr, col, lit
from differential.expressions.functions.combining import combined_run, numbered, python_values
from differential.expressions.functions.families.elements import array_function, of_nulls
from differential.expressions.functions.function import ANY_KIND, LACKS, Param


def test_it_runs_once_for_each_combination_and_rows_get_their_own_result() -> None:
    calls: list[tuple[object, ...]] = []

    def paired(*values: object) -> object:
        calls.append(values)
        return LACKS if values == (2, 2) else values

    pair = of_nulls(
        array_function(
            "pair", (Param("v", ANY_KIND),), lambda types, constants: array_of(integer), paired, "."
        ),
        many=True,
    )
    symbols = SymbolTable()
    parts = [column_at(integer.or_null(), 1, 0), column_at(integer, 2, 2)]
    words = np.array([[1, 0, 1, 1, 0, 1], [1, 0, 2, 1, 0, 2], [1, 1, 2, 1, 1, 3]])
    values, valid = combined_run(pair, parts, [], array_of(integer.or_null()), symbols, lambda *_: None)(
        words
    )
    assert sorted(calls, key=repr) == [(1, 1), (2, 2), (2, 3), (None, 1)]
    assert valid is not None and valid.tolist() == [True, True, False, True, True, True]
    assert symbols.lookup(values[valid]) == [(1, 1), (None, 1), (1, 1), (None, 1), (2, 3)]


def test_no_rows_nulls_alone_and_constants() -> None:
    schema = Schema.of("a: array<int>?, i: int?")

    def of(expr: Expr, *rows: tuple[object, ...]) -> list[object]:
        return values_of(expr, list(rows), schema)

    assert of(col.a[0]) == [] and of(col.a[0], (None, 1)) == [None]
    assert of(lit([5, 6], "array<int>")[1], (None, 1), ([1], 2)) == [6, 6]
    assert of(lit([5, 6], "array<int>")[col.i], (None, 1), ([1], None)) == [6, None]


def test_words_are_numbered_and_have_values() -> None:
    distinct, indices = numbered(np.array([7, 5, 7]), np.array([True, False, True]))
    assert distinct.tolist() == [7] and indices[[0, 2]].tolist() == [0, 0]
    assert python_values(distinct, integer, None) == [7]
    assert pa.__version__
