"""The type of a text of JSON is the least that holds it, as in Spark."""

from __future__ import annotations

import pytest

import differential as dd
from differential.errors import ExpressionError
from differential.expressions.functions.families.json_types import type_of_json, type_text_of


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ('{"a": [1, 2.5], "b": {"c": null}}', "struct<a: array<float>, b: struct<c: string?>>"),
        ("[]", "array<string>"),
        ('[{"a": 1}, {"b": "x"}]', "array<struct<a: int?, b: string?>>"),
        ("[1, null]", "array<int?>"),
        ("[true, 1]", "array<string>"),
        ('{"big": 99999999999999999999}', "struct<big: float>"),
        ("[[1], [null]]", "array<array<int?>>"),
    ],
)
def test_types_of_texts(text: str, type_: str) -> None:
    assert str(type_of_json(text)) == dd.schema_of_json(text) == type_
    assert type_text_of(type_) == type_


@pytest.mark.parametrize("text", ["", "nope", "{}"])
def test_texts_without_a_type(text: str) -> None:
    with pytest.raises(ExpressionError, match="schema_of_json"):
        dd.schema_of_json(text)
