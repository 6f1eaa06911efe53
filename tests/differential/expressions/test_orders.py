"""orders.py: what may stand for an order."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from differential import col
from differential.columns.column_types import ColumnType, decimal, floating, integer, timestamp
from differential.columns.column_types import date as day
from differential.errors import ExpressionError, SchemaError
from differential.expressions.orders import Length, in_units, orderings


def test_names_expressions_and_directions_are_orders() -> None:
    assert [each.descending for each in orderings(["a", col.b + 1, col.c.desc()], "top_k")] == [0, 0, 1]
    assert [each.descending for each in orderings("a", "top_k")] == [False]


def test_refused_nothing_and_what_is_no_column() -> None:
    with pytest.raises(SchemaError, match=r"top_k \(.*test_orders.py:\d+\) needs an order"):
        orderings([], "top_k")
    with pytest.raises(SchemaError, match="made of columns"):
        orderings([5], "top_k")  # type: ignore[list-item]  # that is the point


@pytest.mark.parametrize(
    ("length", "type_", "start", "stop"),
    [
        (Decimal("-1.5"), integer, -1, -2),
        (Decimal("1.5"), decimal(9, 2), 150, 150),
        (Decimal("0.005"), decimal(9, 2), 1, 0),
        (Decimal(7), day, 7, 7),
        (Decimal("0e-999999999"), integer, 0, 0),
        (Decimal("1e-999999999"), decimal(9, 2), 1, 0),
        (Decimal("-1e-999999999"), decimal(9, 2), 0, -1),
        (Decimal("-2e999999"), integer, -(10**60), -(10**60)),
        (dt.timedelta(hours=-36), day, -1, -2),
        (dt.timedelta(hours=1), timestamp, 3_600_000_000, 3_600_000_000),
    ],
)
def test_bounds_between_two_units_leave_the_range_as_it_is(
    length: Length, type_: ColumnType, start: int, stop: int
) -> None:
    assert in_units(length, type_, is_start=True) == start
    assert in_units(length, type_, is_start=False) == stop


@pytest.mark.parametrize(
    ("length", "type_"),
    [
        (Decimal("NaN"), integer), (Decimal("sNaN"), integer), (Decimal(1), floating),
        (Decimal(1), timestamp), (dt.timedelta(1), integer), (dt.timedelta(1), decimal(9, 2)),
    ],
)  # fmt: skip
def test_refused_bounds_that_cannot_be_added(length: Length, type_: ColumnType) -> None:
    with pytest.raises(ExpressionError, match="is no bound of a range in the order of a column of type"):
        in_units(length, type_, is_start=True)
