"""Scopes: nesting, levels, names."""

from __future__ import annotations

from timely import Dataflow


def test_a_scope_knows_its_level_its_path_and_what_is_around_it() -> None:
    flow = Dataflow("flow")
    outer = flow.loop("outer").scope
    inner = flow.loop("other").loop("inner").scope
    assert (flow.root.level, outer.level, inner.level) == (0, 1, 2)
    assert inner.path() == "flow / other / inner"
    assert inner.parent is not None and inner.parent.parent is flow.root and outer.parent is flow.root


def test_a_scope_is_itself_only_even_if_another_looks_the_same() -> None:
    flow = Dataflow()
    assert flow.loop("loop").scope != flow.loop("loop").scope
