"""Errors about a stage name the user's line, not ours."""

from __future__ import annotations

import sys

from differential.expressions.expression import col
from timely import Dataflow
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
