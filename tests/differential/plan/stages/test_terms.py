"""stages/terms.py: streams and what is done to their rows; the columns of what is kept wider.

pairs_*     where the words of a join come from
way_back_*  a variable of a loop has only the ways back that somebody asks for
"""

from __future__ import annotations

import differential as dd
from differential import Collection, col
from differential.columns.schema import Schema
from differential.plan.nodes import Input, Join
from differential.plan.stages.terms import Side, pairs_of
from timely.building.dataflow import Dataflow

LEFT = Input(Schema.of("a: int, b: int?"), "left")
RIGHT = Input(Schema.of("c: int, d: int"), "right")
JOIN = Join(LEFT, RIGHT, (("a", "c"),))


def _side(schema: str, **columns: str) -> Side:
    return Side((), Schema.of(schema), columns, lambda loops: [])


def test_pairs_of_sides_that_keep_what_is_needed() -> None:
    sides = (_side("a: int, b: int?", a="a", b="b"), _side("c: int, d: int", c="c", d="d"))
    assert pairs_of(JOIN, sides) == [("key", 0), ("left", 0), ("left", 1), ("right", 0)]


def test_pairs_of_sides_that_keep_more_under_other_names() -> None:
    sides = (
        _side("k: int, x: int, y: int?, z: int", a="k", b="y"),
        _side("p: int, q: int, r: int", c="p", d="r"),
    )
    assert pairs_of(JOIN, sides) == [("key", 0), ("left", 1), ("left", 2), ("right", 1)]


def test_pairs_of_a_column_that_is_the_key_again() -> None:
    sides = (_side("a: int, b: int?", a="a", b="b"), _side("p: int", c="p", d="p"))
    assert pairs_of(JOIN, sides)[-1] == ("key", 0)


def _ways_back(reads_rows: bool) -> int:
    flow = Dataflow("tested")
    edges = dd.input(flow, "edges", "k: int, to: int")
    start = edges.select(k=col.k, v=col.k).distinct()

    def body(x: Collection) -> Collection:
        moved = x.join(edges, on="k").select(k=col.to, v=col.v).concat(start)
        return (moved.concat(x) if reads_rows else moved).group_by("k").agg(v=dd.min("v"))

    start.iterate(body).output("out")
    flow.freeze()
    return sum(stage.kind == "feedback" for stage in flow.stages)


def test_way_back_for_rows_only_where_rows_are_read() -> None:
    """What it begins as comes back negated, answers come back, and perhaps rows."""
    assert (_ways_back(reads_rows=False), _ways_back(reads_rows=True)) == (2, 3)
