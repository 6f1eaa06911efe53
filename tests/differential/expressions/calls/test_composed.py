"""Functions of PySpark that are written with others write what is said of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import differential as dd
from differential import col
from differential.errors import ExpressionError
from differential.expressions.expression import Expr


@pytest.mark.parametrize(
    ("call", "method"),
    [
        (dd.trim(col.s), col.s.str.strip(" ")),
        (dd.trim(col.s, "a"), col.s.str.strip("a")),
        (dd.isnan(col.f), col.f.is_nan().fill_null(False)),
        (dd.substring(col.s, 2, 3), col.s.str.slice(1, 3)),
        (dd.date_trunc("month", col.t), col.t.dt.date_trunc("month")),
        (dd.datediff(col.d, col.e), col.d.dt.date_diff(col.e)),
        (dd.mod(col.i, 3), col.i % 3),
        (dd.abs(col.i), col.i.abs()),
        (dd.isnull(col.n), col.n.is_null()),
        (dd.ltrim(col.s), col.s.str.lstrip(" ")),
        (dd.rtrim(col.s, "a"), col.s.str.rstrip("a")),
        (dd.if_else(col.i > 1, "a", "b"), dd.when(col.i > 1).then("a").otherwise("b")),
        (dd.nullif(col.i, 1), dd.when((col.i != 1).fill_null(True)).then(col.i)),
    ],
)
def test_a_call_is_the_method(call: Expr, method: Expr) -> None:
    assert call.equals(method)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: dd.date_trunc("month", "day"), r"date_trunc\(col.day, 'month'\)"),
        (lambda: dd.substring("name", 1, 2), r"substring\(col.name\)"),
        (lambda: dd.isnull("two words"), r"isnull\(col\('two words'\)\)"),
        (lambda: dd.mod("n", 2), r"mod\(col.n\)"),
        (lambda: dd.abs("n"), r"abs\(col.n\)"),
        (lambda: dd.nullif("n", "-"), r"nullif\(col.n\)"),
    ],
)
def test_a_call_of_nothing_but_texts_says_how_a_column_is_written(
    call: Callable[[], Expr], meant: str
) -> None:
    with pytest.raises(ExpressionError, match=rf"is a text.\n  Of the column write {meant}; of a text"):
        call()


def test_a_unit_of_time_comes_first_and_a_separator_may_be_a_text() -> None:
    with pytest.raises(ExpressionError, match=r"the unit comes first. Write date_trunc\('month', col.t\)"):
        dd.date_trunc(col.t, "month")
    with pytest.raises(ExpressionError, match=r"Of the column write concat_ws\('-', col.s\)"):
        dd.concat_ws("-", "s")


def test_concat_ws_of_texts_says_that_all_of_them_are_columns() -> None:
    with pytest.raises(dd.ExpressionError, match=r"Of the column write concat_ws\('-', col\.a, col\.b\)"):
        dd.concat_ws("-", "a", "b")
