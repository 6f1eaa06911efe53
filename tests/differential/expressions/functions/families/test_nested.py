"""Elements, keys and order of lists and maps of type any."""

from __future__ import annotations

import pytest
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.errors import ExpressionError
from differential.expressions.expression import Expr


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
