"""orders.py: what may stand for an order."""

from __future__ import annotations

import pytest

from differential import col
from differential.errors import SchemaError
from differential.expressions.orders import orderings


def test_names_expressions_and_directions_are_orders() -> None:
    assert [each.descending for each in orderings(["a", col.b + 1, col.c.desc()], "top_k")] == [0, 0, 1]
    assert [each.descending for each in orderings("a", "top_k")] == [False]


def test_refused_nothing_and_what_is_no_column() -> None:
    with pytest.raises(SchemaError, match=r"top_k \(.*test_orders.py:\d+\) needs an order"):
        orderings([], "top_k")
    with pytest.raises(SchemaError, match="made of columns"):
        orderings([5], "top_k")  # type: ignore[list-item]  # that is the point
