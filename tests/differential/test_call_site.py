"""The call site is the line of the user's program."""

from __future__ import annotations

from differential.call_site import call_site
from differential.expressions import col


def test_type_the_call_site_is_the_users_line() -> None:
    here = call_site()
    expr = col.a + 1
    assert (expr.site.file, expr.site.line) == (__file__, here.line + 1)
