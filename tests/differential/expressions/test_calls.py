"""PySpark's functions write what the methods write."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import differential as dd
from differential import col
from differential.errors import ExpressionError
from differential.expressions import calls
from differential.expressions.expression import Expr
from differential.expressions.functions.catalogue import FUNCTIONS

WRITTEN_OTHERWISE = {
    "trim": "strip", "ltrim": "lstrip", "rtrim": "rstrip",
    "regexp_replace": "replace_regex",
    "rlike": "matches", "regexp_extract": "extract", "signum": "sign", "isnan": "is_nan", "dayofmonth": "day",
    "dayofyear": "day_of_year", "weekofyear": "week", "date_add": "add_days", "date_format": "format",
    "array_contains": "has", "array_join": "join", "substring": "slice", "datediff": "date_diff",
}  # fmt: skip


def test_every_function_can_be_called_under_its_name_or_pysparks() -> None:
    called = {WRITTEN_OTHERWISE.get(name, name) for name in calls.__all__}
    assert set(FUNCTIONS) - called == {"field", "title"}, "x.list.field('key'), x.str.title()"
    assert all(getattr(dd, name) is getattr(calls, name) for name in calls.__all__)


@pytest.mark.parametrize(
    ("call", "method"),
    [
        (dd.upper(col.s), col.s.str.upper()),
        (dd.trim(col.s), col.s.str.strip(" ")),
        (dd.trim(col.s, "a"), col.s.str.strip("a")),
        (dd.isnan(col.f), col.f.is_nan().fill_null(False)),
        (dd.substring(col.s, 2, 3), col.s.str.slice(1, 3)),
        (dd.regexp_replace(col.s, "a", "b"), col.s.str.replace_regex("a", "b")),
        (dd.round(col.f, 2), col.f.round(2)),
        (dd.year(col.t), col.t.dt.year()),
        (dd.date_trunc("month", col.t), col.t.dt.date_trunc("month")),
        (dd.datediff(col.d, col.e), col.d.dt.date_diff(col.e)),
        (dd.mod(col.i, 3), col.i % 3),
        (dd.abs(col.i), col.i.abs()),
        (abs(col.i), col.i.abs()),
        (round(col.f), col.f.round()),
        (round(col.f, 2), col.f.round(2)),
        (math.floor(col.f), col.f.floor()),
        (math.ceil(col.f), col.f.ceil()),
        (dd.isnull(col.n), col.n.isNull()),
        (dd.day(col.t), col.t.dt.day()),
    ],
)
def test_a_call_is_the_method(call: Expr, method: Expr) -> None:
    assert call.equals(method)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: dd.upper("name"), r"upper\(col.name\)"),
        (lambda: dd.month("day"), r"month\(col.day\)"),
        (lambda: dd.date_trunc("month", "day"), r"date_trunc\(col.day, 'month'\)"),
        (lambda: dd.substring("name", 1, 2), r"substring\(col.name\)"),
        (lambda: dd.isnull("two words"), r"isnull\(col\('two words'\)\)"),
        (lambda: dd.mod("n", 2), r"mod\(col.n\)"),
        (lambda: dd.abs("n"), r"abs\(col.n\)"),
        (lambda: dd.coalesce("n", 0), r"coalesce\(col.n, 0\)"),
        (lambda: dd.least("n", "m"), r"least\(col.n, 'm'\)"),
        (lambda: dd.nullif("n", "-"), r"nullif\(col.n\)"),
        (lambda: dd.concat("a", "b"), r"concat\(col.a, 'b'\)"),
    ],
)
def test_a_call_of_nothing_but_texts_says_how_a_column_is_written(
    call: Callable[[], Expr], meant: str
) -> None:
    """In PySpark they would be names of columns; here they would be the same in every row, unnoticed."""
    with pytest.raises(ExpressionError, match=rf"is a text.\n  Of the column write {meant}; of a text"):
        call()


def test_a_call_with_texts_beside_a_column_takes_them_as_they_are() -> None:
    assert dd.concat(col.s, "x").equals(dd.concat(col.s, dd.lit("x")))
    assert dd.coalesce(dd.lit("a"), "b").equals(dd.lit("a").fill_null("b"))
