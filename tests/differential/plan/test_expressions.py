"""expressions.py: expressions and schemas as plain data.

law_*       back and forth is the same expression; equal expressions have equal data
refused_*   what is no expression
"""

from __future__ import annotations

import datetime as dt

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential import Schema, col, lit, max_of, min_of, when
from differential.errors import SchemaError
from differential.expressions.expression import Expr
from differential.plan.expressions import expr_data, expr_of, schema_data, schema_of

EXPRESSIONS: list[Expr] = [
    col.a,
    col("a b: c"),
    lit(1),
    lit(1.5),
    lit(True),
    lit("text"),
    lit(b"bytes"),
    lit(None, "int"),
    lit([1, {"a": (2,)}], "any"),
    lit(dt.datetime(1234, 5, 6, 7, 8, 9, 123_456)),
    lit(dt.timedelta(seconds=3)),
    lit(float("nan")),
    lit(-(2**63)),
    col.a + 1 - col.b * 2,
    -abs(col.a // 3 % 5) / 2,
    (col.a == 1) & ~(col.b != 2) | (col.a < col.b) & (col.a >= 4),
    col.a.is_null() & col.b.is_not_null(),
    col.a.is_in([1, 2, 3]),
    col.a.fill_null(0).cast("float"),
    min_of(col.a, 1, max_of(col.b, 2)),
    when(col.a > 1).then(1).when(col.b > 2).then(2).otherwise(3),
    when(col.a > 1).then("x"),
]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=repr)
def test_law_back_and_forth_is_the_same(expr: Expr) -> None:
    packed = msgpack.packb(expr_data(expr))
    again = expr_of(msgpack.unpackb(packed))
    assert again.equals(expr) and type(again) is type(expr)
    assert msgpack.packb(expr_data(again)) == packed


def test_law_different_expressions_have_different_data() -> None:
    others = [lit(1, "float"), lit(0), lit(False), lit(0.0), lit(-0.0), col.a + 1, 1 + col.a, col.a + 1.0]
    packed = [msgpack.packb(expr_data(expr)) for expr in (*EXPRESSIONS, *others)]
    assert len(set(packed)) == len(packed)


def test_law_a_constant_of_two_types_is_two_constants() -> None:
    pairs = [(lit(1) + lit(1.0)), (lit(1) == lit(True)), (lit(0.0) == lit(-0.0))]
    for pair in pairs:
        assert repr(expr_of(expr_data(pair))) == repr(pair)


@given(st.integers(1, 15))
def test_law_what_is_shared_is_said_once(doublings: int) -> None:
    expr: Expr = col.x
    for _ in range(doublings):
        expr = expr + expr
    assert len(expr_data(expr)) == doublings + 1


def test_law_what_was_written_twice_is_said_once() -> None:
    assert expr_data((col.a + 1) * (col.a + 1)) == [
        ["col", "a"], ["lit", "int", 1], ["+", None, 0, 1], ["*", None, 2, 2],
    ]  # fmt: skip


def test_law_schemas_back_and_forth_are_the_same() -> None:
    schema = Schema.of("a: int, b: float?, c: string, d: any, e: timestamp?, f: bytes, g: bool")
    assert schema_of(msgpack.unpackb(msgpack.packb(schema_data(schema)))) == schema


@pytest.mark.parametrize(
    "data",
    [
        None, [], [[]], [["col"]], [["col", 1]], [["col", "a", "b"]], [["lit", "int"]], [["lit", "int", "x"]],
        [["lit", "int", True]], [["lit", "nothing", 1]], [["+", None, 0, 1]], [["col", "a"], ["+", None, 1]],
        [["col", "a"], ["+", None, -1]], [["col", "a"], ["+", None, True]], [["col", "a"], ["%%", None, 0]],
        [["col", "a"], ["cast", "no type", 0]], [["col", "a"], ["cast", 7, 0]], [["col", "a"], ["abs"]],
        [[1, 2]], ["col"], [["col", "a"], ["abs", None]], {"a": 1},
    ],
    ids=repr,
)  # fmt: skip
def test_refused_is_what_is_no_expression(data: object) -> None:
    with pytest.raises(SchemaError):
        expr_of(data)


@pytest.mark.parametrize("data", [None, [[]], [["a"]], [["a", "no type"]], [["a", 1]], [["a", "int"]] * 2])
def test_refused_is_what_is_no_schema(data: object) -> None:
    with pytest.raises(SchemaError):
        schema_of(data)
