"""Errors about a stage name the user's line, not ours."""

from __future__ import annotations

import subprocess
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


_TYPED = """
import contextlib

import differential as dd
import timely


def expression(flow):
    dd.input(flow, "rows", "k: int").select(k=dd.col.nope).output("k")


def operator(flow):
    dd.input(flow, "rows", "k: int").group_by("nope").count().output("k")


def row(flow):
    rows = dd.input(flow, "rows", "k: int")
    stack = contextlib.ExitStack()
    stack.callback(lambda: rows.select(k=1 // dd.col.k).output("k"))
    stack.close()  # a frame of Python's own in between


with timely.connect(workers=1, embedded=True) as cluster:
    for query in (expression, operator, row):
        try:
            flow = cluster.install(query)
            flow.input("rows").insert([(0,)])
            flow.seal()
            flow.output("k").snapshot()
        except timely.TimelyError as error:
            print(error)
"""


def test_the_lines_of_what_is_typed_behind_c_are_told() -> None:
    ran = subprocess.run([sys.executable, "-c", _TYPED], capture_output=True, text=True, timeout=100)
    lines = _TYPED.splitlines()
    for number, marked in enumerate(lines, 1):
        if any(each in marked for each in (".nope)", '"nope"', "1 // ")):
            assert f"<string>:{number}" in ran.stdout, (marked, ran.stdout, ran.stderr)
    assert "unknown line" not in ran.stdout and "contextlib" not in ran.stdout


def test_code_that_dataclasses_make_of_ours_is_no_line_of_a_user() -> None:
    ours, users = {"__name__": "differential.made"}, {"__name__": "__main__"}
    inner = eval("lambda site: site()", ours)
    assert call_site().file == __file__
    assert inner(call_site).file == __file__
    assert eval("lambda site: inner(site)", users | {"inner": inner})(call_site) == ("<string>", 1)


def test_an_error_that_passes_no_line_of_a_user_is_told_without_one() -> None:
    builder = eval("lambda flow: (flow.input('a'), flow.input('a'))", {"__name__": "timely.made"})
    with pytest.raises(GraphError) as caught:
        build_dataflow(builder, "twice", {})
    assert "already has an input 'a'" in str(caught.value) and "asked for" not in str(caught.value)
