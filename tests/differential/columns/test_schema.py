"""Schemas: how they are written, and where the words of a column are."""

from __future__ import annotations

import pytest

from differential.columns.column_types import any_value, integer, string
from differential.columns.schema import Schema
from differential.errors import SchemaError


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


def test_declare_more_words_than_a_row_may_have_is_refused() -> None:
    """A worker that received such rows would take their sender for broken."""
    assert Schema.of({f"c{i}": int for i in range(4_094)}).width == 4_094
    with pytest.raises(SchemaError, match="4,095 columns of 4,095 words: a row may have 4,094"):
        Schema.of({f"c{i}": int for i in range(4_095)})
    with pytest.raises(SchemaError, match="2,048 columns of 4,096 words"):
        Schema.of({f"c{i}": "int?" for i in range(2_048)})


def test_layout_a_nullable_column_is_a_flag_and_a_value() -> None:
    schema = Schema.of("a: int, b: string?, c: bool")
    assert schema.width == 4
    assert [list(schema.words_of(name)) for name in schema.names] == [[0], [1, 2], [3]]
    assert schema.symbol_words == (2,)
    assert schema.reordered(["b"]).symbol_words == (1,)
    assert schema.reordered(["c", "a"]).names == ("c", "a", "b")
