"""Python values of nested types: in one form, or refused with the part that does not fit."""

from __future__ import annotations

import datetime as dt
from collections import namedtuple
from decimal import Decimal

import numpy as np
import pytest

from differential.columns.column_types import as_column_type
from differential.columns.nested.fitting import fitting
from differential.columns.nested.locations import ValueLocation
from differential.columns.nested.values import some_value, with_pairs
from differential.columns.rows import checked_values, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError

Point = namedtuple("Point", ("b", "a"))
NOON = dt.datetime(2024, 1, 1, 12)


@pytest.mark.parametrize(
    ("type_", "value", "formed"),
    [
        ("array<float>", [1, np.float32(0.5)], (1.0, 0.5)),
        ("array<int?>", np.array([1.0, np.nan]), (1, None)),
        ("array<timestamp>", [NOON], (NOON.replace(tzinfo=dt.UTC),)),
        ("array<timestamp>", np.array(["2024-01-01T12:00"], "M8[ns]"), (NOON.replace(tzinfo=dt.UTC),)),
        ("array<array<bytes>>", [[bytearray(b"x")], ()], ((b"x",), ())),
        ("struct<a: int, b: string?>", {"a": 1}, {"a": 1, "b": None}),
        ("struct<a: int, b: string>", Point("x", 1), {"a": 1, "b": "x"}),
        ("map<int, decimal(5, 2)>", [(2, Decimal("1.5")), (1, 7)], {2: Decimal("1.5"), 1: Decimal(7)}),
    ],
)
def test_a_value_has_one_form(type_: str, value: object, formed: object) -> None:
    column = as_column_type(type_)
    (result,) = checked_values([value], ValueLocation("", "x", column))
    assert result == formed and fitting(column)(result)


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("array<int>", "ab", "'ab' is a str, not a list"),
        ("array<int>", [1, True], r"element \(int\), row 1: True is a bool"),
        ("array<int>", [2**63], "9223372036854775808 is out of range"),
        (
            "array<int>",
            [None],
            r'element \(int\), row 1: None is null[^\n]*\n  Declare it as "int\?" in the type',
        ),
        ("array<array<int>>", [[1], ["x"]], r"element, element \(int\), row 1: 'x' is a str"),
        ("array<decimal(3, 1)>", [Decimal("1.25")], "does not fit"),
        ("struct<a: int>", {"a": 1, "b": 2}, "has 'b', which is no field"),
        ("struct<a: int>", {}, r"field 'a' \(int\), row 1: None is null"),
        ("struct<a: int>", [1], "is a list, not a dict"),
        ("map<string, int>", {1: 1}, r"key \(string\), row 1: 1 is a"),
        ("map<string, int>", {None: 1}, r"key \(string\), row 1: None is null"),
        ("map<string, int>", [("a", 1), ("a", 2)], "has a key twice"),
        ("map<string, int>", [1], "is a list, not a dict"),
    ],
)
def test_what_does_not_fit_is_told_with_its_part(type_: str, value: object, message: str) -> None:
    schema = Schema.of({"x": type_ + "?"})
    with pytest.raises(SchemaError, match=message):
        encode_rows(schema, [(None,), (value,)], SymbolTable())


def test_some_value_is_one_and_maps_become_pairs() -> None:
    for text in ("array<int>", "map<int, int>", "struct<a: array<int>, b: date, c: decimal(3, 1), d: float>"):
        type_ = as_column_type(text)
        (value,) = checked_values([some_value(type_)], ValueLocation("", "x", type_))
        assert fitting(type_)(value)
    type_ = as_column_type("struct<a: array<map<int, int>>>")
    assert with_pairs({"a": ({1: 2},)}, type_) == {"a": [[(1, 2)]]}
