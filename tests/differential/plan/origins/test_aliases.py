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
        (lambda j: j.groupBy(col("r.k").alias("other"), "l.k").agg(
            m=F.max_by("l.x", col("r.x") + 1), c=dd.collect("l.x", by=[col("r.x").desc(), "r.k"])),
         lambda a, b, j: j.groupBy(b.k.alias("other"), a.k).agg(
             m=F.max_by(a.x, b.x + 1), c=dd.collect(a.x, by=[b.x.desc(), b.k]))),
        (lambda j: j.agg(a=dd.covar_pop("l.x", "r.x"), b=dd.corr(col("l.x") + 1, col("r.x") * 2)),
         lambda a, b, j: j.agg(a=dd.covar_pop(a.x, b.x), b=dd.corr(a.x + 1, b.x * 2))),
        (lambda j: j.groupBy((col("r.k") % 2).alias("odd")).agg(n=dd.count()),
         lambda a, b, j: j.groupBy((b.k % 2).alias("odd")).agg(n=dd.count())),
        (lambda j: j.orderBy(col("r.x").desc(), "l.k").limit(3),
         lambda a, b, j: j.orderBy(b.x.desc(), a.k).limit(3)),
        (lambda j: j.filter("r.x > l.x and k = 1"), lambda a, b, j: j.filter((b.x > a.x) & (col.k == 1))),
        (lambda j: j.selectExpr("r.x + 1 AS y", "l.k"), lambda a, b, j: j.select((b.x + 1).alias("y"), a.k)),
        (lambda j: j.drop("r.day"), lambda a, b, j: j.drop(b.day)),
        (lambda j: j.selectExpr("r.*", "l.k + 1 AS n"),
         lambda a, b, j: j.select(k=b.k, x=b.x, day=b.day, n=a.k + 1)),
        (lambda j: j.over("l.k", by=[col("r.x").desc(), "r.k"]).with_columns(
            n=dd.lag("r.x", 1, col("l.x")), s=dd.sum(col("r.x") * 2)),
         lambda a, b, j: j.over(a.k, by=[b.x.desc(), b.k]).with_columns(
             n=dd.lag(b.x, 1, col.x), s=dd.sum(b.x * 2))),
        (lambda j: j.top_k(2, by=col("r.x").desc(), keys="l.k"),
         lambda a, b, j: j.top_k(2, by=b.x.desc(), keys=a.k)),
        (lambda j: j.group_by("l.k").first(by="r.x"), lambda a, b, j: j.group_by(a.k).first(by=b.x)),
        (lambda j: j.group_by("l.k").agg(dd.expr("sum(r.x) + 1 AS s")),
         lambda a, b, j: j.group_by(a.k).agg(dd.expr("sum(x_right) + 1 AS s"))),
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


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_rows_have_the_names_of_their_sides_behind_semi_and_anti_joins(how: str) -> None:
    left, right = sides()
    for rows in (left.join(right, left.k == right.x, how=how), left.join(right, "k", how=how)):
        assert rows.filter("l.x > 1").select("l.x", "l.*").schema.names == ("x", "k", "day")
        with pytest.raises(ExpressionError, match=r"no column 'r\.x'"):
            rows.select("r.x")


def test_conditions_of_joins_name_sides_as_text_or_by_col() -> None:
    left, right = sides()
    owned = left.join(right, (left.k == right.x) & (left.x > right.k)).node.digest
    assert left.join(right, dd.expr("l.k = r.x and l.x > r.k")).node.digest == owned
    by_key = left.join(right, "k", suffix="_right", where=left.x > right.x).node.digest
    for where in ("l.x > r.x", col("l.x") > col("r.x")):
        assert left.join(right, "k", suffix="_right", where=where).node.digest == by_key
    theta = left.theta_join(right, left.x > right.x, suffix="_right").node.digest
    assert left.theta_join(right, col("l.x") > col("r.x"), suffix="_right").node.digest == theta
    with pytest.raises(ExpressionError, match="both sides have a column 'x', which may be either here"):
        left.join(right, dd.expr("l.k = r.k and x > 1"))


@pytest.mark.parametrize(("how", "side"), [("left", "r"), ("right", "l"), ("outer", "l"), ("outer", "r")])
def test_a_side_whose_key_an_outer_join_has_not_is_no_whole_side(how: str, side: str) -> None:
    left, right = sides()
    rows = left.join(right, "k", how=how, suffix="_right").filter(col.k > 1)
    for wrong in (lambda: rows.select(f"{side}.*"), lambda: rows.selectExpr(f"{side}.*"),
                  lambda: rows.select(f"{side}.k")):  # fmt: skip
        with pytest.raises(ExpressionError, match=r"join on a condition, as in a\.k == b\.k"):
            wrong()
    assert rows.join(left.alias("z").select(z=col.k), {"k": "z"}).select(f"{side}.x").schema.names == ("x",)
    with pytest.raises(ExpressionError, match=r"join on a condition, as in a\.k == b\.k"):
        rows.join(left.alias("z").select(z=col.k), {"k": "z"}).select(f"{side}.*")


def test_two_sides_of_one_name_are_ambiguous_as_a_whole_too() -> None:
    left, _ = sides()
    rows = left.join(left, "k", suffix="_right")
    with pytest.raises(ExpressionError, match=r"l\.\* \(.*l\.x is ambiguous: it is x and x_right here"):
        rows.select("l.*")


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
