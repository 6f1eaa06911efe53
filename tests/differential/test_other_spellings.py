"""What other libraries call it is told what it is called here."""

from __future__ import annotations

import pytest

import differential as dd
from timely import Dataflow


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("groupBy", "Write instead: group_by('key')"),
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
