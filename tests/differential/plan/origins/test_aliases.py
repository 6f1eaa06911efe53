"""aliases.py: `col("a.x")` is the column x of what `alias("a")` has named, behind operators and joins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import differential as dd
from differential import Collection, col
from differential import functions as F
from differential.errors import ExpressionError, SchemaError
from timely import Dataflow


def sides() -> tuple[Collection, Collection]:
    flow = Dataflow("query")
    rows = dd.input(flow, "rows", "k: int, x: int, day: date")
    return rows.alias("l"), rows.alias("r")


def _joined() -> tuple[Collection, Collection, Collection]:
    left, right = sides()
    return left, right, left.join(right, left.k == right.x)


def _with_dots(build: Callable[[Collection], Collection]) -> bytes:
    left, right = sides()
    return build(left.join(right, col("l.k") == col("r.x"))).node.digest


@pytest.mark.parametrize(
    ("dotted", "owned"),
    [
        (lambda j: j.select("l.k", col("r.x").alias("rx")), lambda a, b, j: j.select(a.k, b.x.alias("rx"))),
        (lambda j: j.filter(col("r.x") > 1), lambda a, b, j: j.filter(b.x > 1)),
        (lambda j: j.filter(col("r.x").isin(1, 2)).select("r.k"),
         lambda a, b, j: j.filter(b.x.isin(1, 2)).select(k=b.k)),
        (lambda j: j.select("l.*", y=col("r.k") + 1), lambda a, b, j: j.select(a.k, a.x, a.day, y=b.k + 1)),
        (lambda j: j.select("r.*"), lambda a, b, j: j.select(k=b.k, x=b.x, day=b.day)),
        (lambda j: j.withColumn("y", F.year(col("r.day"))), lambda a, b, j: j.with_columns(y=F.year(b.day))),
        (lambda j: j.groupBy("r.k").agg(F.sum("l.x").alias("s"), F.max(col("r.x") * 2).alias("m")),
         lambda a, b, j: j.groupBy(b.k).agg(F.sum(a.x).alias("s"), F.max(b.x * 2).alias("m"))),
        (lambda j: j.groupBy((col("r.k") % 2).alias("odd")).agg(n=dd.count()),
         lambda a, b, j: j.groupBy((b.k % 2).alias("odd")).agg(n=dd.count())),
        (lambda j: j.orderBy(col("r.x").desc(), "l.k").limit(3),
         lambda a, b, j: j.orderBy(b.x.desc(), a.k).limit(3)),
        (lambda j: j.filter("r.x > l.x and k = 1"), lambda a, b, j: j.filter((b.x > a.x) & (col.k == 1))),
        (lambda j: j.selectExpr("r.x + 1 AS y", "l.k"), lambda a, b, j: j.select((b.x + 1).alias("y"), a.k)),
        (lambda j: j.drop("r.day"), lambda a, b, j: j.drop(b.day)),
        (lambda j: j.select(dd.when(col("l.x") > 1, col("r.x")).otherwise(0).alias("w")),
         lambda a, b, j: j.select(dd.when(a.x > 1, b.x).otherwise(0).alias("w"))),
    ],
)  # fmt: skip
def test_columns_by_the_name_of_their_side_are_those_of_the_side(
    dotted: Callable[[Collection], Collection],
    owned: Callable[[Collection, Collection, Collection], Collection],
) -> None:
    assert _with_dots(dotted) == owned(*_joined()).node.digest


def test_rows_that_have_a_name_are_a_side_too() -> None:
    left, _ = sides()
    assert left.filter(col("l.x") > 1).select("l.*").schema.names == ("k", "x", "day")
    assert left.select("l.x", "k").schema.names == ("x", "k")
    by_key = left.join(left.select("k", y=col.x).alias("b"), "k")
    assert by_key.select("b.*", "l.x").schema.names == ("k", "y", "x")


def test_a_column_whose_own_name_has_a_dot_comes_first() -> None:
    left, _ = sides()
    dots = left.select(**{"l.x": col.k, "x": col.x})
    assert dots.select("l.x").schema.names == ("l.x",)
    assert dots.filter(col("l.x") > 1).schema.names == ("l.x", "x")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda j: j.select("z.x"), "there is no column 'z.x'"),
        (lambda j: j.select("z.*"), r"there is no column 'z\.\*'"),
        (lambda j: j.select(col("l.nope")), r"'l.nope' \(.*test_aliases.py:\d+\) is none of these rows"),
        (lambda j: j.drop("r.x").filter(col("r.x") > 1), r"'r.x' \(.*test_aliases.py:\d+\) is none of"),
        (lambda j: j.select("l.*", "r.*"), r"two columns are called 'k': name those that you need"),
        (lambda j: j.groupBy("l.k", "r.k").agg(n=dd.count()), "two keys are called 'k'"),
    ],
)
def test_refused_are_sides_and_columns_that_there_are_not(
    wrong: Callable[[Collection], Collection], told: str
) -> None:
    left, right = sides()
    joined = left.join(right, col("l.k") == col("r.x"))
    with pytest.raises((ExpressionError, SchemaError), match=told):
        wrong(joined)
