"""Expressions are data; misuse is refused where it is written."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from differential import Collection
from differential import input as input_of
from differential.columns.schema import Schema
from differential.errors import ExpressionError
from differential.expressions.expression import DEPTH_MAX, Expr, col, min_of, when
from timely import Dataflow


def test_print_expressions_are_immutable_data_that_can_be_copied_and_sent() -> None:
    expr = when(col.a > 1).then(col.b)
    assert copy.deepcopy(expr).equals(expr)
    assert pickle.loads(pickle.dumps(expr)).equals(expr)
    assert expr.columns() == {"a", "b"}
    with pytest.raises(AttributeError):
        expr.op = "+"  # type: ignore[misc]


def test_type_an_expression_without_end_is_refused_where_it_is_written() -> None:
    x: Expr = col.x
    with pytest.raises(ExpressionError, match=r"131,071 .*\(.*test_expression.py:\d+\).*100,000"):
        for _ in range(60):
            x = x + x
    assert x.size == 2**16 - 1, "what is shared counts as often as it would be written"


def test_type_an_expression_nested_too_deep_is_refused_where_it_is_written() -> None:
    x: Expr = col.x
    with pytest.raises(ExpressionError, match=r"151 operators within .*\(.*test_expression.py:\d+\).*150"):
        for _ in range(3_000):
            x = x + 1
    chosen: Expr = col.x
    for number in range(DEPTH_MAX - 2):  # what is refused last takes most of the stack
        chosen = when(col.x == number).then(number).otherwise(chosen)
    assert chosen.describe().count("when") == DEPTH_MAX - 2
    assert str(chosen.type_in(Schema.of("x: int"))) == "int"


def test_type_misuse_is_refused_where_it_is_written() -> None:
    with pytest.raises(ExpressionError, match=r"test_\w+.py:\d+.*\n.*& for and"):
        assert (col.a == 1) and (col.b == 2)
    with pytest.raises(ExpressionError, match="cannot be iterated"):
        list(col.a)
    with pytest.raises(ExpressionError, match="lacks its then"):
        _ = col.a + when(col.b)  # type: ignore[operator]
    with pytest.raises(ExpressionError, match="otherwise.* already"):
        when(col.a).then(1).otherwise(2).otherwise(3)  # type: ignore[attr-defined]
    with pytest.raises(ExpressionError, match="no constant"):
        _ = col.a + [1]  # type: ignore[operator]
    with pytest.raises(ExpressionError, match="out of range"):
        _ = col.a + 2**63
    with pytest.raises(ExpressionError, match="needs a type"):
        _ = col.a == None  # noqa: E711
    with pytest.raises(ExpressionError, match="at least one"):
        min_of()


@pytest.mark.parametrize(
    "misuse",
    [
        lambda rows: list(col),
        lambda rows: rows.select(*col),
        lambda rows: rows.group_by(col),
        lambda rows: rows.drop(col),
        lambda rows: rows.join(rows, on=col),
        lambda rows: "x" in col,
    ],
)
def test_type_the_bare_name_of_all_columns_is_not_iterated_without_end(
    misuse: Callable[[Collection], object],
) -> None:
    with pytest.raises(ExpressionError, match=r"^col \(.*test_expression.py:\d+\)"):
        misuse(input_of(Dataflow("misused"), "rows", "x: int"))


def test_type_a_column_is_named_by_a_text() -> None:
    for name in (0, None, ("x", "y"), slice(2)):
        with pytest.raises(
            ExpressionError, match=r"test_expression.py:\d+\): the name of a column is a text"
        ):
            col[name]  # type: ignore[index]
