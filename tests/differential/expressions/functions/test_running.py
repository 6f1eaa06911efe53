"""How functions run: once per different value, without looking below nulls, over constants at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from expression_values import values_of
from hypothesis import given
from hypothesis import strategies as st

from differential import Schema, col, lit, when
from differential.columns.column_types import string
from differential.columns.rows import Row
from differential.columns.symbols.table import SymbolTable
from differential.expressions.compiled import column_at
from differential.expressions.evaluation import Compiler
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.functions.running import function_run, ranks


def test_a_function_sees_each_different_string_once() -> None:
    seen: list[pa.Array] = []

    def watched(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
        seen.append(columns[0])
        return columns[0]

    symbols = SymbolTable()
    words = symbols.intern(["a", "b", "a", "a"]).reshape(1, -1)
    function = replace(FUNCTIONS["upper"], arrow=watched)
    run = function_run(function, [column_at(string, 0, 0)], [], string, symbols, _never)
    values, valid = run(words)
    assert values.tolist() == words[0].tolist() and valid is None
    assert [array.to_pylist() for array in seen] == [["a", "b"]]


def _never(words: object, failing: object, why: str) -> None:
    raise AssertionError(why)


def test_what_lies_below_a_null_is_not_looked_up() -> None:
    schema = Schema.of("z: string?, b: bool")
    rows: list[Row] = [(None, True), ("x", False)]
    assert values_of(when(col.b).then(col.z).otherwise("y").str.upper(), rows, schema) == [None, "Y"]
    assert values_of(col.z < "y", rows, schema) == [None, True]
    assert values_of(when(col.b).then(col.z.str.upper()), rows, schema) == [None, None]


def test_constants_are_worked_out_when_the_expression_is_compiled() -> None:
    symbols = SymbolTable()
    compiled = Compiler(Schema.of("i: int"), None, symbols).compile(lit("ab").str.upper())
    assert compiled.constant is not None
    assert symbols.lookup_one(int(compiled.constant[0])) == "AB"
    assert "pattern" not in [symbols.lookup_one(word) for word in list(symbols._values)]


def test_no_rows_are_no_problem() -> None:
    schema = Schema.of("z: string?")
    for expr in (col.z.str.upper(), col.z.try_cast("int"), col.z.str.split(","), col.z < "a"):
        assert values_of(expr, [], schema) == []
    assert values_of(col.z.str.upper(), [(None,)] * 3, schema) == [None] * 3


@given(st.lists(st.text(max_size=3), min_size=1), st.lists(st.text(max_size=3), min_size=1))
def test_ranks_have_the_order_of_the_values(left: list[str], right: list[str]) -> None:
    symbols = SymbolTable()
    columns = [symbols.intern(left), symbols.intern(right), np.asarray(symbols.intern_one("m"))]
    numbers = ranks(columns, [None, None, None], symbols)
    assert [array.shape for array in numbers] == [array.shape for array in columns]
    flat = [*numbers[0].tolist(), *numbers[1].tolist(), int(numbers[2])]
    values = [*left, *right, "m"]
    for one, a in zip(flat, values, strict=True):
        for other, b in zip(flat, values, strict=True):
            assert (one < other) == (a < b) and (one == other) == (a == b)
