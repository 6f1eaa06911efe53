"""raising.py: which expressions may have no value for a row, known before anything runs.

safe_*    what is said never to fail has a value for every row
risky_*   what may fail is said to, wherever it stands in an expression
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

import differential as dd
from differential.columns.rows import Row, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import RowError
from differential.expressions.expression import Expr, col, when
from differential.linear.chain import LinearChain
from differential.linear.failures.raising import can_raise

SCHEMA = Schema.of(
    "i: int, j: int?, f: float, g: float?, s: string?, d: decimal(18, 2), e: decimal(18, 6)?, t: date, "
    "w: decimal(38, 2)"
)
LARGEST = Decimal("9999999999999999.99")
WIDEST = Decimal("9" * 36 + ".99")
ROWS: list[Row] = [
    (0, None, 0.0, None, None, Decimal(0), None, dt.date(1, 1, 1), Decimal(0)),
    (
        -(2**63),
        -1,
        float("inf"),
        float("nan"),
        "",
        -LARGEST,
        Decimal("0.000001"),
        dt.date(9999, 12, 31),
        WIDEST,
    ),
    (
        2**63 - 1,
        2**63 - 1,
        -0.0,
        -1e308,
        "x",
        LARGEST,
        Decimal("999999999999.999999"),
        dt.date(1970, 1, 1),
        -LARGEST,
    ),
    (-1, 0, 1e308, 5e-324, "9" * 30, Decimal("-0.01"), Decimal(-1), dt.date(2024, 2, 29), LARGEST),
]

SAFE: list[Expr] = [
    col.i,
    col.i == col.j,
    (col.i < col.j) & ~(col.f > col.g) | col.s.is_null(),
    col.i.is_in([1, 2]),
    col.f + col.g,
    col.f * col.f / col.g - col.f,
    col.f // col.g,
    col.f % col.g,
    -col.f,
    abs(col.g),
    col.j.fill_null(col.i),
    dd.min_of(col.i, col.j),
    when(col.i > 0).then(col.i).otherwise(col.j),
    col.s.try_cast("int"),
    col.i.cast("float"),
    col.i.cast("int?"),
    col.s.fill_null("none"),
    dd.max_of(col.f, col.g),
    dd.max_of(col.d, col.e, col.i),
    col.d + col.d,
    col.d * 3,
    -col.w,
    abs(col.d),
    col.w == col.e,
    col.d.cast("int"),
    col.d.cast("decimal(19, 2)"),
    when(col.d > col.i).then(col.w).otherwise(col.i),
]

RISKY: list[tuple[Expr, int]] = [
    (col.i + 1, 2),
    (col.i - 1, 1),
    (col.i * 2, 1),
    (1 // col.i, 0),
    (1 % col.i, 0),
    (-col.i, 1),
    (abs(col.i), 1),
    (col.j // col.j, 3),
    (col.s.cast("int"), 1),
    (col.f.cast("int"), 1),
    (col.w + col.w, 1),
    (col.w * 10, 1),
    (col.d / col.d, 0),
    (col.d % col.d, 0),
    (col.w.cast("int"), 1),
    (col.d.cast("decimal(18, 3)"), 1),
]


def _run(expr: Expr, row: Row) -> None:
    symbols = SymbolTable()
    words = np.zeros((SCHEMA.width + 2, 1), np.int64)
    words[:-2] = encode_rows(SCHEMA, [row], symbols, "rows")
    words[-1] = 1
    LinearChain.over(SCHEMA).select({"x": expr}).compile(symbols)(words)


@pytest.mark.parametrize("expr", SAFE, ids=lambda expr: expr.describe())
def test_safe_expressions_have_a_value_for_every_row(expr: Expr) -> None:
    assert not can_raise(expr, SCHEMA)
    assert LinearChain.over(SCHEMA).select({"x": expr}).risky is None
    for row in ROWS:
        _run(expr, row)


@pytest.mark.parametrize(("expr", "row"), RISKY, ids=lambda each: getattr(each, "describe", lambda: each)())
def test_risky_expressions_are_those_that_fail_on_some_row(expr: Expr, row: int) -> None:
    assert can_raise(expr, SCHEMA) and LinearChain.over(SCHEMA).select({"x": expr}).risky is not None
    with pytest.raises(RowError):
        _run(expr, ROWS[row])


@pytest.mark.parametrize(("expr", "row"), RISKY, ids=lambda each: getattr(each, "describe", lambda: each)())
def test_risky_is_whatever_has_a_risky_part(expr: Expr, row: int) -> None:
    del row
    for whole in (expr.is_null(), expr == expr, when(expr.is_null()).then(1.0).otherwise(col.f) + col.f):
        assert can_raise(whole, SCHEMA)
        assert LinearChain.over(SCHEMA).filter(whole == whole).risky is not None


def test_risky_is_everything_that_computes_where_types_are_not_known() -> None:
    assert can_raise(col.f + col.g) and can_raise(col.f.cast("float"))
    assert not can_raise(col.f == col.g) and not can_raise(col.f)
