"""functions/calls.py: how functions with PySpark's names are called, and what they refuse.

The results are those of Spark: tests/spark/functions/test_functions_as_pyspark.py.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

import differential as dd
from differential import col
from differential import functions as F
from differential.errors import ExpressionError, SchemaError, SqlError
from timely import Dataflow


def _rows() -> dd.Collection:
    return dd.input(Dataflow("query"), "rows", "s: string, x: int, f: float, d: date, tags: array<string>")


def test_texts_are_columns_but_where_pyspark_has_a_value() -> None:
    rows = _rows()
    plans = [
        rows.select(F.array_contains("tags", "s").alias("y"), F.lpad("s", 5, "x").alias("z")),
        rows.select(
            F.array_contains(col.tags, F.lit("s")).alias("y"), F.lpad(rows.s, 5, F.lit("x")).alias("z")
        ),
    ]
    assert plans[0].node.digest == plans[1].node.digest
    both = [rows.agg(F.sum("x").alias("t")), rows.agg(dd.sum("x").alias("t"))]
    assert both[0].node.digest == both[1].node.digest
    assert F.array(["s", "s"]).equals(F.array("s", "s"))


def test_columns_without_a_name_are_called_as_in_pyspark() -> None:
    rows = _rows()
    assert rows.select(F.upper("s"), F.round(rows.f, 1), F.left(F.trim("s"), F.lit(2))).schema.names == (
        "upper(s)",
        "round(f, 1)",
        "left(trim(s), 2)",
    )
    totals = rows.groupBy("s").agg(F.sum("x"), F.count("*"), F.countDistinct("f"), F.collect_list(rows.d))
    assert rows.groupBy(F.year("d")).count().schema.names == ("year(d)", "count")
    assert rows.select(F.sum("x"), F.max("f").alias("m")).schema.names == ("sum(x)", "m")
    assert totals.schema.names == ("s", "sum(x)", "count(1)", "count(DISTINCT f)", "collect_list(d)")


def test_constants_are_the_values_that_they_were() -> None:
    rows = _rows()
    text = "it's \\n"
    assert repr(text) in rows.select(y=F.concat("s", F.lit(text))).explain()
    assert rows.select(F.concat("s", F.lit("-"))).schema.names == ("concat(s, -)",)
    price = rows.select(y=F.coalesce(F.lit(Decimal("1E+3")), F.lit(Decimal("2.50"))))
    assert price.schema["y"].type.kind == "decimal"


def test_every_name_is_a_function_and_is_listed() -> None:
    for name in dir(F):
        assert callable(getattr(F, name)), name
        assert getattr(F, name) is getattr(F, name)
    assert F.upper.__name__ == "upper" and len(dir(F)) > 240


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda rows: F.udf(len), "map_batches"),
        (lambda rows: F.rand(), "must come out the same"),
        (lambda rows: F.explode("tags"), "of a collection"),
        (lambda rows: F.uper("s"), "Did you mean 'upper'"),
        (lambda rows: F.regexp_replace("s", col.s, "x"), r"F.regexp_replace\(…, col.s\) .*F.lit\('a'\)"),
        (lambda rows: F.regexp_replace("s"), r"F.regexp_replace .* takes 3 or more arguments, not 1"),
        (lambda rows: F.lpad("s", 5, "x", "y"), r"F.lpad .* takes [23].* arguments, not 4"),
        (lambda rows: F.date_format("d", "QQQQQ"), r"F.date_format .*'QQQQQ' in the format"),
        (lambda rows: rows.select(F.upper("nothing")), "there is no column 'nothing'"),
        (lambda rows: rows.select(F.upper("tags")), r"F.upper\(tags\) .*array"),
        (lambda rows: rows.select(F.date_add("x", 1)), r"F.date_add.*takes a date or timestamp; .* is int"),
        (lambda rows: rows.select(F.year("x")), r"F.year.*takes a date or timestamp; the operand is int"),
        (lambda rows: rows.select(F.datediff("f", "d")), "takes a date or timestamp; the operand is float"),
        (lambda rows: rows.agg(F.first("x")), "by='time'"),
        (lambda rows: F.sum("x").over("s"), r"over\('key', by='time'\).with_columns\(n=dd.sum\('x'\)\)"),
        (lambda rows: F.row_number().over("s"), r"with_columns\(n=dd.row_number\(…\)\)"),
    ],
)
def test_refused_with_what_to_write(write: Callable[[dd.Collection], object], said: str) -> None:
    with pytest.raises((AttributeError, ExpressionError, SchemaError, SqlError), match=said):
        write(_rows())
