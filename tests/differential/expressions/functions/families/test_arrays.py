"""Functions of arrays, structs and maps have DuckDB's values where DuckDB agrees with Spark.

`tests/spark/functions/test_nested_functions.py` compares all of them with Spark.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from expression_values import values_of
from nested_functions import CLAIMS, COLUMNS, ROWS, plainly

import differential as dd
from differential import Schema, col, lit
from differential.columns.nested.values import with_pairs
from differential.columns.rows import Row
from differential.errors import ExpressionError, RowError
from differential.expressions.expression import Expr

SCHEMA = Schema.of(COLUMNS)


def test_the_same_as_in_duckdb() -> None:
    arrays = [
        pa.array([with_pairs(row[at], column.type) for row in ROWS], column.type.arrow_of_values())
        for at, column in enumerate(SCHEMA)
    ]
    database = duckdb.connect(":memory:", config={"threads": 1})
    database.register("t", pa.Table.from_arrays(arrays, list(SCHEMA.names)))
    compared = [claim for claim in CLAIMS if claim.duckdb]
    found = database.sql(
        "SELECT " + ", ".join(f"{each.duckdb} AS c{at}" for at, each in enumerate(compared)) + " FROM t"
    )
    theirs = found.fetchall()
    for at, claim in enumerate(compared):
        ours = values_of(eval(claim.ours, {"dd": dd, "col": col}), ROWS, SCHEMA)
        for row, mine, its in zip(ROWS, ours, theirs, strict=True):
            assert plainly(mine) == plainly(its[at]), f"{claim.ours} of {row}"
    database.close()


def of(expr: Expr, *rows: Row, schema: str = "a: array<int?>?, i: int") -> list[object]:
    return values_of(expr, list(rows), Schema.of(schema))


@pytest.mark.parametrize(
    ("expr", "why"),
    [
        (col.a[2], "has no element at this place"),
        (col.a[-1], "has no element"),
        (col.a[col.i], "has no element"),
        (dd.element_at(col.a, 3), "has no element"),
        (dd.element_at(col.a, col.i), "has no element"),
        (dd.slice(col.a, col.i, 1), "starts at 0, or has a negative length"),
        (dd.sequence(1, 5, col.i), "never ends"),
        (dd.slice(col.a, 1, col.i), "negative length"),
        (dd.array_repeat(1, -col.i * 10**6), "more than 1,000,000"),
        (dd.create_map("k", col.i, "k", 1), "a key twice"),
        (dd.create_map(col.a[0], 1), "has null for a key"),
        (dd.map_from_arrays(col.a, dd.array(1)), "not as many values"),
        (dd.map_concat(dd.create_map(lit("k"), 1), dd.create_map(lit("k"), 2)), "has a key twice"),
    ],
)
def test_a_row_without_a_value_fails_as_in_spark(expr: Expr, why: str) -> None:
    with pytest.raises(RowError, match=why):
        for number in (0, -2):
            of(expr, ([None, 5], number))


def test_places_outside_are_null_where_that_is_wanted() -> None:
    assert of(dd.get(col.a, 5), ([1], 0)) == of(dd.try_element_at(col.a, 5), ([1], 0)) == [None]
    assert of(dd.element_at(col.a, 1), (None, 0), ([None], 0)) == [None, None]
    with pytest.raises(ExpressionError, match="there is no element 0"):
        dd.element_at(col.a, 0).type_in(Schema.of("a: array<int>"))


@pytest.mark.parametrize(
    ("expr", "type_"),
    [
        (col.a[0], "int"),
        (dd.get(col.a, 0), "int?"),
        (col.b[0], "string?"),
        (dd.size(col.a), "int"),
        (dd.array_union(col.a, dd.array(1, lit(None, "int"))), "array<int?>"),
        (dd.array(1, 2.5), "array<float>"),
        (dd.array_contains(col.b, "x"), "bool?"),
        (dd.array_contains(col.a, 1), "bool"),
        (dd.array_max(col.a), "int?"),
        (dd.array_compact(col.b), "array<string>"),
        (dd.concat(col.a, col.a), "array<int>"),
        (dd.array_append(col.a, 1.5), "array<float>"),
        (col.a.cast("any"), "any"),
        (col.s["y"], "array<int>"),
        (dd.map_keys(col.m), "array<string>"),
        (col.m["u"], "float?"),
        (col.n["x"], "int?"),
        (dd.map_entries(col.m), "array<struct<key: string, value: float>>"),
        (dd.to_json(col.s), "string"),
        (dd.struct(col.a, z=1), "struct<a: array<int>, z: int>"),
        (dd.from_json(lit("{}"), "a: int"), "struct<a: int?>?"),
        (dd.create_map(1, lit("a")), "map<int, string>"),
        (col.s.list.field("x"), "int"),
        (dd.reverse(col.a), "array<int>"),
        (dd.when(col.a == dd.array(1)).then(col.a).otherwise(dd.array(lit(None, "int"))), "array<int?>"),
    ],
)
def test_types_follow_from_those_of_the_parts(expr: Expr, type_: str) -> None:
    schema = Schema.of(
        "a: array<int>, b: array<string?>, s: struct<x: int, y: array<int>>, m: map<string, float>, "
        "n: struct<x: int>?"
    )
    assert str(expr.type_in(schema)) == type_


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (col.s["q"], "item takes a field: there are x, yes"),
        (col.s["yse"], "yes"),
        (col.a["x"], "takes a place, an int"),
        (dd.array_contains(col.a, "x"), "values of one type, not int, string"),
        (dd.array(1, lit("a")), "not int, string"),
        (dd.array_max(col.s), "takes array for 'x'"),
        (dd.flatten(col.a), "takes an array of arrays"),
        (dd.sort_array(dd.array(col.a)), "elements that have an order"),
        (dd.array_join(col.a, ","), "an array of texts"),
        (dd.create_map(col.a, 1), "keys are plain values"),
        (dd.named_struct("a", lit(1), "a", 2), "has a field twice"),
        (dd.named_struct(col.i, 1), "a constant text"),
        (dd.create_map(1), "a value behind each key"),
        (col.a < col.a, "needs an order"),
        (col.a.cast("string"), "is not possible"),
        (col.a == col.s, "values of one type"),
        (dd.from_json(lit("x"), "int"), "is no type of a struct, array or map"),
        (dd.concat(col.a, "x"), "one type"),
        (dd.from_json(lit("x"), "map<int, int>"), "JSON has texts for keys"),
        (dd.map_contains_key(col.m, 1), "one type"),
    ],
)
def test_what_does_not_fit_together_is_refused(expr: Expr, message: str) -> None:
    schema = Schema.of("a: array<int>, i: string, s: struct<x: int, yes: int>, m: map<string, int>")
    with pytest.raises(ExpressionError, match=message):
        expr.type_in(schema)
