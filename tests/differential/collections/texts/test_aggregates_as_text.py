"""aggregates_as_text.py: aggregates as SQL in a text, in groups and over all rows, kept current."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import differential as dd
import timely
from differential import Collection, col
from differential.errors import SchemaError, SqlError
from timely import Dataflow


def query(flow: Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: string, x: int?, y: int")
    groups = rows.group_by("k")
    groups.agg(
        dd.expr("sum(x * y) AS t"), dd.expr("avg(x)"), n=dd.count(), m=dd.expr("k || (max(y) - min(y))")
    ).output("groups")
    rows.selectExpr("sum(x)", "count(*) AS n", "sum(y) / count(*) AS mean").output("all")
    groups.agg(dd.expr("k || '!' AS loud")).output("keys")
    groups.agg(dd.expr("count(DISTINCT y) AS d"), dd.expr("count(*) FILTER (WHERE y > 2) AS f")).output(
        "more"
    )


def test_aggregates_as_text_follow_the_rows() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(query)

        def answers() -> dict[str, list[tuple[object, ...]]]:
            return {
                name: sorted(tuple(row.values()) for row in flow.output(name).snapshot().to_pylist())
                for name in ("groups", "all", "keys", "more")
            }

        flow.input("rows").insert([("a", 1, 2), ("a", None, 3), ("b", 5, 7)])
        flow.seal()
        assert answers() == {
            "groups": [("a", 2, 1.0, 2, "a1"), ("b", 35, 5.0, 1, "b0")],
            "all": [(6, 3, 4.0)],
            "keys": [("a", "a!"), ("b", "b!")],
            "more": [("a", 2, 1), ("b", 1, 1)],
        }
        flow.input("rows").remove([("b", 5, 7), ("a", 1, 2)])
        flow.seal()
        assert answers() == {
            "groups": [("a", None, None, 1, "a0")],
            "all": [(None, 1, 3.0)],
            "keys": [("a", "a!")],
            "more": [("a", 1, 1)],
        }
        names = flow.output("all").snapshot().schema.names
        assert names == ["sum(x)", "n", "mean"]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda c: c.selectExpr("sum(x)", "y"), r"<sql>:1:1: y is no key.*write max\(y\)"),
        (lambda c: c.group_by("k").agg(dd.expr("x + 1")), "x is no key, and in no aggregate"),
        (lambda c: c.group_by("k").agg(dd.expr("sum(z)")), "<sql>:1:5: there is no column z"),
        (lambda c: c.group_by("k").agg(dd.expr("sum(x) AS k")), "'k' is a key already"),
        (
            lambda c: c.group_by("k").agg(dd.expr("sum(x)"), dd.sum("x")),
            r"two aggregates are called 'sum\(x\)'",
        ),
        (lambda c: c.rollup("k").agg(dd.expr("sum(x)")), "rollup, cube and grouping_sets take aggregates as"),
        (lambda c: c.group_by("k").agg(dd.expr("stddev(DISTINCT x)")), "is of a whole query"),
        (lambda c: c.filter("sum(x) > 1"), "the aggregate .* cannot stand"),
        (lambda c: c.agg(dd.sum(col.x + 1)), "give each aggregate a name"),
    ],
)
def test_refused_texts_over_groups(build: Callable[[Collection], object], said: str) -> None:
    rows = dd.input(Dataflow("query"), "rows", "k: string, x: int?, y: int")
    with pytest.raises((SqlError, SchemaError), match=said):
        build(rows)
