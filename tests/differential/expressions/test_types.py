"""Types of expressions: what mixes with what; errors name the operator, its operands and the user's line."""

from __future__ import annotations

import datetime as dt

import pytest

from differential.columns.schema import Schema
from differential.errors import ExpressionError
from differential.expressions.expression import Expr, col, least, min_of, when

SCHEMA = Schema.of(
    "i: int, n: int?, f: float, g: float?, b: bool, c: bool?, t: timestamp, s: string, z: string?, x: any"
)


@pytest.mark.parametrize(
    ("expr", "type_"),
    [
        (col.i + 1, "int"),
        (col.i + col.f, "float"),
        (col.i / 2, "float"),
        (col.i // col.n, "int?"),
        (col.t - col.t, "int"),
        (col.t + dt.timedelta(seconds=1), "timestamp"),
        (col.n == 1, "bool?"),
        (col.n.is_null(), "bool"),
        (col.n.fill_null(0), "int"),
        (col.n.fill_null(0.5), "float"),
        (col.n.cast("float"), "float?"),
        (min_of(col.i, col.g), "float?"),
        (when(col.b).then(1), "int?"),
        (when(col.b).then(1).otherwise(0.5), "float"),
        (col.z.is_in(["x"]), "bool?"),
        (col.s < "a", "bool"),
        (min_of(col.s, col.z), "string?"),
        (least(col.s, col.z), "string"),
        (col.s.try_cast(int), "int?"),
        (col.s.cast("decimal(4, 2)?"), "decimal(4, 2)?"),
    ],
)
def test_type_of_results(expr: Expr, type_: str) -> None:
    assert str(expr.type_in(SCHEMA)) == type_


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        (col.j + 1, r"no column 'j' \(.*test_\w+.py:\d+\); there are: i: int"),
        (col.zz == "a", "Did you mean 'z'"),
        (
            col.s + 1,
            r"in col.s \+ 1 \(.*test_\w+.py:\d+\): \+ takes numbers.*col.s is string, 1 is int",
        ),
        (col.x < col.x, r"< needs an order; .*cast\('int'\)"),
        (min_of(col.x, col.x), "min_of needs an order"),
        (col.i == "a", "== takes values of one type; col.i is int, 'a' is string"),
        (col.i > "3", r"> takes values of one type; col.i is int, '3' is string\. Write 3, without quotes"),
        (col.i & col.b, "& takes conditions"),
        (~col.i, "~ takes conditions"),
        (-col.b, "- takes a number"),
        (col.b.cast("date"), "cast is not possible; bool can become: float, int, decimal, string, any"),
        (when(col.i).then(1), "when takes conditions, of type bool; col.i is int"),
        (when(col.b).then(1).otherwise("x"), "when takes values of one type; 1 is int, 'x' is string"),
        (col.t * 2, r"\* takes numbers, or timestamps and microseconds"),
        (col.t + "1 hour", r"microseconds: a length of time is dt\.timedelta\(hours=1\)"),
    ],
)
def test_type_errors_name_the_operator_its_operands_and_the_line(expr: Expr, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        expr.type_in(SCHEMA)
