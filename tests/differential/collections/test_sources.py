"""sources.py: inputs and streams as collections; imports are tested in `tests/processes/queries/`.

same_*      asked for twice
refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

import pytest

import differential as dd
from differential.errors import SchemaError
from progress.errors import GraphError
from timely.building.dataflow import Dataflow


def test_refused_columns_that_tables_of_changes_use() -> None:
    for name in ("diff", "epoch"):
        with pytest.raises(SchemaError, match=f"input 'numbers': a column cannot be called '{name}'"):
            dd.input(Dataflow("queries"), "numbers", f"k: int, {name}: int")


def test_refused_two_inputs_of_one_name() -> None:
    flow = Dataflow("queries")
    dd.input(flow, "numbers", "k: int")
    with pytest.raises(GraphError, match="numbers"):
        dd.input(flow, "numbers", "k: int")


def test_same_import_asked_for_twice_is_one() -> None:
    flow = Dataflow("queries")
    first = dd.imported(flow, "owner", "answers", "k: int")
    assert dd.imported(flow, "owner", "answers", "k: int").node is first.node
    assert dd.imported(flow, "owner", "others", "k: int").node is not first.node
