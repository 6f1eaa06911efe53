"""What other libraries call it is told what it is called here."""

from __future__ import annotations

import re

import pytest

import differential as dd
from differential.other_spellings import FUNCTIONS_ELSEWHERE, explain_function
from timely import Dataflow


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("groupby", "Write instead: group_by('key')"),
        ("assign", "Write instead: with_columns(name=col.x + 1)"),
        ("collect", "read flow.output('name')"),
        ("src", "it is a column; in an expression write col.src"),
        ("nonsense", "a collection has no 'nonsense'"),
    ],
)
def test_spellings_of_other_libraries_are_told_what_to_write(name: str, said: str) -> None:
    edges = dd.input(Dataflow(), "edges", "src: int, dst: int")
    with pytest.raises(AttributeError) as caught:
        getattr(edges, name)
    assert said in str(caught.value)
    with pytest.raises(AttributeError, match=r"Write agg\(n=dd.count\(\)"):
        getattr(edges.group_by("src"), "aggregate")  # noqa: B009
    with pytest.raises(AttributeError, match=r"Write instead: reduce\(function, schema\)"):
        getattr(edges.group_by("src"), "applyInPandas")  # noqa: B009


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "countDistinct",
            "module 'differential' has no attribute 'countDistinct'. Write instead: dd.count_distinct",
        ),
        ("collect_list", "dd.collect('x')"),
        ("row_number", "group_by('key').rank("),
        ("nonsense", "module 'differential' has no attribute 'nonsense'"),
    ],
)
def test_functions_of_other_libraries_are_told_what_to_write(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(said)):
        getattr(dd, name)
    assert getattr(dd, name, None) is None


@pytest.mark.parametrize("name", sorted(FUNCTIONS_ELSEWHERE))
def test_functions_that_are_told_of_exist_under_the_other_name_only(name: str) -> None:
    assert name not in dd.__all__
    for told in re.findall(r"\bdd\.(\w+)", explain_function(name)):
        assert told in dd.__all__
