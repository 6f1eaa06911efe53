"""Column types: how they are written, and what is no type."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from differential.columns.column_types import any_value, integer, string
from differential.columns.schema import Schema
from differential.errors import ExpressionError, SchemaError


def test_declare_by_string_mapping_pairs_and_python_types() -> None:
    expected = Schema.of("src: int, dst: int?, text: string, x: any")
    assert Schema.of({"src": int, "dst": int | None, "text": str, "x": object}) == expected
    assert Schema.of([("src", integer), ("dst", "int?"), ("text", string), ("x", any_value)]) == expected
    assert Schema.of(str(expected)) == expected
    assert Schema.of(expected) is expected


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("src: int, src: int", "two columns are called 'src'"),
        ("src: integral", "Types are int, float"),
        ("src", "write name: type"),
        (": int", "needs a name"),
    ],
)
def test_declare_nonsense_is_refused(spec: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema.of(spec)


def test_a_type_that_is_called_says_what_to_write() -> None:
    with pytest.raises(ExpressionError, match=r"write dd\.any_value_of\('x'\)"):
        cast("Callable[[str], object]", any_value)("x")
    with pytest.raises(ExpressionError, match=r"int is a type of columns.*write col\.x\.cast\('int'\)"):
        cast("Callable[[str], object]", integer)("5")
