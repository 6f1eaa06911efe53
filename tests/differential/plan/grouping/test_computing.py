"""computing.py: columns for what is computed, beside those that are there."""

from __future__ import annotations

from differential import col
from differential.columns.schema import Schema
from differential.plan import nodes as n
from differential.plan.grouping.computing import order_of, with_columns

SOURCE = n.Input(Schema.of({"k": int, "col.k + 1": int}), "rows")


def _same(node: n.Node) -> n.Node:
    return node


def test_columns_are_named_as_what_they_compute_is_written_and_otherwise_if_that_is_taken() -> None:
    node, names = with_columns(_same, SOURCE, [col.k + 1, col.k * 2, col.k + 1])
    assert names == ["col.k + 1'", "col.k * 2", "col.k + 1'"]
    assert node.schema.names == ("k", "col.k + 1", "col.k + 1'", "col.k * 2")


def test_columns_are_not_made_for_nothing() -> None:
    assert with_columns(_same, SOURCE, []) == (SOURCE, [])
    assert order_of(_same, SOURCE, [col.k.desc()])[0] is SOURCE


def test_order_takes_columns_as_they_are_and_keeps_its_turns() -> None:
    node, order = order_of(_same, SOURCE, [(col.k * 2).asc(), col.k.desc()])
    assert [(each.column, each.direction.descending) for each in order] == [("col.k * 2", False), ("k", True)]
    assert node.schema.names == ("k", "col.k + 1", "col.k * 2")
