"""columns.py: which columns are read, and which are dropped. That meanings stay: `test_improving.py`."""

from __future__ import annotations

import differential as dd
from differential import col
from differential.columns.schema import Schema
from differential.plan import nodes as n
from differential.plan.rules.columns import needed_columns, with_needed_only

AB = n.Input(Schema.of("a: int, b: int, x: int"), "ab")
CD = n.Input(Schema.of("c: int, d: int, y: int"), "cd")
JOIN = n.Join(AB, CD, (("a", "c"),))


def needed(*roots: n.Node) -> dict[str, str]:
    """Columns by input."""
    needs = needed_columns(roots)
    return {node.name: " ".join(sorted(needs[node.digest])) for node in (AB, CD) if node.digest in needs}


def test_readers_need_what_they_name() -> None:
    assert needed(n.Output(n.Select(JOIN, (("z", col.b + 1),)), "out")) == {"ab": "a b", "cd": "c"}
    assert needed(n.Output(n.Filter(n.Select(JOIN, (("d", col.d),)), col.d > 1), "out"))["cd"] == "c d"
    sums = n.Reduce(JOIN, ("b",), (("low", dd.min("y")), ("top", dd.max("y"))))
    assert needed(n.Output(sums, "out")) == {"ab": "a b", "cd": "c y"}


def test_outputs_distinct_and_functions_need_all() -> None:
    everything = {"ab": "a b x", "cd": "c d y"}
    assert needed(n.Output(JOIN, "out")) == everything
    assert needed(n.Output(n.Select(n.Distinct(JOIN), (("b", col.b),)), "out")) == everything


def test_readers_add_up() -> None:
    one, other = n.Select(JOIN, (("b", col.b),)), n.Select(JOIN, (("y", col.y),))
    assert needed(n.Output(one, "one"), n.Output(other, "other")) == {"ab": "a b", "cd": "c y"}


def test_a_join_is_given_what_is_needed_and_no_more() -> None:
    roots = [n.Output(n.Select(JOIN, (("b", col.b),)), "out")]
    made = with_needed_only(JOIN, (AB, CD), needed_columns(roots))
    assert [str(child.schema) for child in made.children] == ["a: int, b: int", "c: int"]
    assert str(made.schema) == "a: int, b: int"


def test_a_select_keeps_a_column_where_none_is_needed() -> None:
    """Rows without columns could not be told from none by what counts them."""
    counted = n.Accumulate(
        (n.Select(AB, (("p", col.a), ("q", col.b))),), (), 1, (n.AddedColumn("n", 0, dd.count()),)
    )
    needs = needed_columns([n.Output(counted, "out")])
    made = with_needed_only(counted.sources[0], (AB,), needs)
    assert made.schema.names == ("p",)
