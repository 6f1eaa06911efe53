"""When are two elements the same, and which type holds several?"""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from differential.columns.column_types import as_column_type
from differential.expressions.functions.families.elements import as_element, common_type, in_order, same_as


@pytest.mark.parametrize(
    ("types", "common"),
    [
        (("int", "int?"), "int?"),
        (("int", "float"), "float"),
        (("decimal(5, 2)", "decimal(3, 0)"), "decimal(5, 2)"),
        (("array<int>", "array<int?>"), "array<int?>"),
        (("struct<a: int>", "struct<a: int?>?"), "struct<a: int?>?"),
        (("int",), "int"),
    ],
)
def test_the_least_type_that_holds_all(types: tuple[str, ...], common: str) -> None:
    assert str(common_type([as_column_type(each) for each in types])) == common


@pytest.mark.parametrize(
    "types",
    [
        ("int", "string"),
        ("array<int>", "array<float>"),
        ("struct<a: int>", "struct<b: int>"),
        ("bool", "int"),
    ],
)
def test_types_that_none_holds(types: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="cast them"):
        common_type([as_column_type(each) for each in types])


def test_values_that_are_the_same() -> None:
    nan = float("nan")
    assert same_as(nan) == same_as(-nan) and same_as(0.0) == same_as(-0.0) and same_as(None) is None
    assert same_as((1, {"a": nan})) == same_as((1, {"a": nan})) != same_as((1, {"a": 2}))
    assert same_as(Decimal("1.0")) == same_as(Decimal("1.00")) and same_as(1) == same_as(1.0)
    assert sorted([nan, 1.0, math.inf, -1.0], key=in_order)[:3] == [-1.0, 1.0, math.inf]
    assert repr(as_element(1, as_column_type("float"))) == "1.0"
