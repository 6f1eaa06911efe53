"""Expressions over rows of every type, for tests: what values does one have?"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Column, Schema
from differential.columns.symbols.table import SymbolTable
from differential.expressions.evaluation import Compiler
from differential.expressions.expression import Expr

__all__ = ["EVERY", "NOON", "ROWS", "evaluate", "values_of"]

NOON = dt.datetime(2024, 2, 29, 12, 34, 56, 789, tzinfo=dt.UTC)
EVERY = Schema.of(
    "i: int, n: int?, f: float, t: timestamp, d: date, e: date?, p: decimal(10, 2), q: decimal(6, 3)?, "
    "s: string, z: string?, x: any, r: bytes, b: bool, l: array<int?>, k: struct<a: int, b: string?>, "
    "m: map<string, int>"
)
ROWS: list[Row] = [
    (7, None, 0.5, NOON, dt.date(2024, 2, 29), None, Decimal("12.34"), Decimal("1.005"), "Ada Lovelace", None,
     (1, "a", {"k": 2}), b"ab", True, (7, None, 7), {"a": 1, "b": None}, {"u": 1, "v": 2}),
    (-3, 2, -2.5, NOON, dt.date(1969, 12, 31), dt.date(2000, 1, 1), Decimal("-0.05"), None, "émile zola",
     "zz", {"k": "v"}, b"\xff", False, (), {"a": 2, "b": "x"}, {}),
]  # fmt: skip


def evaluate(expr: Expr, words: Int64s, schema: Schema, symbols: SymbolTable | None = None) -> Int64s:
    """The words of `expr` in every row of `words`, int64[schema.width or more, n]: int64[type.words, n]."""
    compiled = Compiler(schema, None, symbols).compile(expr)
    out = np.empty((compiled.type.words, words.shape[1]), dtype=np.int64)
    compiled.writer()(words, out)
    return out


def values_of(expr: Expr, rows: list[Row] | None = None, schema: Schema = EVERY) -> list[object]:
    """The values of `expr` in each row, as Python values."""
    symbols = SymbolTable()
    words = evaluate(expr, encode_rows(schema, ROWS if rows is None else rows, symbols), schema, symbols)
    symbols.check_invariants()
    result = Schema((Column("value", expr.type_in(schema)),))
    return [value for (value,) in decode_rows(result, words, symbols)]
