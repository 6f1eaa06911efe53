"""PySpark's functions write what the methods write."""

from __future__ import annotations

import pytest

import differential as dd
from differential import col
from differential.expressions import calls
from differential.expressions.expression import Expr
from differential.expressions.functions.table import FUNCTIONS

WRITTEN_OTHERWISE = {
    "trim": "strip", "ltrim": "lstrip", "rtrim": "rstrip", "initcap": "title",
    "regexp_replace": "replace_regex",
    "rlike": "matches", "regexp_extract": "extract", "signum": "sign", "isnan": "is_nan", "dayofmonth": "day",
    "dayofyear": "day_of_year", "weekofyear": "week", "date_add": "add_days", "date_format": "format",
    "array_contains": "has", "array_join": "join", "substring": "slice", "datediff": "date_diff",
}  # fmt: skip


def test_every_function_can_be_called_under_its_name_or_pysparks() -> None:
    called = {WRITTEN_OTHERWISE.get(name, name) for name in calls.__all__}
    assert set(FUNCTIONS) - called == {"field"}, "a map's field is x.list.field('key')"
    assert all(getattr(dd, name) is getattr(calls, name) for name in calls.__all__)


@pytest.mark.parametrize(
    ("call", "method"),
    [
        (dd.upper(col.s), col.s.str.upper()),
        (dd.trim(col.s), col.s.str.strip()),
        (dd.substring(col.s, 2, 3), col.s.str.slice(1, 3)),
        (dd.regexp_replace(col.s, "a", "b"), col.s.str.replace_regex("a", "b")),
        (dd.round(col.f, 2), col.f.round(2)),
        (dd.year(col.t), col.t.dt.year()),
        (dd.date_trunc("month", col.t), col.t.dt.date_trunc("month")),
        (dd.datediff(col.d, col.e), col.d.dt.date_diff(col.e)),
        (dd.mod(col.i, 3), col.i % 3),
        (dd.abs(col.i), col.i.abs()),
        (dd.isnull(col.n), col.n.isNull()),
        (dd.day(col.t), col.t.dt.day()),
    ],
)
def test_a_call_is_the_method(call: Expr, method: Expr) -> None:
    assert call.equals(method)
