"""Paths into texts of JSON, against DuckDB; values of a type made of texts, and texts of values.

`tests/spark/functions/test_nested_functions.py` compares the two last with Spark.
"""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest
from duckdb_values import against_duckdb
from expression_values import values_of

import differential as dd
from differential import Schema, col, lit
from differential.columns.column_types import as_column_type
from differential.errors import ExpressionError
from differential.expressions.expression import Expr
from differential.expressions.functions.families.json_texts import every_part_or_null

NESTED: list[object] = [
    1,
    0,
    -7,
    0.5,
    True,
    False,
    "a",
    "",
    'é\n"',
    [],
    [1, [2]],
    {},
    {"b": {"c": [1, None]}},
]
TEXTS = [None, "", "x", "{", "[1,", "nul", "{} {}", *(
    json.dumps(shape, separators=(",", ":"), ensure_ascii=False)
    for value in NESTED
    for shape in (value, {"a": value}, [value, {"a": value}], {"a": [value], "x y": value})
)]  # fmt: skip


def of(expr: Expr, *values: object, type_: str = "any?") -> list[object]:
    """The values of an expression over `v`."""
    return values_of(expr, [(value,) for value in values], Schema.of(f"v: {type_}"))


@pytest.mark.parametrize("path", ["$", "$.a", "$.a[0]", "$[1].a", "$.a.b", "$['x y']", "$.a.b.c[0]", "$[0]"])
def test_a_path_finds_what_duckdb_finds(path: str) -> None:
    of_duckdb = path.replace("['", '."').replace("']", '"')
    valid = f"CASE WHEN json_valid(v) THEN v->>'{of_duckdb}' END"
    against_duckdb("string?", TEXTS, [(dd.get_json_object(col.v, path), valid)])


def test_of_a_name_that_is_there_twice_the_first_counts_and_odd_texts_are_null() -> None:
    path = dd.get_json_object(col.v, "$.a")
    assert of(path, '{"a": 1, "a": 2}', '{"a": NaN}', "[" * 100_000, type_="string") == ["1", None, None]
    assert of(path, '{"a": "\\ud800"}', '{"a": 1' + "0" * 5_000 + "}", type_="string") == [None, None]


@pytest.mark.parametrize("path", ["", "a", "$.", "$..a", "$.*", "$[*]", "$[-1]", "$.a b[", "$['']"])
def test_a_path_of_another_form_is_refused(path: str) -> None:
    with pytest.raises(ExpressionError, match="is no path of the form"):
        dd.get_json_object(col.v, path).type_in(Schema.of("v: string"))


def test_a_text_of_any_value_is_read_back() -> None:
    value = {"a": (1, None, "é"), "b": {"c": Decimal("1.50"), "d": False}}
    assert of(dd.to_json(col.v), value, None) == ['{"a":[1,null,"é"],"b":{"c":1.5,"d":false}}', None]
    assert of(dd.to_json(col.v), {1: b"ab", "u": True}) == ['{"1":"YWI=","u":true}']
    day = {"t": dt.datetime(2024, 1, 1, 1, 2, 3, 4567, dt.UTC), "d": dt.date(2024, 1, 1)}
    assert of(dd.to_json(col.v), day) == ['{"d":"2024-01-01","t":"2024-01-01T01:02:03.004Z"}']
    floats = "array<float>"
    assert of(dd.to_json(col.v), [1e7, 1e-4, -0.0, float("inf"), 123456789.5], type_=floats) == [
        '[1.0E7,1.0E-4,0.0,"Infinity",1.234567895E8]'
    ]


def test_what_is_no_json_has_null_in_every_field() -> None:
    read = dd.from_json(col.v, "a: int, b: array<struct<c: decimal(3, 1)>>")
    assert of(read, "nope", '{"a": 7', "", None, "'a'", type_="string?") == [
        {"a": None, "b": None}, {"a": None, "b": None}, None, None, {"a": None, "b": None},
    ]  # fmt: skip
    assert of(read, '{"b": [{"c": 1.25}, {}, {"c": "x"}], "z": [[]]}', type_="string") == [
        {"a": None, "b": ({"c": Decimal("1.3")}, {"c": None}, {"c": None})}
    ]
    assert of(dd.from_json(col.v, "array<int>"), "[" * 100_000, "{}", type_="string") == [None, None]
    assert of(dd.from_json(col.v, "a: string"), '{"a": "\\ud800"}', type_="string") == [{"a": "?"}]


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ("a: int, b: array<string>", "struct<a: int?, b: array<string?>?>?"),
        ("a INT, b MAP<STRING, INT>", "struct<a: int?, b: map<string, int?>?>?"),
        (Schema.of("a: int"), "struct<a: int?>?"),
        (as_column_type("array<date>"), "array<date?>?"),
        ("struct<a: int>", "struct<a: int?>?"),
    ],
)
def test_a_schema_is_written_in_many_ways(schema: object, type_: str) -> None:
    expr = dd.from_json(col.v, schema)
    assert str(expr.type_in(Schema.of("v: string"))) == type_
    assert str(every_part_or_null(as_column_type(type_))) == type_


def test_json_tuple_names_its_columns() -> None:
    first, second = dd.json_tuple(col.v, "a", "x y")
    assert (first.name, second.name) == ("c0", "c1")
    assert of(second.expr, '{"x y": [1]}', type_="string") == ["[1]"]
    with pytest.raises(ExpressionError, match="names are texts without '"):
        dd.json_tuple(lit("{}"), "it's")
