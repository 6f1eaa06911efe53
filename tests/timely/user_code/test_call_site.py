"""Errors about a stage name the user's line, not ours."""

from __future__ import annotations

import sys

import pytest

import differential as dd
import timely
from differential.expressions.expression import col
from progress.errors import GraphError
from timely import Dataflow
from timely.building.builders import build_dataflow
from timely.errors import TimelyError
from timely.user_code.call_site import call_site


def test_the_innermost_frame_outside_our_packages_is_named() -> None:
    line = sys._getframe().f_lineno + 1
    site = call_site()
    assert str(site) == f"{__file__}:{line}"


def test_an_expression_remembers_where_it_was_built() -> None:
    here = call_site()
    expr = col.a + 1
    assert (expr.site.file, expr.site.line) == (__file__, here.line + 1)


def test_a_stage_remembers_where_it_was_built() -> None:
    dataflow = Dataflow()
    line = sys._getframe().f_lineno + 1
    dataflow.input("numbers")
    assert dataflow.stages[0].site == f"{__file__}:{line}"


def test_an_error_of_a_query_names_its_line_once_where_it_has_none_of_its_own() -> None:
    line = sys._getframe().f_lineno + 4

    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int")
        rows.group_by("k").agg(total=dd.sum("nope")).output("sums")

    def another(flow: Dataflow) -> None:
        dd.input(flow, "rows", "k: int").select(k=col.nope).output("k")

    with timely.connect(workers=1, embedded=True) as cluster:
        for query in (build, another):
            with pytest.raises(TimelyError) as caught:
                cluster.install(query)
            assert str(caught.value).count(f"{__file__}:") == 1
            assert f"{__file__}:{line + (3 if query is another else 0)}" in str(caught.value)


def test_an_error_that_passes_no_line_of_a_user_is_told_without_one() -> None:
    builder = eval("lambda flow: (flow.input('a'), flow.input('a'))")
    with pytest.raises(GraphError) as caught:
        build_dataflow(builder, "twice", {})
    assert "already has an input 'a'" in str(caught.value) and "asked for" not in str(caught.value)
