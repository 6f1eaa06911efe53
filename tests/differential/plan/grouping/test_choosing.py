"""choosing.py: the value that an order chooses, against looking for it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.plan import meaning

from differential import col
from differential.columns.schema import Schema
from differential.errors import ExpressionError
from differential.operators.ordered.layout import SortDirection
from differential.plan import nodes as n
from differential.plan.grouping.choosing import best_value, first_value
from differential.plan.grouping.computing import order_of

SOURCE = n.Input(Schema.of("k: int, x: int?, v: int?, other: int"), "rows")
NUMBER = st.integers(0, 2)
VALUE = st.one_of(st.none(), NUMBER)
ROWS = st.dictionaries(st.tuples(NUMBER, VALUE, VALUE, NUMBER), st.sampled_from([-2, -1, 1, 2]), max_size=12)
Found = dict[tuple[int, int | None, int | None, int], int]


def _same(node: n.Node) -> n.Node:
    return node


def _groups(rows: Found, width: int) -> dict[int, list[tuple[int | None, ...]]]:
    """By key: the values of the named columns that have a positive multiplicity in sum."""
    sums: Counter[tuple[int, tuple[int | None, ...]]] = Counter()
    for (k, x, v, _), count in rows.items():
        sums[k, (x, v)[:width]] += count
    found: dict[int, list[tuple[int | None, ...]]] = {}
    for (k, values), count in sums.items():
        if count > 0:
            found.setdefault(k, []).append(values)
    return found


def _nulls_last(value: int | None) -> tuple[bool, int]:
    return value is None, value or 0


@given(ROWS, st.booleans())
def test_least_and_greatest_of_values_that_may_be_null(rows: Found, descending: bool) -> None:
    node = best_value(
        _same, SOURCE, ("k",), "found", "x", n.OrderBy("x", SortDirection(descending, nulls_last=True)), None
    )
    want = {}
    for k, group in _groups(rows, 1).items():
        present = [x for (x,) in group if x is not None]
        want[k, (max if descending else min)(present) if present else None] = 1
    assert meaning(node, {"rows": Counter(rows)}) == want


@given(ROWS, st.booleans())
def test_what_stands_beside_the_least_and_the_greatest(rows: Found, descending: bool) -> None:
    node = best_value(
        _same, SOURCE, ("k",), "found", "v", n.OrderBy("x", SortDirection(descending, nulls_last=True)), None
    )
    want = {}
    for k, group in _groups(rows, 2).items():
        present = [x for x, _ in group if x is not None]
        if present:
            best = max(present) if descending else min(present)
            want[k, min((v for x, v in group if x == best), key=_nulls_last)] = 1
        else:
            want[k, None] = 1
    assert meaning(node, {"rows": Counter(rows)}) == want


@given(ROWS)
def test_first_value_in_an_order_of_an_expression(rows: Found) -> None:
    twice = col.x.fill_null(5) * 2
    source, order = order_of(_same, SOURCE, [twice.desc(), col.k.asc(), twice.asc(), col.k.desc()])
    node = first_value(_same, source, ("k",), "found", "v", order, None)
    want = {}
    for k, group in _groups(rows, 2).items():
        want[k, min(group, key=lambda row: (-(5 if row[0] is None else row[0]), _nulls_last(row[1])))[1]] = 1
    assert meaning(node, {"rows": Counter(rows)}) == want


def test_refused_values_without_an_order() -> None:
    source = n.Input(Schema.of("k: int, x: any, v: int"), "rows")
    with pytest.raises(ExpressionError, match="no order"):
        _ = first_value(_same, source, ("k",), "found", "v", [n.OrderBy("x", SortDirection())], None).schema
