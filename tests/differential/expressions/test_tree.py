"""tree.py: expressions are these trees, with operators and methods."""

from __future__ import annotations

from dataclasses import fields

import pytest

from differential import col, lit
from differential.expressions.expression import ColumnRef, LiteralValue, Operation
from differential.expressions.text import text_of
from differential.expressions.tree import ColumnTree, LiteralTree, OperationTree, Tree


@pytest.mark.parametrize(
    ("tree", "expr"), [(ColumnTree, ColumnRef), (LiteralTree, LiteralValue), (OperationTree, Operation)]
)
def test_what_users_write_has_the_fields_of_its_tree_and_no_others(tree: type, expr: type) -> None:
    assert issubclass(expr, tree)
    assert [each.name for each in fields(expr)] == [each.name for each in fields(tree)]


def test_bare_trees_are_printed_and_nothing_more() -> None:
    bare = OperationTree("+", (ColumnTree("a"), LiteralTree(1, lit(1).type)))
    assert text_of(bare) == text_of(col.a + 1) == "col.a + 1"
    assert not hasattr(Tree, "__add__")
