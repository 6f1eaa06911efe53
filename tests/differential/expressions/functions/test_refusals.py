"""What Python would do with an expression by itself is refused, with the line and what to write."""

from __future__ import annotations

import io
import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from expression_values import values_of

import differential as dd
import timely
from differential import col, lit, when
from differential.errors import ExpressionError
from differential.expressions.expression import Expr
from differential.expressions.functions.refusals import ExprRefusals, ExprText, check_no_bool

HERE = r"\(.*test_refusals\.py:\d+\)"
ROWS = dd.input(timely.Dataflow("refusals"), "rows", "x: int, s: string")


@pytest.mark.parametrize(
    ("misuse", "mend"),
    [
        (lambda: not col.x, "~ for not"),
        (lambda: (col.a > 1) and (col.b > 2), "& for and"),
        (lambda: 1 if col.x else 2, r"when\(…\).then\(…\).otherwise\(…\)"),
        (lambda: col.x in [1, 2], r"col.x.is_in\(\[1, 2\]\)"),
        (lambda: col.a == col.b == col.c, r"\(a == b\) & \(b == c\)"),
        (lambda: 1 < col.x < 3, r"\(a < b\) & \(b < c\)"),  # type: ignore[operator]
        (lambda: max(col.x, col.y), r"dd.max_of\(…\)"),  # type: ignore[type-var]
        (lambda: sorted([col.x, col.y]), r"order_by\(…\)"),  # type: ignore[type-var]
        (lambda: any([col.x > 1]), r"& for and"),
        (lambda: 1 in col.x, r"col.x.list.has\(1\)"),
        (lambda: len(col.s), r"col.s.str.length\(\)"),
        (lambda: int(col.x), r"col.x.cast\('int'\)"),
        (lambda: float(col.x), r"col.x.cast\('float'\)"),
        (lambda: complex(col.x), r"col.x.cast\('float'\)"),
        (lambda: bytes(col.s), r"col.s.cast\('bytes'\)"),
        (lambda: math.sqrt(col.x), r"col.x.sqrt\(\)"),
        (lambda: [1, 2][col.x], r"map\(function, schema\)"),
        (lambda: range(col.x), r"map\(function, schema\)"),
        (lambda: list(col.x), r"explode\('x', type\)"),
        (lambda: operator.xor(col.a, col.b), "x != y of two conditions"),
        (lambda: divmod(col.a, 2), "x // y and x % y"),
        (lambda: f"{col.s}!", r"dd.concat\(col.s, '…'\)"),
        (lambda: f"{col.x:>9}", r"dd.concat\(col.x.cast\('string'\), '…'\)"),
        (lambda: str(col.x) + "!", r"col.x.cast\('string'\)"),
        (lambda: "!" + str(col.x), r"col.x.cast\('string'\)"),
        (lambda: f"{str(col.x)}!", r"col.x.cast\('string'\)"),
        (lambda: lit(str(col.x)), r"col.x.cast\('string'\)"),
        (lambda: col.s == str(col.x), r"col.x.cast\('string'\)"),
        (lambda: ROWS.select(s=str(col.x)), r"col.x.cast\('string'\)"),
    ],
)  # fmt: skip
def test_python_is_not_let_to_answer_for_a_row(misuse: Callable[[], object], mend: str) -> None:
    with pytest.raises(ExpressionError, match=f"{HERE}(.|\n)*{mend}"):
        misuse()


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: ROWS.filter(col.x is None),
        lambda: ROWS.filter(col.x is not None),
        lambda: ROWS.where(col.x > 1, col.x in {1, 2}),
        lambda: ROWS.filter((col.x > 1) & (col.x is None)),
        lambda: ROWS.filter((col.x is None) | (col.x > 1)),
        lambda: ROWS.join(ROWS, on="x", suffix="2", where=isinstance(col.x, int)),
        lambda: ROWS.select(missing=col.x is None),
        lambda: ROWS.with_columns(missing=col.x is None),
        lambda: when(col.x is None).then(0),
        lambda: when(col.x > 1).then(1).when(col.x is None).then(0),
        lambda: dd.if_else(col.x is None, 0, 1),
        lambda: check_no_bool("filter", np.True_),
    ],
)
def test_a_bool_of_python_is_no_condition(misuse: Callable[[], object]) -> None:
    with pytest.raises(ExpressionError, match=rf"{HERE} is given (True|False).*\n.*col.x.is_null\(\).*lit\("):
        misuse()


def test_a_constant_that_is_meant_says_so() -> None:
    assert "filter(True)" in ROWS.filter(lit(True)).explain()
    assert values_of(when(lit(False)).then(1).otherwise(2)) == [2, 2]
    assert values_of((col.i > 0) | lit(True)) == [True, True]
    assert values_of(col.b.fill_null(False)) == [True, False]
    assert values_of(when(col.i > 0).then(True).otherwise(False)) == [True, False]


def test_what_is_printed_can_be_written() -> None:
    for expr in ((col.i > 0) & lit(True), lit(False) | col.b, when(lit(True)).then(col.b == True)):  # noqa: E712
        again = eval(expr.describe(), {"col": col, "lit": lit, "when": when})
        assert isinstance(again, Expr) and again.equals(expr)


def test_an_expression_is_printed_as_before() -> None:
    print(col.x + 1, [col.x], file=(out := io.StringIO()))
    assert out.getvalue() == "col.x + 1 [col.x]\n"
    assert repr(col.x) == str(col.x) == f"{col.x!r}" == "col.x"
    assert isinstance(str(col.x), ExprText) and isinstance(col.x, ExprRefusals)
    with pytest.raises(AssertionError, match=r"col.x > 1"):
        assert [col.x > 1] == []
