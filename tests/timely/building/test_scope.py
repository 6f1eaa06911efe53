"""Scopes: nesting, levels, names."""

from __future__ import annotations

from timely import Dataflow


def test_a_scope_knows_its_level_its_path_and_what_is_around_it() -> None:
    dataflow = Dataflow("flow")
    outer = dataflow.loop("outer").scope
    inner = dataflow.loop("other").loop("inner").scope
    assert (dataflow.root.level, outer.level, inner.level) == (0, 1, 2)
    assert inner.path() == "flow / other / inner"
    assert inner.parent is not None and inner.parent.parent is dataflow.root and outer.parent is dataflow.root


def test_a_scope_is_itself_only_even_if_another_looks_the_same() -> None:
    dataflow = Dataflow()
    assert dataflow.loop("loop").scope != dataflow.loop("loop").scope
