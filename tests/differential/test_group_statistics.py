"""group_statistics.py: which types the results have, and what has none."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import differential as dd
import timely
from differential import Collection, col
from differential.errors import ExpressionError
from timely.building.dataflow import Dataflow


def _rows() -> Collection:
    return dd.input(
        Dataflow("tested"), "rows", "k: int, i: int, d: decimal(9, 2)?, s: string, t: timestamp, x: any"
    )


def test_types_are_those_of_the_values_or_floats() -> None:
    found = _rows().group_by("k").agg(
        median=dd.median("i"),
        of_null=dd.percentile("d", 0.1),
        one=dd.percentile_disc("t", 0.5),
        mode=dd.mode("s"),
        text=dd.string_agg("s"),
        total=dd.sum_distinct("d"),
        mean=dd.avg_distinct("d"),
        about=dd.approx_count_distinct("x"),
        r=dd.corr("i", "d"),
        skew=dd.skewness("i"),
    )  # fmt: skip
    types = {column.name: str(column.type) for column in found.schema}
    assert types == {
        "k": "int", "median": "float", "of_null": "float?", "one": "timestamp", "mode": "string",
        "text": "string", "total": "decimal(19, 2)?", "mean": "decimal(13, 6)?", "about": "int",
        "r": "float?", "skew": "float?",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: dd.percentile("i", 1.5), "a number from 0 to 1"),
        (lambda: dd.percentile("i", True), "a number from 0 to 1"),
        (lambda: dd.percentile_disc("i", math.nan), "a number from 0 to 1"),
        (lambda: dd.percentile("i", [0.5]), "For several percentiles name each"),  # type: ignore[arg-type]
        (lambda: dd.percentile("i"), r"percentile\('x', 0.95\)"),  # type: ignore[call-arg]
        (lambda: dd.string_agg("s", 1), "a separator is text"),  # type: ignore[arg-type]
        (lambda: dd.string_agg("s", ",", by="i", distinct=True), "Leave out by="),
        (lambda: dd.approx_count_distinct("i", 0), "for exact numbers write count_distinct"),
        (lambda: _rows().group_by("k").agg(p=dd.percentile("t", 0.5)), "write percentile_disc"),
        (lambda: _rows().group_by("k").agg(p=dd.percentile_disc("s", 0.5)), "percent_rank"),
        (lambda: _rows().group_by("k").agg(p=dd.string_agg("i")), r"col.i.cast\('string'\)"),
        (lambda: _rows().group_by("k").agg(p=dd.corr("i", "s")), "is of numbers, not of string"),
        (lambda: _rows().group_by("k").agg(p=dd.sum_distinct("s")), "sums are of numbers"),
        (lambda: _rows().group_by("k").agg(p=dd.grouping("k")), "rollup, cube and grouping_sets"),
    ],
)
def test_refused_with_what_to_write(build: Callable[[], object], words: str) -> None:
    with pytest.raises((ExpressionError, dd.SchemaError, TypeError), match=words):
        build()


def test_one_of_the_values_of_any_type_that_is_not_null_if_there_is_one() -> None:
    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, x: any?, s: string?, p: struct<a: int>?")
        some = {f"some_{name}": dd.any_value_of(name) for name in ("x", "s", "p")}
        rows.group_by("k").agg(**some).output("out")
        text = "select any_value(x) as x, any_value(p) as p from rows group by k"
        dd.sql(flow, text, rows=rows).output("sql")

    rows = [
        (1, None, None, None),
        (1, [1, "a"], "z", {"a": 2}),
        (1, {"b": 3}, "y", None),
        (2, None, None, None),
    ]
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(timely.builder(build))
        flow.input("rows").insert(rows)
        for goes in range(3):
            flow.seal(wait=True)
            left = [row for row in rows[goes:] if row[0] == 1]
            one = {row["k"]: row for row in flow.output("out").snapshot().to_pylist()}
            for name, place in (("x", 1), ("s", 2), ("p", 3)):
                there = [row[place] for row in left if row[place] is not None]
                assert one[1][f"some_{name}"] in (there or [None]) and one[2][f"some_{name}"] is None
            expected = [[row["some_x"], row["some_p"]] for row in one.values()]
            of_sql = [[*row.values()] for row in flow.output("sql").snapshot().to_pylist()]
            assert sorted(of_sql, key=repr) == sorted(expected, key=repr)
            flow.input("rows").remove(rows[goes : goes + 1])


def test_correlation_is_as_in_spark_where_columns_do_not_vary() -> None:
    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, x: float?, y: int")
        rows.group_by("k").agg(r=dd.corr("x", "y"), p=dd.corr(col.x * -3, "x")).output("out")

    rows = [(1, 1.0, 1), (1, 2.0, 3), (1, 4.0, 7), (2, 5.0, 1), (2, 5.0, 2), (3, 1.0, 1), (3, None, 2)]
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert([*rows, (4, math.inf, 1), (4, 0.0, 1)])
        flow.seal()
        found = {row["k"]: (row["r"], row["p"]) for row in flow.output("out").snapshot().to_pylist()}
    assert found[1] == (1.0, -1.0) and found[3] == (None, None)
    assert all(map(math.isnan, (*found[2], *found[4])))


def test_about_is_within_the_error_and_stays_so_when_rows_go() -> None:
    """Three standard errors: hashes are the same in every run, and so is the answer."""

    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "x: int")
        rows.agg(wide=dd.approx_count_distinct("x"), fine=dd.approx_count_distinct("x", 0.01)).output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        there = 0
        for count in (10, 1_000, 40_000, 500, 0):
            change = flow.input("rows").insert if count > there else flow.input("rows").remove
            change([(number,) for number in range(min(count, there), max(count, there))])
            there = count
            flow.seal()
            ((wide, fine),) = (row.values() for row in flow.output("out").snapshot().to_pylist())
            assert abs(wide - count) <= 0.15 * count and abs(fine - count) <= 0.03 * count
