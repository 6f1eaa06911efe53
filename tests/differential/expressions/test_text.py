"""Expressions in print: as written, with the parentheses that are needed; what is printed is read back."""

from __future__ import annotations

import pytest

from differential.expressions.expression import Expr, col, lit, max_of, when


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (col.src, "col.src"),
        (col("two words"), "col('two words')"),
        (col.a + col.b * 2 - 1, "col.a + col.b * 2 - 1"),
        ((col.a + col.b) * -2, "(col.a + col.b) * -2"),
        (col.a - (col.b - 1), "col.a - (col.b - 1)"),
        (5 // -col.a % 2, "5 // -col.a % 2"),
        ((col.a > 1) & ~(col.b == "x") | col.c, "(col.a > 1) & ~(col.b == 'x') | col.c"),
        ((col.a == col.b) == col.c, "(col.a == col.b) == col.c"),
        (~col.a.is_null(), "col.a.is_not_null()"),
        ((col.a + 1).abs().is_in([1, 2]), "(col.a + 1).abs().is_in([1, 2])"),
        (lit("x").is_null(), "lit('x').is_null()"),
        (when(col.a > 0).then(1).when(col.b).then(2), "when(col.a > 0).then(1).when(col.b).then(2)"),
        (when(col.a).then(1).otherwise(3) + 1, "when(col.a).then(1).otherwise(3) + 1"),
        (max_of(col.a, 0).cast("float?").fill_null(0.5), "max_of(col.a, 0).cast('float?').fill_null(0.5)"),
        (lit(None, "int"), "lit(None, 'int?')"),
        (lit([1, None], "any"), "lit((1, None), 'any')"),
    ],
)  # fmt: skip
def test_print_as_written(expr: Expr, text: str) -> None:
    assert expr.describe() == repr(expr) == text
    again = eval(text, {"col": col, "lit": lit, "when": when, "max_of": max_of})
    assert again.equals(expr)
    assert hash(again) == hash(expr)
