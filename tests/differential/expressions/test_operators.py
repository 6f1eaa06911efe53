"""Operators and null: as in SQL, and zero words below a computed null."""

from __future__ import annotations

import datetime as dt

from expression_values import evaluate

from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Column, Schema
from differential.columns.symbols.table import SymbolTable
from differential.expressions.expression import Expr, col, lit, min_of, when

SCHEMA = Schema.of(
    "i: int, n: int?, f: float, g: float?, b: bool, c: bool?, t: timestamp, s: string, z: string?"
)


NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)


def values_of(expr: Expr, rows: list[Row], schema: Schema = SCHEMA) -> list[object]:
    """The values of `expr` in each row, as Python values."""
    symbols = SymbolTable()
    words = evaluate(expr, encode_rows(schema, rows, symbols), schema, symbols)
    result = Schema((Column("value", expr.type_in(schema)),))
    return [value for (value,) in decode_rows(result, words, symbols)]


ROW: Row = (7, None, 0.5, None, True, None, NOON, "x", None)


def test_null_propagates_and_conditions_follow_sql() -> None:
    yes, no, null = lit(True), lit(False), lit(None, "bool")
    table = {
        yes & null: None, no & null: False, null & null: None, null & no: False,
        yes | null: True, no | null: None, null | yes: True, ~null: None,
        col.n + 1: None, col.n == col.n: None, col.n.is_null(): True, col.n.is_in([1]): None,
        col.z == "x": None, col.i.is_null(): False, col.n.fill_null(col.i): 7, min_of(col.i, col.n): None,
        when(col.c).then(1).otherwise(2): 2, when(col.b).then(col.n).otherwise(1): None,
        when(no).then(1): None,
        col.c & no: False, col.c | yes: True, col.b & col.c: None,
    }  # fmt: skip
    for expr, expected in table.items():
        assert values_of(expr, [ROW]) == [expected], expr


def test_a_null_constant_is_filled_by_what_may_fail() -> None:
    rows = [ROW, (9, *ROW[1:])]
    assert values_of(lit(None, "int").fill_null(col.i * 2), rows) == [14, 18]
    assert values_of((lit(1) + lit(None, "int")).fill_null(col.n + 1), rows) == [None, None]


def test_null_words_are_zero_below_a_computed_null() -> None:
    schema = Schema.of("n: int?, g: float?")
    words = encode_rows(schema, [(None, None), (1, 2.0)], None)
    assert evaluate(col.n + 5, words, schema)[:, 0].tolist() == [0, 0]
    assert evaluate(col.g * 2 + 1, words, schema)[:, 0].tolist() == [0, 0]
