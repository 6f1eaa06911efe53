"""Second spellings with arguments of their own give what they say, of rows."""

from __future__ import annotations

import datetime as dt

import pytest

import differential as dd
import timely
from differential import col
from differential.expressions.expression import Expr

ROWS = [
    ("a", 1, 1.0, dt.date(2024, 1, 4), [1, 2], {"x": 5}),
    ("A", 2, float("nan"), dt.date(2024, 1, 5), [], {"y": 6}),
    ("b", 3, None, None, [3], {"x": "seven"}),
]
SCHEMA = "s: string, n: int, f: float?, d: date?, tags: any, map: any"


def rows_of(query: object) -> list[dict[str, object]]:
    """The rows that `query` makes of these, a function of a collection."""

    def build(dataflow: timely.Dataflow) -> None:
        query(dd.input(dataflow, "rows", SCHEMA)).output("out")  # type: ignore[operator]

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert(ROWS)
        flow.seal()
        return dd.to_pylist(flow.output("out").snapshot())


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        (col.n.is_between(1, 3), [True, True, True]),
        (col.n.is_between(1, 3, "left"), [True, True, False]),
        (col.n.is_between(1, 3, "right"), [False, True, True]),
        (col.n.is_between(1, 3, closed="none"), [False, True, False]),
        (col.s.ilike("A%"), [True, True, False]),
        (dd.ilike(col.s, "%A"), [True, True, False]),
        (col.f.is_not_nan(), [True, False, None]),
        (col.f.ne_missing(1.0), [False, True, True]),
        (dd.isnotnull(col.f), [True, True, False]),
        (dd.negate(col.n), [-1, -2, -3]),
        (dd.date_sub(col.d, 3), [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None]),
        (dd.date_sub(col.d, col.n), [dt.date(2024, 1, 3), dt.date(2024, 1, 3), None]),
        (col.tags.getItem(0), [1, None, 3]),
        (col.map.getItem("x"), [5, None, "seven"]),
        (col.map.getField("y"), [None, 6, None]),
        (Expr.contains(col.s, part="a"), [True, False, False]),
    ],
)
def test_an_expression_has_these_values(expression: Expr, values: list[object]) -> None:
    found = rows_of(lambda c: c.select("n", v=expression))
    assert [row["v"] for row in sorted(found, key=lambda row: row["n"])] == values  # type: ignore[arg-type, return-value]


def test_aggregates_have_these_values() -> None:
    (found,) = rows_of(
        lambda c: c.agg(
            count=col.f.count(), sum=col.n.sum(), mean=col.n.mean(), min=col.n.min(), max=col.n.max(),
            last=col.s.max_by(col.n), first=col.s.min_by("n"), var=col.n.var(), pop=dd.var_pop("n"),
            ddof=col.n.var(0), std=col.n.std(), stddev=dd.stddev_pop("n"),
        )
    )  # fmt: skip
    third = pytest.approx(2 / 3)
    assert found == {
        "count": 2, "sum": 6, "mean": 2.0, "min": 1, "max": 3, "last": "b", "first": "a", "var": 1.0,
        "pop": third, "ddof": third, "std": 1.0, "stddev": pytest.approx((2 / 3) ** 0.5),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("order", "first"),
    [
        (dd.asc_nulls_first("f"), "b"),
        (dd.asc_nulls_last(col.f), "a"),
        (col.f.desc_nulls_first(), "b"),
        (dd.desc_nulls_last("f"), "A"),  # NaN is greater than all numbers
        (dd.desc("n"), "b"),
        (dd.asc("n"), "a"),
    ],
)
def test_an_order_begins_with_this_row(order: dd.Expr, first: str) -> None:
    (found,) = rows_of(lambda c: c.order_by(order).first())
    assert found["s"] == first
