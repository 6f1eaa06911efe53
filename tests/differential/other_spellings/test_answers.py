"""Arguments, columns and conditions as users of other libraries write them are answered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import differential as dd
from differential import col
from differential.errors import ExpressionError, SchemaError
from differential.other_spellings import meant
from timely import Dataflow, TimelyError


def test_columns_of_other_libraries_are_answered_where_they_are_given() -> None:
    def refuses(self: object) -> Iterator[object]:
        raise TypeError("Column is not iterable")  # it has __iter__ all the same

    theirs = type("Column", (), {"__module__": "pyspark.sql.classic.column", "__iter__": refuses})()
    rows = dd.input(Dataflow("query"), "rows", "k: int, x: int")
    for given in (
        lambda: rows.filter(col.x > theirs),
        lambda: rows.withColumn("y", theirs),
        lambda: rows.select("k", theirs),
        lambda: rows.group_by("k").agg(y=dd.sum(theirs)),  # type: ignore[arg-type]
        lambda: rows.group_by(theirs),
        lambda: rows.group_by("k").agg(theirs),
        lambda: rows.top_k(1, by=theirs),
    ):
        with pytest.raises(
            (ExpressionError, SchemaError), match=r"is a Column of PySpark, .* col\.x is the column"
        ):
            given()


def test_a_column_that_is_not_there_is_answered_with_one_like_it_wherever_it_is_named() -> None:
    rows = dd.input(Dataflow("tested"), "rows", "user: string, amount: int")
    for query in (
        lambda: rows.group_by("usr"),
        lambda: rows.select("usr"),
        lambda: rows.drop("usr"),
        lambda: rows.join(rows, on="usr"),
        lambda: rows.order_by("usr").limit(1),
    ):
        with pytest.raises(TimelyError, match="no column 'usr'.*Did you mean 'user'"):
            query()
    assert meant(7, ["user"]) == meant("entirely", ["user"]) == ""
    assert meant("a.id", ["id", "k"]) == " The column of a side is a.id, where a = rows.alias('a')."
    assert meant("a.id", ["k"]) == meant(".id", ["k"]) == ""
    assert meant("K", ["x", "k"]) == " Did you mean 'k'?", "as Spark would take it"
    assert meant("USR", ["user", "Usr"]) == " Did you mean 'Usr'?", "what is equal but for capitals is nearer"
