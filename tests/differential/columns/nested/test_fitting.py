"""What comes packed from clients is checked against the type of its column."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nested_values import nested_type, plainly, value_of_type

from differential.columns.column_types import as_column_type
from differential.columns.nested.fitting import fitting, unpacked
from differential.columns.schema import Schema
from differential.columns.symbols.packing import pack, unpack
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError


@given(st.integers(0, 2**32))
def test_values_fit_their_type(number: int) -> None:
    seed = random.Random(number)
    type_ = nested_type(seed)
    value = value_of_type(seed, type_)
    assert fitting(type_)(unpack(pack(plainly(value, type_))))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("array<int>", [1.0]),
        ("array<int>", [None]),
        ("array<float>", [1]),
        ("array<int>", {}),
        ("array<int>", 1),
        ("struct<a: int?>", {}),
        ("struct<a: int>", {"a": 1, "b": 1}),
        ("map<string, int>", {1: 1}),
        ("map<string, int>", []),
        ("struct<a: int>", [1]),
        ("array<bool>", [1]),
        ("array<int>", [2**63]),
    ],
)
def test_packed_values_of_another_type_are_refused(type_: str, value: object) -> None:
    schema = Schema.of({"x": type_})
    payload = pack(value)
    with pytest.raises(SchemaError, match="came packed for a column of type"):
        unpacked([payload], as_column_type(type_))
    table = pa.Table.from_arrays([pa.array([payload])], schema=schema.to_arrow())
    with pytest.raises(SchemaError, match="is none of its values"):
        schema.encode(table, SymbolTable())
