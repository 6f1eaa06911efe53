"""Elements, keys and order of nested values; paths into texts of JSON, against DuckDB."""

from __future__ import annotations

import json

import pytest
from duckdb_values import against_duckdb
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.errors import ExpressionError
from differential.expressions.expression import Expr

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


def test_elements_count_from_1_and_keys_are_looked_up() -> None:
    assert of(dd.element_at(col.v, 1), [5, 6], [], {1: "x"}, "no list", None) == [5, None, "x", None, None]
    assert of(dd.element_at(col.v, -2), [5, 6], [5]) == [5, None]
    assert of(dd.element_at(col.v, "k"), {"k": (1, 2)}, {"j": 1}, [1]) == [(1, 2), None, None]
    assert of(dd.map_keys(col.v), {"k": 1}, {}, [1]) == [("k",), (), None]
    assert of(dd.map_values(col.v), {"k": 1}, {}, [1]) == [(1,), (), None]
    with pytest.raises(ExpressionError, match="there is no element 0"):
        dd.element_at(col.v, 0).type_in(Schema.of("v: any"))


def test_lists_of_one_kind_have_an_order() -> None:
    assert of(dd.sort_array(col.v), [3, None, 1.5, 2], ["b", "a", "é"], [], [True, False]) == [
        (None, 1.5, 2, 3), ("a", "b", "é"), (), (False, True),
    ]  # fmt: skip
    assert of(dd.sort_array(col.v, False), [3, None, 1]) == [(3, 1, None)]
    assert of(dd.sort_array(col.v), [1, "a"], [[1]], {"k": 1}) == [None, None, None]
    nans = of(dd.sort_array(col.v), [float("nan"), 1, float("inf")])[0]
    assert isinstance(nans, tuple) and nans[:2] == (1, float("inf")) and nans[2] != nans[2]
    assert repr(of(dd.sort_array(col.v), [1, 1.0])) == repr(of(dd.sort_array(col.v), [1.0, 1]))


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
