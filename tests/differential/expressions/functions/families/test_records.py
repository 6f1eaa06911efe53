"""Structs and maps: their parts, and making them; `test_arrays.py` has their errors and types."""

from __future__ import annotations

import pytest
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.columns.column_types import as_column_type
from differential.errors import ExpressionError
from differential.expressions.functions.families.records import field_type

SCHEMA = Schema.of("k: int, s: struct<b: int, a: array<int>>, m: map<int, string?>, x: any?")
ROWS: list[tuple[object, ...]] = [
    (1, {"b": 1, "a": [7]}, {1: "u", 2: None}, {"p": (1, 2)}),
    (9, {"b": 2, "a": []}, {}, (1, 2)),
]


def test_parts_by_name_by_key_and_by_place() -> None:
    for part in (col.s["b"], col.s.field("b"), col.s.getItem("b"), col.s.getField("b")):
        assert values_of(part, ROWS, SCHEMA) == [1, 2]
    assert values_of(col.m[col.k], ROWS, SCHEMA) == ["u", None]
    assert values_of(col.x["p"], ROWS, SCHEMA) == [(1, 2), None]
    assert values_of(col.x[1], ROWS, SCHEMA) == [None, 2]
    assert field_type(as_column_type("struct<a: int, b: date>"), "b").kind == "date"
    with pytest.raises(ExpressionError, match="col.x.str.slice"):
        col.x[1:2]


def test_structs_are_made_of_columns_under_their_names() -> None:
    made = dd.struct(col.k, (col.k + 1).alias("next"), other=col.s["b"])
    assert made.describe() == "named_struct('k', col.k, 'next', col.k + 1, 'other', col.s.item('b'))"
    assert values_of(made, ROWS, SCHEMA)[1] == {"k": 9, "next": 10, "other": 2}
    for wrong in (lambda: dd.struct(col.k + 1), lambda: dd.struct(), lambda: dd.struct(col.k, k=col.k)):
        with pytest.raises(ExpressionError, match="struct"):
            wrong()


def test_maps_are_the_same_in_any_order() -> None:
    one, other = dd.create_map(1, col.k, 2, 0), dd.create_map(2, 0, 1, col.k)
    assert values_of(one == other, ROWS, SCHEMA) == [True, True]
    assert values_of(dd.map_entries(col.m), ROWS, SCHEMA)[0] == (
        {"key": 1, "value": "u"},
        {"key": 2, "value": None},
    )
